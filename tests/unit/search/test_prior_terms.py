"""Tests of `dbrm.search.exploration.PriorTerms`: where a search starts."""

import numpy as np
import pytest

import dbrm
from dbrm.priors import BetaBinomial
from dbrm.search import PriorTerms

NONE = np.zeros(6, dtype=bool)
FLAT = np.zeros(7)


def started(feature, size=FLAT, mask=NONE, **more):
    return np.flatnonzero(
        PriorTerms(np.asarray(feature, dtype=float), size, **more).with_favoured(mask)
    ).tolist()


@pytest.mark.parametrize("penalty", [0.0, 0.5, np.inf])
def test_features_that_cost_something_or_nothing_stay_out(penalty):
    assert started(np.full(6, -penalty)) == []


def test_favoured_features_enter_and_the_mask_is_left_alone():
    mask = np.array([False, True, False, False, False, False])
    assert started([1.0, -3.0, -1.0, 0.5, -np.inf, 0.0], mask=mask) == [0, 1, 3]
    assert mask.sum() == 1


def test_not_more_than_a_model_may_hold():
    size = np.where(np.arange(7) <= 2, 0.0, -np.inf)
    assert started([0.1, 0.3, 0.2, 0.3, 0.1, 0.1], size) == [1, 3]
    full = np.array([True, True, True, False, False, False])
    assert started(np.ones(6), size, full) == [0, 1, 2]


def test_latent_effects_are_not_touched():
    assert started(np.ones(6), np.zeros(5), latent=np.zeros(3)) == [0, 1, 2, 3]


@pytest.mark.parametrize(("a", "b", "expected"), [(9e3, 1e3, 6), (1e3, 9e3, 0), (1.0, 1.0, 0)])
def test_a_share_that_is_expected_in(a, b, expected):
    """A flat share makes small and large models likely; from the empty one no way leads up."""
    size = BetaBinomial(n_candidates=6, a=a, b=b).size_log_prior(np.arange(7))
    assert len(started(np.zeros(6), size)) == expected


@pytest.mark.parametrize("algorithm", ["mjmcmc", "gmjmcmc"])
@pytest.mark.parametrize(("share", "most_in"), [(0.9, True), (0.1, False)])
def test_a_search_begins_where_the_prior_is(algorithm, share, most_in, rng):
    """From the empty model few steps lead to few features."""
    X = rng.normal(size=(200, 30))
    y = (rng.random(200) < 0.5).astype(float)
    prior = BetaBinomial(n_candidates=30, a=1000 * share, b=1000 * (1 - share))
    found = dbrm.fit(
        X,
        y,
        family="binomial",
        algorithm=algorithm,
        penalty=prior,
        prior={"name": "normal", "variance": 0.01, "standardised": True},
        population_size=30,
        max_complexity=1,
        n_chains=1,
        n_populations=1,
        n_init=2,
        n_iter=2,
        n_final=2,
        random_state=1,
    )
    assert (found.models["size"].max() > 25) == most_in
