"""Tests of `dbrm.evolution.sweep.pool`: each column once, and the best model of them."""

import numpy as np

from dbrm.evolution.sweep.pool import SweepPool
from dbrm.features import covariate, multiply


def test_a_column_is_taken_once_whatever_it_is_called(rng, pose):
    """The same column up to scale is the same number; a second request for new ones is empty."""
    x = rng.normal(size=50)
    problem = pose(np.column_stack([x, -2 * x, x**2]), rng.normal(size=50))
    pool = SweepPool(problem)
    x1, x2, x3 = (covariate(name) for name in problem.table.names)
    first = pool.add([x1, x2, x3, multiply(x1, x1)], 4)
    assert len(first) == 2
    assert pool.add([x2, multiply(x1, x2)], 2) == []
    assert pool.add([x2, multiply(x1, x2)], 2, fresh_only=False) == first
    np.testing.assert_array_equal(pool.columns(first), problem.table.values[:, [0, 2]])


def test_the_best_of_some_options_is_that_of_the_best_model(rng, pose):
    """Beside x1 the second option adds most, although the first is nearer to the response."""
    a, b = rng.normal(size=(2, 200))
    y = a + b + 0.1 * rng.normal(size=200)
    problem = pose(np.column_stack([a, a + 0.5 * b + 0.5 * rng.normal(size=200), b]), y)
    pool = SweepPool(problem)
    one, near, right = pool.add([covariate(name) for name in problem.table.names], 3)
    assert pool.best_of([], [near, right]) == near
    assert pool.best_of([one], [near, right]) == right


def test_the_best_subset_of_dependent_columns_is_climbed_to_from_the_leaders(
    rng, pose, monkeypatch
):
    """Models with all four columns, and with any three of them, have no evidence to climb on."""
    monkeypatch.setattr("dbrm.evidence.gaussian.GaussianPopulation.enumeration_limit", 0)
    a, b = rng.normal(size=(2, 100))
    values = np.column_stack([a, b, a + b, a - b])
    problem = pose(values, a + 2 * b + 0.1 * rng.normal(size=100), max_complexity=1)
    pool = SweepPool(problem)
    numbers = pool.add([covariate(name) for name in problem.table.names], 4)
    assert len(pool.best_subset(numbers, numbers[:2])) == 2
