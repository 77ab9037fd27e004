"""Fits with `device=`, on JAX's CPU platform: the program of a graphics processor."""

import numpy as np
import pytest

import dbrm
import dbrm.evidence.device.population as device
import dbrm.evidence.engines as engines

N = 120


@pytest.fixture
def jax_on_the_cpu(monkeypatch):
    """Take JAX's CPU platform for a graphics processor, and no batch as too small."""
    chosen = {"cpu": None, "gpu": "cpu", "auto": "cpu"}
    monkeypatch.setattr(engines, "choose_platform", lambda name, n_rows: chosen[name])
    monkeypatch.setattr(device, "_LEAST_WORK", 0.0)


def simulate(seed=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 5))
    eta = X[:, 0] - X[:, 1] * X[:, 2]
    return X, (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)


def log_evidences(posterior):
    return dict(zip(posterior.models["features"], posterior.models["log_evidence"], strict=True))


@pytest.mark.usefixtures("jax_on_the_cpu")
def test_the_same_models_are_enumerated():
    options = {"family": "binomial", "algorithm": "enumerate", "n_chains": 1, "random_state": 1}
    expected = log_evidences(dbrm.fit(*simulate(), **options))
    found = log_evidences(dbrm.fit(*simulate(), device="gpu", **options))
    assert found.keys() == expected.keys()
    assert max(abs(found[model] - expected[model]) for model in found) < 1e-7


@pytest.mark.usefixtures("jax_on_the_cpu")
def test_chains_share_the_device_and_can_be_resumed(tmp_path):
    options = {
        "family": "binomial",
        "population_size": 5,
        "n_populations": 3,
        "n_chains": 2,
        "random_state": 1,
        "device": "gpu",
    }
    whole = dbrm.fit(*simulate(), n_jobs=1, checkpoint=tmp_path / "run", **options)
    beside = dbrm.fit(*simulate(), n_jobs=2, **options)
    resumed = dbrm.resume(tmp_path / "run")
    assert log_evidences(whole) == log_evidences(beside) == log_evidences(resumed)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"device": "tpu"}, "device must be one of 'cpu', 'gpu', 'auto'"),
        ({"device": "gpu"}, "family='gaussian' needs one pass"),
        ({"device": "gpu", "family": "poisson", "preset": "paper_text"}, "one model after"),
        (
            {"device": "gpu", "family": "poisson", "evidence": lambda X, y: 0.0},
            "evidence= works, on the CPU: leave device='gpu' out",
        ),
    ],
)
def test_settings_that_a_device_cannot_serve_are_named(settings, match):
    with pytest.raises(ValueError, match=match):
        dbrm.fit(*simulate(), **settings)


def test_without_a_graphics_processor_auto_is_the_cpu():
    options = {"family": "binomial", "n_chains": 1, "n_populations": 2, "random_state": 1}
    expected = log_evidences(dbrm.fit(*simulate(), **options))
    assert log_evidences(dbrm.fit(*simulate(), device="auto", **options)) == expected
