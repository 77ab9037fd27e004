"""Tests of `dbrm.evolution.newcomers.targets`: shares on weighted rows, and what uses them."""

import numpy as np
import pytest

from dbrm.evolution.newcomers.constants import propose_constants
from dbrm.evolution.newcomers.knots import propose_knots
from dbrm.evolution.newcomers.screen import _decompose
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import covariate, get_transform

N = 300
X = covariate("x")


@pytest.fixture
def weighted(rng):
    """Scores and weights of a regression on an intercept and one column, and its design."""
    weights = rng.gamma(1.0, size=N)
    design = np.column_stack([np.ones(N), rng.normal(size=N)])
    response = rng.normal(size=N)
    root = np.sqrt(weights)
    fitted = design @ np.linalg.lstsq(design * root[:, None], response * root, rcond=None)[0]
    return weights, design, weights * (response - fitted), response


def squares_left(columns, response, weights):
    root = np.sqrt(weights)
    return np.linalg.lstsq(columns * root[:, None], response * root, rcond=None)[1][0]


@pytest.mark.parametrize("with_intercept", [False, True])
def test_the_share_is_that_of_a_weighted_regression(rng, weighted, with_intercept):
    weights, design, scores, response = weighted
    span = design * np.sqrt(weights)[:, None]
    target = Target.of(scores, span if with_intercept else span[:, 1:], weights)
    column = rng.normal(size=N) ** 2
    before = squares_left(design, response, weights)
    after = squares_left(np.column_stack([design, column]), response, weights)
    assert target.share(column) == pytest.approx(1.0 - after / before)
    assert target.share(design[:, 1]) == 0.0
    beside, explained = target.beside(column)
    other = rng.normal(size=N)
    last = squares_left(np.column_stack([design, column, other]), response, weights)
    assert explained == pytest.approx(target.share(column))
    assert beside.share(other) == pytest.approx(1.0 - last / after)


def test_the_best_knot_is_that_of_weighted_regressions(rng, weighted):
    weights, design, scores, response = weighted
    x = np.round(rng.normal(size=N), 1)
    span = design * np.sqrt(weights)[:, None]
    step = get_transform("step")
    found = propose_knots([X], x[:, None], [Target.of(scores, span, weights)], [step], 1)
    shares = {
        cut: -squares_left(np.column_stack([design, x > cut]), response, weights)
        for cut in np.unique(x)
        if 5 <= np.sum(x > cut) <= N - 5
    }
    best = max(shares, key=shares.get)
    np.testing.assert_array_equal(found[0].evaluate({"x": x}), x > best)


def test_constants_of_weighted_rows(rng):
    """Noise of the rows with little weight does not move the numbers."""
    x = rng.uniform(0.0, 10.0, size=N)
    noisy = rng.random(N) < 0.5
    weights = np.where(noisy, 1e-4, 1.0)
    response = np.exp(-0.4 * x) + np.where(noisy, 1.0, 0.01) * rng.normal(size=N)
    scores = weights * (response - np.average(response, weights=weights))
    exp = get_transform("exp")
    target = Target.of(scores, weights=weights)
    (found,) = propose_constants([X], x[:, None], [target], [exp], 1)
    assert found.weights[0] == pytest.approx(-0.4, abs=0.02)


def test_a_perfect_fit_leaves_nothing_to_explain(rng):
    target = Target.of(np.zeros(12))
    assert target.share(rng.normal(size=12)) == 0.0


def test_of_more_columns_than_rows_only_some_are_kept(rng):
    design = np.column_stack([np.ones(5), rng.normal(size=(5, 8))])
    basis, directions, kept = _decompose(design, 1)
    np.testing.assert_array_equal(kept, np.arange(4))
    assert directions.shape == (4, 5)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)
