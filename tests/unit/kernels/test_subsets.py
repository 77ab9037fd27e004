"""Tests of `dbrm._kernels.subsets`: all subsets against least squares."""

from itertools import combinations

import numpy as np
import pytest

from dbrm._kernels.subsets import best_subsets


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_best_subsets_are_those_of_least_squares(rng, size):
    columns, target = rng.normal(size=(40, 7)), rng.normal(size=40)
    left, members = best_subsets(
        columns.T @ columns, columns.T @ target, float(target @ target), size, 6, 1e-10
    )
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
    left, members = best_subsets(
        columns.T @ columns, columns.T @ target, float(target @ target), 2, 3, 1e-10
    )
    assert np.isinf(left[2])
    assert {tuple(row) for row in members[:2].tolist()} == {(0, 1), (1, 2)}
