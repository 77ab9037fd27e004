"""Tests of `dbrm.evidence.latent_expansion` and of the refinement of populations with effects."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.evidence.latent.test_engine import FAMILIES, draw, engine_for

from dbrm._kernels.bits import unpack_index
from dbrm.evidence.latent import AR1, IID, RW1
from dbrm.search import PriorTerms, enumerate_population, refine_population
from dbrm.search.refinement import _THOROUGH

N_COLUMNS, N_EFFECTS = 6, 2
EVERYTHING = {"window": 25.0, "max_kept": 10_000}
NOTHING = np.zeros(N_COLUMNS + N_EFFECTS, dtype=bool)
# Share of the mass of a population that may be missed.
MISSED = 0.01
TERMS = PriorTerms(
    np.array([-2.0] * N_COLUMNS + [-3.0] * N_EFFECTS),
    np.zeros(N_COLUMNS + 1),
    latent=np.zeros(N_EFFECTS + 1),
)


def population(rng, family="gaussian", n=100, **extras):
    t, groups = np.arange(float(n)), rng.integers(0, 8, size=n).astype(float)
    base = rng.normal(size=(n, 3))
    X = np.column_stack([base, base[:, 0] * base[:, 1], base[:, 1] ** 2, rng.normal(size=n)])
    process = np.zeros(n)
    for i in range(1, n):
        process[i] = 0.8 * process[i - 1] + 0.4 * rng.normal()
    y, trials = draw(rng, family, 0.5 + 0.4 * X[:, 0] - 0.3 * X[:, 3] + process)
    effects = [AR1("t"), IID("g")]
    engine = engine_for(y, effects, {"t": t, "g": groups}, family=family, trials=trials, **extras)
    return engine.prepare(X)


def left_out(prepared, chosen, key=(0,)):
    """Exact less approximate values at the hyperparameters of one model, of all models."""
    theta = prepared._sketch(chosen, key)[2]
    values = prepared._approximate(chosen, key, N_COLUMNS)
    masks = unpack_index(np.arange(1 << N_COLUMNS), N_COLUMNS)
    exact = [prepared.model(np.flatnonzero(mask), key).at(theta).value for mask in masks]
    return exact - values


CHOSEN = np.array([1, 0, 0, 1, 0, 0], dtype=bool)


def test_the_expansion_is_exact_for_a_gaussian_response_of_known_variance(rng):
    prepared = population(rng, prior={"name": "known-variance", "variance": 0.25})
    assert np.ptp(left_out(prepared, CHOSEN)) < 1e-5


@pytest.mark.parametrize("prior", ["jeffreys", "bic", "g-prior", {"name": "normal"}], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_expansion_is_accurate_near_its_centre(rng, family, prior):
    prepared = population(rng, family, prior=prior)
    masks = unpack_index(np.arange(1 << N_COLUMNS), N_COLUMNS)
    near = masks[:, CHOSEN].all(axis=1) & (masks.sum(axis=1) <= CHOSEN.sum() + 1)
    assert np.ptp(left_out(prepared, CHOSEN)[near]) < 0.2


@pytest.mark.parametrize("family", ["gaussian", *FAMILIES])
def test_nearly_all_mass_is_found(rng, family):
    prepared = population(rng, family)
    found = refine_population(prepared, TERMS, start=NOTHING, **EVERYTHING)
    truth = enumerate_population(prepared, TERMS, **EVERYTHING)
    missed = 1.0 - np.exp(found.log_mass - truth.log_mass)
    # Below zero by what approximations of models that were not evaluated are too high.
    assert -MISSED < missed < MISSED
    assert found.n_evaluated < 0.7 * truth.n_evaluated
    np.testing.assert_allclose(found.inclusion, truth.inclusion, atol=2 * MISSED)


def test_a_careless_search_misses_mass(rng, monkeypatch):
    """Negative control: half of the mass may be left, without neighbours."""
    prepared = population(rng)
    careless = replace(_THOROUGH, share=0.5)
    monkeypatch.setattr("dbrm.search.refinement._THOROUGH", careless)
    monkeypatch.setattr("dbrm.search.refinement._PROBES", 0)
    monkeypatch.setattr("dbrm.search.refinement._ACCURATE", 1e-9)
    found = refine_population(prepared, TERMS, start=NOTHING, **EVERYTHING)
    truth = enumerate_population(prepared, TERMS, **EVERYTHING)
    assert 1.0 - np.exp(found.log_mass - truth.log_mass) > MISSED


def test_a_value_depends_on_the_model_alone(rng):
    """Not on the order of the columns, nor on those beside them, nor on what is known already."""
    prepared = population(rng, "poisson")
    engine, X = prepared.engine, prepared.raw
    mask = np.array([1, 0, 1, 1, 0, 0, 1, 1], dtype=bool)
    value = prepared.evaluate(mask)
    engine.known.clear()
    order = [3, 0, 2]
    assert engine.prepare(X[:, order]).evaluate(np.ones(5, dtype=bool)) == value
    assert len(engine.known) == 1
    assert engine.prepare(X).evaluate(mask) == value
    assert len(engine.known) == 1


def test_at_most_so_many_effects(rng):
    """Sets of more effects than a model may have are not looked at."""
    t = np.arange(60.0)
    X = rng.normal(size=(60, 2))
    y, _ = draw(rng, "poisson", 1.0 + 0.5 * X[:, 0])
    engine = engine_for(y, [AR1("t"), RW1("t")], {"t": t}, family="poisson", most=1)
    values = engine.prepare(X).approximate_all(np.zeros(4, dtype=bool), 2)
    assert np.isfinite(values[:8]).any()
    assert np.all(values[12:] == -np.inf)
    assert not engine.sketched
