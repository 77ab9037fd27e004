"""Tests of `dbrm.search.enumeration` and the terms of the model prior."""

import numpy as np
import pytest
from scipy.special import logsumexp

from dbrm._kernels.bits import unpack_index
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.search import PriorTerms, enumerate_population, log_sum_exp
from dbrm.status import Status

SIZE = 6


@pytest.fixture
def population(rng):
    columns = rng.normal(size=(40, SIZE))
    columns[:, 5] = columns[:, 0] - columns[:, 1]
    response = columns[:, 2] + 0.5 * columns[:, 3] + rng.normal(size=40)
    return GaussianEngine(response, Jeffreys()).prepare(columns)


def terms(max_size=SIZE, penalty=1.5):
    sizes = np.where(np.arange(SIZE + 1) <= max_size, 0.0, -np.inf)
    return PriorTerms(np.full(SIZE, -penalty), sizes)


def brute_force(population, prior):
    masks = unpack_index(np.arange(1 << SIZE), SIZE)
    log_evidence, statuses = population.log_evidence(masks)
    return masks, log_evidence + prior.of(masks), statuses


@pytest.mark.parametrize("max_size", [0, 2, SIZE])
def test_everything_is_that_of_brute_force(population, max_size):
    prior = terms(max_size)
    masks, log_posterior, statuses = brute_force(population, prior)
    found = enumerate_population(population, prior, window=np.inf, max_kept=10_000)
    weights = np.exp(log_posterior - logsumexp(log_posterior))
    assert found.log_mass == pytest.approx(logsumexp(log_posterior))
    np.testing.assert_allclose(found.inclusion, weights @ masks, atol=1e-12)
    np.testing.assert_array_equal(found.last, masks[np.argmax(log_posterior)])
    allowed = masks.sum(axis=1) <= max_size
    assert found.n_evaluated == allowed.sum()
    expected = np.bincount(statuses[allowed])
    assert found.status_counts == {s: expected[s] for s in np.flatnonzero(expected)}
    assert found.masks[np.isfinite(found.log_evidence)].sum(axis=1).max() <= max_size


def test_dependent_models_are_counted(population):
    found = enumerate_population(population, terms(), window=np.inf, max_kept=10_000)
    assert found.status_counts[Status.RANK_DEFICIENT] == 8


@pytest.mark.parametrize(("window", "max_kept"), [(3.0, 10_000), (np.inf, 5), (2.0, 1)])
def test_what_is_not_kept_is_booked_as_lost(population, window, max_kept):
    prior = terms()
    _, log_posterior, _ = brute_force(population, prior)
    found = enumerate_population(population, prior, window=window, max_kept=max_kept)
    inside = np.sort(log_posterior[log_posterior >= log_posterior.max() - window])[::-1]
    kept = np.sort(found.log_evidence + found.log_prior)[::-1]
    np.testing.assert_allclose(kept, inside[:max_kept])
    whole = np.logaddexp(log_sum_exp(kept), found.log_lost)
    assert whole == pytest.approx(found.log_mass, abs=1e-10)
    # Inclusion counts the lost models too.
    full = enumerate_population(population, prior, window=np.inf, max_kept=10_000)
    np.testing.assert_allclose(found.inclusion, full.inclusion)


def test_a_draw_from_the_enumeration_follows_the_posterior(population, rng):
    """One false alarm per million runs (chi-square over eight cells)."""
    from scipy.stats import chi2

    prior = terms()
    _, log_posterior, _ = brute_force(population, prior)
    weights = np.exp(log_posterior - logsumexp(log_posterior))
    draws = [
        enumerate_population(population, prior, window=1.0, max_kept=5, rng=rng).last
        for _ in range(4000)
    ]
    drawn = np.bincount(np.array(draws) @ (1 << np.arange(SIZE)), minlength=1 << SIZE)
    top = np.argsort(-weights)[:7]
    expected = 4000 * np.append(weights[top], 1 - weights[top].sum())
    observed = np.append(drawn[top], 4000 - drawn[top].sum())
    assert chi2.sf(np.sum((observed - expected) ** 2 / expected), 7) > 1e-6
    # Negative control: the flat law over the same cells.
    flat = np.full(8, 500.0)
    assert chi2.sf(np.sum((observed - flat) ** 2 / flat), 7) < 1e-6


def test_an_empty_population_has_one_model(rng):
    empty = GaussianEngine(rng.normal(size=10), Jeffreys()).prepare(np.empty((10, 0)))
    found = enumerate_population(
        empty, PriorTerms(np.empty(0), np.zeros(1)), window=25.0, max_kept=10
    )
    assert found.masks.shape == (1, 0)
    assert found.log_lost == -np.inf


def test_a_forbidden_feature_leaves_the_others_alone():
    """Minus infinity times zero is no number: the term counts only where it is in."""
    prior = PriorTerms(np.array([-1.0, -np.inf]), np.array([0.0, -0.5, -2.0]))
    masks = unpack_index(np.arange(4), 2)
    np.testing.assert_array_equal(prior.of(masks), [0.0, -1.5, -np.inf, -np.inf])


@pytest.mark.parametrize(
    "values", [[], [-np.inf], [-np.inf, -np.inf], [-5000.0, -5001.0], [800.0, -np.inf]]
)
def test_log_sum_exp_is_that_of_scipy(values):
    expected = logsumexp(values) if values else -np.inf
    assert log_sum_exp(np.array(values)) == pytest.approx(expected)
