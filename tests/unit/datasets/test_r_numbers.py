"""Tests of `dbrm.datasets.r_numbers`."""

import pytest

from dbrm.datasets.r_numbers import print_and_read


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
