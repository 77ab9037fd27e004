"""Tests of `dbrm._kernels.subsets`: all subsets against least squares."""

from itertools import combinations

import numpy as np
import pytest

from dbrm._kernels.subsets import best_subsets


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_best_subsets_are_those_of_least_squares(rng, size):
    columns, target = rng.normal(size=(40, 7)), rng.normal(size=40)
    gram, cross, total = columns.T @ columns, columns.T @ target, float(target @ target)
    left, members = best_subsets(gram, cross, total, np.ones(7), size, 6, 1e-10, 0.0)
    expected = sorted(
        (float(np.linalg.lstsq(columns[:, chosen], target, rcond=None)[1][0]), chosen)
        for chosen in combinations(range(7), size)
    )[:6]
    np.testing.assert_allclose(left, [squares for squares, _ in expected])
    assert [tuple(row) for row in members.tolist()] == [chosen for _, chosen in expected]


def test_copies_of_a_column_are_not_taken_together(rng):
    columns = rng.normal(size=(40, 3))
    columns[:, 2] = 2.0 * columns[:, 0]
    target = rng.normal(size=40)
    gram, cross, total = columns.T @ columns, columns.T @ target, float(target @ target)
    left, members = best_subsets(gram, cross, total, np.ones(3), 2, 3, 1e-10, 0.0)
    assert np.isinf(left[2])
    assert {tuple(row) for row in members[:2].tolist()} == {(0, 1), (1, 2)}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_factors_put_dear_columns_last(rng, size):
    """Ranked by squares times factors; what is below the least square counts as that."""
    columns, target = rng.normal(size=(30, 6)), rng.normal(size=30)
    factors, least = np.array([1.0, 1.3, 0.8, 2.0, 1.1, 0.9]), 0.9 * float(target @ target)
    gram, cross, total = columns.T @ columns, columns.T @ target, float(target @ target)
    left, members = best_subsets(gram, cross, total, factors, size, 5, 1e-10, least)
    expected = sorted(
        (max(squares, least) * np.prod(factors[list(chosen)]), squares, chosen)
        for chosen in combinations(range(6), size)
        for squares in [float(np.linalg.lstsq(columns[:, chosen], target, rcond=None)[1][0])]
    )[:5]
    np.testing.assert_allclose(left, [squares for _, squares, _ in expected])
    assert [tuple(row) for row in members.tolist()] == [chosen for _, _, chosen in expected]
