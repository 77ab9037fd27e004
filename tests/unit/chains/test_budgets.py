"""Tests of the ends of a run: by the clock, by models, by memory, and by agreement."""

import logging
import time

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidSettingError


@pytest.fixture(scope="module")
def wide():
    """Forty columns, weak signals: no walk sees all models."""
    draw = np.random.default_rng(7)
    columns = draw.normal(size=(120, 40))
    return columns, columns[:, :8] @ np.full(8, 0.3) + draw.normal(size=120)


def test_the_clock_ends_mjmcmc(wide):
    """It used to be one compiled call that nothing could end."""
    options = {"algorithm": "mjmcmc", "n_chains": 2, "random_state": 1}
    dbrm.fit(*wide, **options, n_final=1000)
    began = time.perf_counter()
    posterior = dbrm.fit(*wide, **options, n_final=20_000_000, time_budget=1.0)
    assert time.perf_counter() - began < 15.0
    assert 1000 < sum(posterior.record.moves["change"]) < 20_000_000


def test_models_end_every_algorithm(wide, data):
    posterior = dbrm.fit(
        *wide, algorithm="mjmcmc", n_chains=2, n_final=10_000_000, max_models=4000, random_state=1
    )
    assert 4000 <= posterior.record.n_evaluated < 6000
    options = {"n_chains": 2, "n_populations": 10_000, "transforms": ["sin"], "random_state": 1}
    posterior = dbrm.fit(*data, **options, max_models=600)
    assert 100 < len(posterior.models) < 60_000


def test_a_sweep_out_of_time_says_what_it_did_not_look_at(wide, tmp_path):
    """The share of a tiny budget is spent at once; what was ranked still forms a pool."""
    posterior = dbrm.fit(*wide, n_chains=1, n_populations=2, random_state=1, time_budget=0.01)
    said = posterior.record.sweep
    assert said.startswith("The sweep stopped after ")
    assert "features of complexity" in said
    assert said in posterior.summary().replace("\n", " ")
    posterior.save(tmp_path / "run.dbrm")
    assert dbrm.load(tmp_path / "run.dbrm").record.sweep == said
    assert posterior._problem.pool


def test_memory_bounds_the_models_kept(wide):
    options = {"algorithm": "mjmcmc", "n_chains": 2, "n_final": 20_000, "random_state": 1}
    free, tight = dbrm.fit(*wide, **options), dbrm.fit(*wide, **options, max_memory=0.4)
    assert len(tight.models) <= 1000 < len(free.models)
    assert tight.lost_mass > free.lost_mass
    kept = free.models["probability"].head(500).sum()
    assert tight.lost_mass > 0.5 * (1 - kept)
    with pytest.raises(InvalidSettingError, match="max_memory must be a positive number of mega"):
        dbrm.fit(*wide, max_memory=0)


@pytest.mark.parametrize("algorithm", ["gmjmcmc", "mjmcmc"])
def test_agreement_ends_a_run_early_and_reproducibly(algorithm, caplog, same):
    draw = np.random.default_rng(1)
    columns = draw.normal(size=(100, 4))
    y = columns[:, 0] - columns[:, 1] + 0.1 * draw.normal(size=100)
    caplog.set_level(logging.INFO, "dbrm")
    options = {"n_chains": 3, "n_populations": 20, "n_final": 40_000, "random_state": 2}
    options |= {"algorithm": algorithm, "transforms": ["sin"]}
    posterior = dbrm.fit(columns, y, **options, stop="agreement")
    assert posterior.record.ended == "agreement"
    assert posterior.diagnostics.agree
    assert "The run ended early. Its chains agreed" in posterior.summary()
    (event,) = [record for record in caplog.records if record.event == "agreement"]
    assert event.population < (20 if algorithm == "gmjmcmc" else 40_000)
    assert posterior.record.n_evaluated < dbrm.fit(columns, y, **options).record.n_evaluated + 1
    same(dbrm.fit(columns, y, **options, stop="agreement", n_jobs=2), posterior)


def test_chains_that_disagree_go_on(wide):
    """Negative control: a handful of steps, and the chains have met different models."""
    options = {"algorithm": "mjmcmc", "n_chains": 3, "n_final": 200, "random_state": 1}
    posterior = dbrm.fit(*wide, **options, stop="agreement")
    assert posterior.record.ended == ""
    assert not posterior.diagnostics.agree
