"""Tests of `dbrm.posterior.limits`: means inside the training box stay near what was fitted."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.data import Table
from dbrm.features import covariate
from dbrm.posterior.limits import Limits, outside_by

NAMES = ("a", "b")


def limits_at(rows, fitted=((0.0, 10.0),), follows=((True, False),), squares=None):
    ranges = {covariate(name).text: (0.0, 2.0) for name in NAMES}
    limits = Limits(np.array(fitted), NAMES, np.array(follows), ranges, squares)
    low, high = limits.at(Table(NAMES, np.array(rows, dtype=float)))
    # One column may stand for all rows.
    return np.broadcast_to(low[0], len(rows)), np.broadcast_to(high[0], len(rows))


def test_inside_the_box_a_mean_may_leave_by_a_quarter_of_its_range():
    low, high = limits_at([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    assert low.tolist() == [-2.5] * 3
    assert high.tolist() == [12.5] * 3


def test_the_allowance_grows_outside_and_ends_where_rows_are_far():
    _, high = limits_at([[2.0, 0.0], [2.2, 0.0], [2.9, 0.0], [3.0, 0.0], [9.0, 0.0]])
    assert high[0] < high[1] < high[2] < np.inf
    assert high[3] == high[4] == np.inf


def test_limits_of_a_root_are_those_of_its_mean():
    """Means of 0 to 100, by a root of -2 to 10: the largest mean is 125."""
    low, high = limits_at([[1.0, 1.0]], fitted=((-2.0, 10.0),), squares=np.array([True]))
    assert low.tolist() == [0.0]
    np.testing.assert_allclose(high**2, 125.0)


def test_only_the_columns_that_a_linear_model_follows_count():
    assert limits_at([[1.0, 99.0]])[1].tolist() == [12.5]


def test_a_column_that_was_constant_is_left_by_any_distance():
    assert outside_by((1.0, 1.0), np.array([1.0, 1.1])).tolist() == [0.0, np.inf]


@pytest.fixture(scope="module")
def tails():
    """A product of two long-tailed columns that are never large together."""
    draw = np.random.default_rng(1)
    large = np.exp(3.0 * draw.random(60))
    first = np.where(np.arange(60) % 2, large, 1.0 + 0.1 * draw.random(60))
    X = pd.DataFrame({"a": first, "b": np.where(np.arange(60) % 2, 1.0, large)})
    y = X["a"] * X["b"] + 0.1 * draw.normal(size=60)
    return X, y


def test_the_corner_of_the_box_is_held_unless_the_law_is_to_be_followed(tails):
    X, y = tails
    options = {"transforms": [], "n_chains": 1, "n_populations": 2, "random_state": 1}
    posterior = dbrm.fit(X, y, **options)
    corner = pd.DataFrame({"a": [X["a"].max()], "b": [X["b"].max()]})
    law = float(corner["a"].iloc[0] * corner["b"].iloc[0])
    assert posterior.predict(corner, extrapolate="follow")[0] == pytest.approx(law, rel=0.01)
    assert posterior.predict(corner)[0] < y.max() + 0.3 * np.ptp(y) < law
    np.testing.assert_array_equal(posterior.predict(X), posterior.predict(X, extrapolate="follow"))


def test_a_row_far_outside_is_predicted_as_one_at_the_edge(tails):
    """In the corner, too, where the limit binds; a linear model goes on."""
    X, y = tails
    options = {"n_chains": 1, "n_populations": 2, "random_state": 1}
    posterior = dbrm.fit(X, y, transforms=[], **options)
    rows = pd.DataFrame({"a": X["a"].max() * np.array([1.0, 50.0]), "b": [X["b"].max()] * 2})
    with pytest.warns(dbrm.errors.DBRMWarning, match="range of 'a'"):
        edge, outside = posterior.predict(rows)
    assert outside == edge
    linear = dbrm.fit(X[["a"]], 2.0 * X["a"] + y / y.max(), transforms=[], max_depth=1, **options)
    with pytest.warns(dbrm.errors.DBRMWarning, match="range of 'a'"):
        edge, outside = linear.predict(rows[["a"]])
    assert outside > 10.0 * edge


def test_rates_are_held_too_and_never_overflow():
    draw = np.random.default_rng(2)
    X = pd.DataFrame({"a": np.append(draw.uniform(0, 1, 59), 40.0), "b": draw.uniform(0, 1, 60)})
    y = draw.poisson(np.exp(X["a"].clip(upper=1.0)))
    options = {"family": "poisson", "always": ["a*b", "b"], "algorithm": "enumerate"}
    posterior = dbrm.fit(X, y, **options)
    corner = pd.DataFrame({"a": [40.0, 4000.0], "b": [1.0, -3.0]})
    with pytest.warns(dbrm.errors.DBRMWarning, match="range of 'a', 'b'"):
        mean, sd = posterior.predict(corner), posterior.predict_sd(corner)
    assert mean[0] < y.max() + 0.3 * np.ptp(y)
    assert np.all(np.isfinite(mean) & np.isfinite(sd))
