"""Tests of freezing and thawing: a chain taken apart between populations takes the same steps."""

from dataclasses import replace

import numpy as np
import pytest

import dbrm
from dbrm.chains import Checkpoint, seed_sequence
from dbrm.chains.work_unit import chain_class
from dbrm.evolution import ALGORITHMS, proceed

N_ROWS = 70
SETTINGS = {
    "n_populations": 5,
    "n_final": 12,
    "n_chains": 1,
    "transforms": ["sin", "tanh", "troot"],
    "random_state": 3,
}
CASES = {
    "plain": {},
    "learning operators": {"adaptive_operators": True},
    "walks": {"population_size": 22, "n_iter": 150, "n_init": 100},
    "ascent": {"population_size": 22, "n_iter": 150, "n_init": 100, "mjmcmc": {"ascend": True}},
    "projections in layers": {"projection": "all-layers"},
    "drawn projections": {"projection": "bayes"},
    "heredity": {"heredity": "strong"},
    "steps": {"transforms": "steps"},
    "full ledger": {"max_memory": 0.01},
    "latent effects": {"latent": [dbrm.latent.IID("group")], "n_populations": 3, "n_final": 6},
    "logistic": {"family": "binomial", "n_populations": 3},
}


def problem(**options):
    draw = np.random.default_rng(8)
    columns = draw.normal(size=(N_ROWS, 4))
    table = dict(zip("abcd", columns.T, strict=True))
    if "latent" in options:
        table["group"] = np.repeat(np.arange(7.0), 10)
    y = np.sin(columns[:, 0] * columns[:, 1]) + 0.4 * draw.normal(size=N_ROWS)
    y = (y > 0).astype(float) if options.get("family") == "binomial" else y
    posterior = dbrm.fit(table, y, **SETTINGS | options | {"n_populations": 2})
    return posterior._problem, SETTINGS | options


def start(algorithm, options, posed):
    budget = replace(
        posed.budget, n_populations=options["n_populations"], n_final=options["n_final"]
    )
    rng = np.random.Generator(np.random.PCG64(seed_sequence(5)))
    return chain_class(algorithm)(rng, replace(posed, budget=budget))


def assert_same(one, other):
    assert [str(f) for f in one.features] == [str(f) for f in other.features]
    assert {k: list(map(str, v)) for k, v in one.aliases.items()} == {
        k: list(map(str, v)) for k, v in other.aliases.items()
    }
    for name, array in one.models.to_arrays().items():
        np.testing.assert_array_equal(array, other.models.to_arrays()[name])
    for name in ("log_lost", "n_evaluated", "status_counts", "rejections", "moves", "weight_draws"):
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_array_equal(one.trace, other.trace)
    assert (one.draws is None) == (other.draws is None)
    if one.draws is not None:
        for name in ("log_posterior", "size", "frequency"):
            np.testing.assert_array_equal(getattr(one.draws, name), getattr(other.draws, name))


def check(algorithm, options, folder):
    """Freeze after every step, write to a file, read it, and go on in a fresh run."""
    posed, options = problem(**options)
    whole = proceed(start(algorithm, options, posed))
    piece = start(algorithm, options, posed)
    with Checkpoint(folder, "test") as checkpoint:
        while not piece.finished:
            piece.advance(7)
            checkpoint.save_chain(0, piece.get_state(), posed, piece.n_done)
            fresh = start(algorithm, options, posed)
            fresh.set_state(checkpoint.load_chain(0, posed, fresh.layout))
            assert fresh.n_done == piece.n_done
            piece = fresh
    assert piece.n_done == whole.n_done > 1
    assert_same(piece.result(), whole.result())


@pytest.mark.parametrize("case", CASES)
def test_gmjmcmc(case, tmp_path):
    check("gmjmcmc", CASES[case], tmp_path)


@pytest.mark.parametrize("case", ["plain", "heredity", "drawn projections", "latent effects"])
def test_rgmjmcmc(case, tmp_path):
    check("rgmjmcmc", CASES[case], tmp_path)


@pytest.mark.parametrize(
    "case", ["plain", "walks", pytest.param("latent effects", marks=pytest.mark.slow)]
)
def test_pool_gibbs(case, tmp_path):
    check("pool-gibbs", CASES[case], tmp_path)


@pytest.mark.parametrize("case", ["plain", "logistic"])
def test_mjmcmc(case, tmp_path):
    check("mjmcmc", CASES[case] | {"n_final": 60}, tmp_path)


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if ALGORITHMS[name].searches])
def test_a_state_that_is_changed_is_noticed(algorithm, tmp_path):
    """Negative control: the comparison above sees another state of the generator."""
    posed, options = problem()
    whole = proceed(start(algorithm, options, posed)).result()
    piece = start(algorithm, options, posed)
    piece.advance(3)
    snapshot = piece.get_state()
    other = np.random.Generator(np.random.PCG64(1)).bit_generator.state
    snapshot.content["generator.state"] = other
    fresh = start(algorithm, options, posed)
    fresh.set_state(snapshot)
    with pytest.raises(AssertionError):
        assert_same(proceed(fresh).result(), whole)
