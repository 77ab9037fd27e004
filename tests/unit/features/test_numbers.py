"""Tests of short numbers inside features."""

from math import pi

import pytest

from dbrm.features.numbers import count_digits, shortest_within


@pytest.mark.parametrize(
    ("number", "digits"),
    [
        (0.0, 0), (1.0, 0), (-1.0, 0), (0.5, 1), (2.0, 1), (-40.0, 1), (3.1, 2), (pi, 2),
        (-pi / 2, 2), (4 * pi, 2), (1 / 3, 2), (-5 / 6, 2), (0.125, 3), (1.571, 4), (pi / 100, 12),
        (8 / 3, 2), (43 / 3, 12), (-7 * pi, 2), (11 * pi, 12),
        (1.5 * pi, 3),
    ],
)  # fmt: skip
def test_digits(number, digits):
    assert count_digits(number) == digits


@pytest.mark.parametrize(
    ("value", "error", "short"),
    [
        (0.49998, 1e-4, 0.5),
        (-1.0003, 1e-3, -1.0),
        (1.57085, 2e-4, pi / 2),
        (0.33334, 1e-4, 1 / 3),
        (2.7183, 1e-4, 2.7183),
        (2.7183, 0.05, 2.7),
        (0.01, 1.0, 0.01),
        # Where thirds are dense among what the error allows, none stands out.
        (-14.32, 0.1, -14.3),
    ],
)
def test_a_number_within_its_error_of_a_short_one_becomes_short(value, error, short):
    assert shortest_within(value, error) == pytest.approx(short, rel=1e-12)


def test_a_simple_number_too_far_away_is_not_taken():
    assert shortest_within(0.52, 0.005) == 0.52
