"""Fits with `device=`, on JAX's CPU platform: the program of a graphics processor.

With ``DBRM_TEST_PLATFORM=gpu`` they run on one.
"""

import os
from itertools import count

import numpy as np
import pytest

import dbrm
import dbrm.evidence.device.population as device
import dbrm.evidence.engines as engines
import dbrm.run.out_of_core as tall
from dbrm.evidence import GlmEngine
from dbrm.evidence.glm_population import GlmPopulation
from dbrm.run.checkpoint import Checkpoint

N = 120
PLATFORM = os.environ.get("DBRM_TEST_PLATFORM", "cpu")
# Populations of five features: one program serves them all.
SMALL = {"family": "binomial", "population_size": 5, "n_populations": 3, "random_state": 1}


@pytest.fixture
def on_platform(monkeypatch):
    """Take the platform of the tests for a graphics processor, and no batch as too small."""
    chosen = {"cpu": None, "gpu": PLATFORM, "auto": PLATFORM}
    monkeypatch.setattr(engines, "choose_platform", lambda name, n_rows: chosen[name])
    monkeypatch.setattr(device, "_LEAST_WORK", 0.0)


def simulate(seed=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 5))
    eta = X[:, 0] - X[:, 1] * X[:, 2]
    return X, (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)


def log_evidences(posterior):
    return dict(zip(posterior.models["features"], posterior.models["log_evidence"], strict=True))


@pytest.mark.usefixtures("on_platform")
def test_the_same_models_are_enumerated():
    options = {"family": "binomial", "algorithm": "enumerate", "n_chains": 1, "random_state": 1}
    expected = log_evidences(dbrm.fit(*simulate(), **options))
    found = log_evidences(dbrm.fit(*simulate(), device="gpu", **options))
    assert found.keys() == expected.keys()
    assert max(abs(found[model] - expected[model]) for model in found) < 1e-7


@pytest.mark.usefixtures("on_platform")
def test_the_same_seed_finds_the_same_models(monkeypatch):
    """Where both evaluate all models of a population, the searches never part."""
    monkeypatch.setattr(GlmPopulation, "expansion_limit", 0)
    expected = log_evidences(dbrm.fit(*simulate(), n_chains=1, **SMALL))
    found = log_evidences(dbrm.fit(*simulate(), n_chains=1, device="gpu", **SMALL))
    assert len(found) > 20
    assert found.keys() == expected.keys()
    assert max(abs(found[model] - expected[model]) for model in found) < 1e-7


@pytest.mark.usefixtures("on_platform")
def test_models_grow_beyond_the_population(monkeypatch):
    """Beside settled features, too, both evaluate all models of a population."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2 * N, 8))
    y = (rng.random(2 * N) < 1 / (1 + np.exp(-1.5 * X[:, :7].sum(axis=1)))).astype(float)
    monkeypatch.setattr(GlmPopulation, "expansion_limit", 0)
    monkeypatch.setattr(GlmPopulation, "enumeration_limit", 5)
    monkeypatch.setattr(GlmEngine, "settling_limit", 5)
    monkeypatch.setattr(device, "_LARGEST", 5)
    options = SMALL | {"n_chains": 1, "n_populations": 4, "transforms": []}
    expected = dbrm.fit(X, y, **options)
    found = dbrm.fit(X, y, device="gpu", **options)
    assert len(found.best_model.features) > 5
    expected, found = log_evidences(expected), log_evidences(found)
    assert found.keys() == expected.keys()
    assert max(abs(found[model] - expected[model]) for model in found) < 1e-7


@pytest.mark.usefixtures("on_platform")
def test_the_same_seed_finds_the_same_models_of_many_rows(monkeypatch):
    """Leading models have the evidence of all rows; the sweep sees a sample on the CPU."""
    monkeypatch.setattr(tall, "TALL_ROWS", N)
    monkeypatch.setattr(tall, "SAMPLE_ROWS", 80)
    expected = dbrm.fit(*simulate(), n_chains=1, **SMALL).models
    found = dbrm.fit(*simulate(), n_chains=1, device="gpu", **SMALL).models
    assert list(found["features"][:5]) == list(expected["features"][:5])
    gap = found["log_evidence"][:5] - expected["log_evidence"][:5]
    assert gap.abs().max() < 1e-7


class PowerCutError(Exception):
    """The power fails."""


@pytest.mark.usefixtures("on_platform")
def test_chains_share_the_device_and_can_be_resumed(tmp_path, monkeypatch):
    """How many run at a time, or an end in between, changes no bit."""
    options = SMALL | {"n_chains": 2, "device": "gpu"}
    whole = dbrm.fit(*simulate(), n_jobs=1, **options)
    beside = dbrm.fit(*simulate(), n_jobs=2, **options)
    monkeypatch.setattr("dbrm.chains.driver._SHORTEST", 0.0)
    monkeypatch.setattr("dbrm.chains.driver._WRITING_SHARE", 0.0)
    save, calls = Checkpoint.save_chain, count(1)

    def fail(self, *arguments):
        if next(calls) > 4:
            raise PowerCutError
        save(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_chain", fail)
        with pytest.raises(PowerCutError):
            dbrm.fit(*simulate(), n_jobs=1, checkpoint=tmp_path / "run", **options)
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
