"""Tests of `dbrm.features.slopes`."""

import numpy as np

from dbrm.features import evaluate, parse_feature
from dbrm.features.slopes import number_slopes

NAMES = ("a", "b")


def test_slopes_are_derivatives_by_the_numbers(rng):
    """In a nested law, beside a factor: against the values with other numbers."""
    table = dict(zip(NAMES, rng.uniform(0.5, 2.0, (2, 40)), strict=True))

    def values(numbers):
        text = "b*exp{{{!r} + {!r}*sin{{{!r}*a}}}}".format(*map(float, numbers))
        return evaluate([parse_feature(text, NAMES)], table)[0][:, 0]

    numbers, step = np.array([0.3, -0.7, 1.9]), 1e-5
    wanted = [
        (values(numbers + step * unit) - values(numbers - step * unit)) / (2 * step)
        for unit in np.eye(3)
    ]
    feature = parse_feature("b*exp{0.3 - 0.7*sin{1.9*a}}", NAMES)
    found = number_slopes(feature, table).T
    assert found.shape == (3, 40)
    for derivative in wanted:
        distance = np.abs(found - derivative).max(axis=1)
        assert distance.min() < 1e-8 * np.abs(derivative).max()


def test_features_without_numbers_have_no_slopes(rng):
    table = dict(zip(NAMES, rng.uniform(0.5, 2.0, (2, 40)), strict=True))
    assert number_slopes(parse_feature("a*sin(b)", NAMES), table).shape == (40, 0)


def test_slopes_that_are_not_finite_are_left_out():
    table = {"a": np.array([-1.0, 1.0, 710.0]), "b": np.ones(3)}
    assert number_slopes(parse_feature("exp{1.0 + 1.0*a}", NAMES), table).shape == (3, 0)
