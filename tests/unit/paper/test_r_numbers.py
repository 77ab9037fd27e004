"""Tests of `dbrm_paper.datasets.r_numbers`."""

import numpy as np
import pytest

from dbrm_paper.datasets.r_numbers import print_and_read, r_sample


@pytest.mark.parametrize(
    ("column", "rounded"),
    [
        # Seven digits of the larger, and the same decimals for all.
        (["2.4270716", "13.6370764"], [2.427072, 13.637076]),
        # The small entry needs more decimals, so nothing is lost.
        (["0.2606635", "1.23456789"], [0.2606635, 1.2345679]),
        (["12", "3.5"], [12.0, 3.5]),
        (["123456789", "1.5"], [123456789.0, 1.5]),
    ],
)
def test_decimals_are_shared_by_a_column(column, rounded):
    assert print_and_read(column) == rounded


def test_reading_rounds_twice():
    """The nearest double is above 5.2563415 and prints as 5.256342; R printed 5.256341."""
    assert f"{5.2563415:.6f}" == "5.256342"
    assert print_and_read(["5.2563415", "3.9773434"]) == [5.256341, 3.977343]


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
