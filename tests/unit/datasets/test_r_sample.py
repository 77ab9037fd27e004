"""Tests of `dbrm.datasets.r_sample` against draws that R's users know by heart."""

import numpy as np
import pytest

from dbrm.datasets.r_sample import r_sample


@pytest.mark.parametrize(
    ("seed", "permutation"),
    [
        (1, [3, 4, 5, 7, 2, 8, 9, 6, 10, 1]),
        (42, [10, 9, 3, 6, 4, 8, 5, 1, 2, 7]),
        (123, [3, 8, 4, 7, 6, 1, 10, 9, 2, 5]),
    ],
)
def test_known_permutations(seed, permutation):
    """``set.seed(seed); sample(10)`` as printed by R before 3.6."""
    np.testing.assert_array_equal(r_sample(10, 10, seed=seed) + 1, permutation)


def test_a_smaller_sample_is_the_start_of_a_larger_one():
    np.testing.assert_array_equal(r_sample(1502, 5, seed=1), r_sample(1502, 500, seed=1)[:5])


def test_draws_without_replacement():
    np.testing.assert_array_equal(np.sort(r_sample(700, 700, seed=9)), np.arange(700))
