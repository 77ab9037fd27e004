"""Tests of short numbers inside features."""

from math import pi

import numpy as np
import pytest

from dbrm.features.numbers import (
    count_digits,
    is_recognised,
    numbers_of_a_decade,
    shortest_within,
    spell_short_number,
)


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


@pytest.mark.parametrize(
    ("value", "error", "recognised"),
    [
        (1.02, 0.02, True),
        (0.9, 0.02, False),
        (0.501, 0.002, True),
        (1.4949, 0.0004, False),
        (1.5004, 0.0004, True),
        (-6.2834, 0.0005, True),
        (1 / (2 * pi), 0.0003, True),
        (0.0, 0.1, False),
        (np.nan, 0.1, False),
        (2.0, np.inf, False),
        (2.0, 0.0, True),
    ],
)
def test_an_estimate_of_a_short_number_is_recognised(value, error, recognised):
    assert is_recognised(value, error) is recognised


@pytest.mark.parametrize("relative", [0.03, 0.005, 0.0005])
def test_random_numbers_are_seldom_recognised(rng, relative):
    """Of 2,000 values at most one third is; with a share of .29 one false alarm in a million."""
    values = 10.0 ** rng.uniform(-3.0, 3.0, 2_000)
    assert np.mean([is_recognised(value, relative * value) for value in values]) < 1 / 3
    # And estimates of one, which is short, nearly always are: so the test has power.
    near = 1.0 + relative * rng.normal(size=2_000)
    assert np.mean([is_recognised(value, relative) for value in near]) > 0.9


def test_numbers_of_a_decade_cost_their_digits():
    numbers, log_weights = numbers_of_a_decade()
    assert np.all((numbers >= 1.0) & (numbers < 10.0))
    assert np.all(np.diff(numbers) > 1e-9)
    assert np.exp(log_weights).sum() == pytest.approx(1.0)

    def digits(value):
        place = np.argmin(np.abs(numbers - value))
        assert numbers[place] == pytest.approx(value, rel=1e-12)
        return (log_weights.max() - log_weights[place]) / np.log(10.0)

    # One, a digit, two digits, and 1/3, 5/6, pi, 2 pi, 1/(2 pi), 1/(4 pi) by their digits.
    values = [1.0, 2.0, 5.0, 2.5, 10 / 3, 25 / 3, np.pi, 2 * np.pi, 5 / np.pi, 25 / np.pi]
    expected = [0, 1, 1, 2, 2, 2, 2, 2, 2, 3]
    np.testing.assert_allclose([digits(value) for value in values], expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.5, "-0.5"),
        (1.5, "1.5"),
        (100 / 3, "100/3"),
        (5 / 6, "5/6"),
        (2 * pi, "2*pi"),
        (-pi, "-pi"),
        (pi / 6, "pi/6"),
        (0.25 / pi, "0.25/pi"),
        (1 / (6 * pi), "1/(6*pi)"),
        (6e23, "6e+23"),
        (2.3456, "2.3456"),
    ],
)
def test_spelling(value, text):
    assert spell_short_number(value) == text


def test_every_short_number_is_spelt_as_it_is():
    for number in numbers_of_a_decade()[0].tolist():
        top, _, bottom = spell_short_number(number).partition("/")
        factors = [pi if f == "pi" else float(f) for f in top.split("*")]
        divisors = [pi if f == "pi" else float(f) for f in bottom.strip("()").split("*") if f]
        assert np.prod(factors) / np.prod(divisors) == pytest.approx(number, rel=1e-12)
