"""Tests of `dbrm.search.refinement`: full enumeration is the truth."""

from dataclasses import replace

import numpy as np
import pytest

from dbrm.evidence import GlmEngine, resolve_prior
from dbrm.search import PriorTerms, enumerate_population, refine_population
from dbrm.search.refinement import _MOST, _THOROUGH

SIZE = 11
EVERYTHING = {"window": 25.0, "max_kept": 10_000}
# Share of the mass of a population that may be missed.
MISSED = 1e-3
UNIT = {"name": "jeffreys", "constant": "unit_information"}
CASES = [
    ("binomial", None, UNIT),
    ("binomial", "probit", {"name": "hyper-g-n"}),
    ("binomial", None, {"name": "normal", "variance": 4.0}),
    ("poisson", None, UNIT),
    ("poisson", None, {"name": "zellner-siow"}),
    ("gamma", "log", UNIT),
    ("gaussian", "log", UNIT),
    ("negative_binomial", None, UNIT),
]


def population(rng, family="binomial", link=None, prior=UNIT, n=200, **extras):
    """Products of skewed and symmetric columns, some of which matter."""
    base = np.column_stack([rng.normal(size=(n, 3)), np.exp(rng.normal(size=n))])
    columns = [
        base[:, rng.integers(0, 4, size=rng.integers(1, 4))].prod(axis=1) for _ in range(SIZE)
    ]
    X = np.column_stack(columns)
    eta = 0.3 + 0.7 * base[:, 0] - 0.5 * base[:, 1] * base[:, 2]
    y = {
        "binomial": lambda: (rng.random(n) < 1 / (1 + np.exp(-2 * eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(eta) / 2.0) + 1e-6,
        "gaussian": lambda: np.exp(0.3 * eta) + 0.3 * rng.normal(size=n),
        "negative_binomial": lambda: rng.negative_binomial(2, 2 / (2 + np.exp(eta))).astype(float),
    }[family]()
    return GlmEngine(y, resolve_prior(prior), family, link, **extras).prepare(X)


def terms(penalty=2.0, most=SIZE):
    sizes = np.where(np.arange(SIZE + 1) <= most, 0.0, -np.inf)
    return PriorTerms(np.full(SIZE, -penalty), sizes)


def missed(found, truth):
    return 1.0 - np.exp(found.log_mass - truth.log_mass)


@pytest.mark.parametrize(("family", "link", "prior"), CASES)
def test_nearly_all_mass_is_found(rng, family, link, prior):
    prepared = population(rng, family, link, prior)
    found = refine_population(prepared, terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    assert -1e-9 < missed(found, truth) < MISSED
    assert found.n_evaluated < truth.n_evaluated / 2
    np.testing.assert_allclose(found.inclusion, truth.inclusion, atol=2 * MISSED)
    # What is said to be lost bounds what is, within a factor.
    assert found.log_lost > truth.log_mass + np.log(missed(found, truth) + 1e-12) - 1.5


def test_a_careless_search_misses_mass(rng, monkeypatch):
    """Negative control: a search that leaves a tenth of the mass is found out."""
    monkeypatch.setattr("dbrm.search.refinement._THOROUGH", replace(_THOROUGH, share=0.1))
    prepared = population(rng)
    found = refine_population(prepared, terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    assert missed(found, truth) > MISSED


def test_populations_that_are_passed_through_are_searched_quickly(rng):
    """Those far better than all before, and those far worse, but no others."""
    prepared = population(rng)
    found = refine_population(prepared, terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    best = float(np.max(found.log_evidence + found.log_prior))
    for before in (-np.inf, best - 10.0, best + 10.0):
        quick = refine_population(prepared, terms(), best_before=before, **EVERYTHING)
        assert quick.n_evaluated < found.n_evaluated / 2
        assert MISSED < missed(quick, truth) < 50 * MISSED
        np.testing.assert_array_equal(quick.masks[0], found.masks[0])
        # What is said to be lost is about what is.
        lost = np.exp(quick.log_lost - quick.log_mass)
        assert missed(quick, truth) / 3 < lost < 10 * missed(quick, truth)
    for before in (best, best - 1.0, best + 1.0):
        beside = refine_population(prepared, terms(), best_before=before, **EVERYTHING)
        assert missed(beside, truth) < MISSED


def test_a_second_pair_that_separates_the_classes_is_found(rng):
    """It shares no feature with the first, and its approximation is far too low."""
    x = rng.normal(size=(200, SIZE))
    x[:, 2] = x[:, 0] - x[:, 1] + 0.3 * rng.normal(size=200)
    x[:, 3] = x[:, 0] + x[:, 1] - x[:, 2]
    y = (x[:, 0] + x[:, 1] > 0).astype(float)
    prepared = GlmEngine(y, resolve_prior(UNIT), "binomial").prepare(x)

    class Misled:
        size = prepared.size
        log_evidence = staticmethod(prepared.log_evidence)

        def approximate_all(self, centre, max_size):
            values = prepared.approximate_all(centre, max_size)
            values[0b1100] -= 20.0
            return values

    found = refine_population(Misled(), terms(), **EVERYTHING)
    assert {tuple(np.flatnonzero(mask)) for mask in found.masks[:2]} == {(0, 1), (2, 3)}


def test_values_are_those_of_the_population(rng):
    prepared = population(rng)
    found = refine_population(prepared, terms(), **EVERYTHING)
    values, statuses = prepared.log_evidence(found.masks)
    np.testing.assert_array_equal(found.log_evidence, values)
    np.testing.assert_array_equal(found.statuses, statuses)
    np.testing.assert_array_equal(found.log_prior, terms().of(found.masks))


def test_the_prior_says_which_models_there_are(rng):
    """A limit on the size, and a product that needs a parent."""
    prepared = population(rng)
    parents = np.zeros((SIZE, SIZE), dtype=bool)
    parents[3, [0, 1]] = True
    needed = np.zeros(SIZE, dtype=np.int64)
    needed[3] = 2
    limited = terms(most=3)
    strict = PriorTerms(limited.feature, limited.size, parents, needed)
    found = refine_population(prepared, strict, **EVERYTHING)
    truth = enumerate_population(prepared, strict, **EVERYTHING)
    assert missed(found, truth) < MISSED
    assert found.masks.sum(axis=1).max() <= 3
    assert not np.any(found.masks[:, 3] & ~(found.masks[:, 0] & found.masks[:, 1]))


def test_separated_classes_and_copies_of_columns(rng):
    """A column that separates the classes, and two that are the same."""
    x = rng.normal(size=(60, SIZE))
    x[:, 5] = x[:, 4]
    y = (x[:, 0] > 0).astype(float)
    prepared = GlmEngine(y, resolve_prior(UNIT), "binomial").prepare(x)
    found = refine_population(prepared, terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    assert missed(found, truth) < MISSED
    assert not np.any(found.masks[:, 4] & found.masks[:, 5])


def test_always_in_columns_weights_offsets_and_trials(rng):
    n = 150
    x = rng.normal(size=(n, SIZE))
    trials = rng.integers(1, 20, size=n).astype(float)
    y = rng.binomial(trials.astype(int), 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    extras = {
        "always": rng.normal(size=(n, 2)),
        "weights": rng.integers(1, 4, size=n).astype(float),
        "offset": 0.3 * rng.normal(size=n),
        "trials": trials,
    }
    prepared = GlmEngine(y, resolve_prior(UNIT), "binomial", **extras).prepare(x)
    found = refine_population(prepared, terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    assert missed(found, truth) < MISSED


def test_a_bad_approximation_costs_evaluations_only(rng):
    """The correction and the neighbours find the mass even if the order is a random one."""
    prepared = population(rng)

    class Misled:
        size = prepared.size
        log_evidence = staticmethod(prepared.log_evidence)

        def approximate_all(self, centre, max_size):
            return prepared.approximate_all(centre, max_size) + 3.0 * noise

    noise = rng.normal(size=1 << SIZE)
    found = refine_population(Misled(), terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    assert missed(found, truth) < 20 * MISSED
    assert found.n_evaluated <= _MOST


def test_an_approximation_that_prefers_the_model_without_features_is_not_believed(rng):
    prepared = population(rng)

    class Misled:
        size = prepared.size
        log_evidence = staticmethod(prepared.log_evidence)

        def approximate_all(self, centre, max_size):
            values = prepared.approximate_all(centre, max_size)
            values[0] += 100.0
            return values

    found = refine_population(Misled(), terms(), **EVERYTHING)
    truth = enumerate_population(prepared, terms(), **EVERYTHING)
    assert missed(found, truth) < MISSED


def test_without_an_expansion_neighbours_are_followed(rng):
    """Numbers that fail are data: steps from the null model to better ones remain."""
    prepared = population(rng)

    class Failed:
        size = prepared.size
        log_evidence = staticmethod(prepared.log_evidence)

        def approximate_all(self, centre, max_size):
            return np.full(1 << SIZE, np.nan)

    found = refine_population(Failed(), terms(), **EVERYTHING)
    null, _ = prepared.log_evidence(np.zeros((1, SIZE), dtype=bool))
    assert found.n_evaluated > SIZE
    assert np.max(found.log_evidence) > null[0] + 5.0


@pytest.mark.parametrize("prior", [UNIT, {"name": "bic"}])
def test_the_expansion_of_a_quadratic_likelihood_is_exact(rng, prior):
    """A Gaussian response with the identity link, always-in columns, weights and an offset."""
    n = 80
    x = rng.normal(size=(n, SIZE))
    extras = {
        "always": rng.normal(size=(n, 2)),
        "weights": rng.integers(1, 4, size=n).astype(float),
        "offset": rng.normal(size=n),
    }
    y = 10.0 + x[:, 0] - x[:, 1] + rng.normal(size=n)
    prepared = GlmEngine(y, resolve_prior(prior), "gaussian", "identity", **extras).prepare(x)
    exact, _ = prepared.log_evidence_of_all(SIZE)
    difference = prepared.approximate_all(rng.random(SIZE) < 0.5, SIZE) - exact
    np.testing.assert_allclose(difference, difference[0], atol=1e-4)
