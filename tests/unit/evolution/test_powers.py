"""Tests of products of powers found on the log scale."""

import numpy as np
import pytest

from dbrm.evolution.sweep.powers import Powers, log_linear_exponents, separable_exponents
from dbrm.features import covariate, evaluate, resolve_transforms

TRANSFORMS = resolve_transforms(["square", "sqrt_abs", "power[-1]"])


@pytest.fixture
def columns(rng):
    return rng.uniform(1.0, 5.0, (200, 5))


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 5.0, -1.0, -2.0, -3.0, 0.5, 1.5, -0.5, -2.5])
def test_a_power_is_spelt_with_the_transforms_there_are(exponent, columns):
    feature = Powers(TRANSFORMS).feature(covariate("x1"), exponent)
    value = evaluate([feature], {"x1": columns[:, 0]})[0][:, 0]
    np.testing.assert_allclose(value, columns[:, 0] ** exponent)


def test_what_cannot_be_spelt_is_none():
    powers = Powers(resolve_transforms(["square"]))
    assert powers.feature(covariate("x1"), -1.0) is None
    assert powers.feature(covariate("x1"), 1.5) is None
    assert powers.product([covariate("x1")], np.zeros(1)) is None
    assert powers.feature(covariate("x1"), 3.0).text == "x1*square(x1)"


@pytest.mark.parametrize(
    ("exponents", "text"),
    [
        ([1, -1, -1], "x1*power[-1](x2*x3)"),
        ([-2, -2, 1], "x3*power[-1](square(x1*x2))"),
        ([4, 0, 0], "square(square(x1))"),
        ([2, -2, 0], "square(x1*power[-1](x2))"),
        ([0.5, -0.5, 0.5], "sqrt_abs(x1*x3*power[-1](x2))"),
        ([0.5, -2, 0.5], "power[-1](square(x2))*sqrt_abs(x1*x3)"),
    ],
)
def test_a_product_is_spelt_as_short_as_possible(exponents, text, columns):
    """Factors of one exponent share a function, those below the line the inverse."""
    names = ["x1", "x2", "x3"]
    exponents = np.array(exponents, dtype=float)
    feature = Powers(TRANSFORMS).product([covariate(name) for name in names], exponents)
    assert feature.text == text
    value = feature.evaluate(dict(zip(names, columns.T, strict=False)))
    np.testing.assert_allclose(value, np.prod(columns[:, :3] ** exponents, axis=1))


@pytest.mark.parametrize("constant", [0.0, 1.0, -7.0])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_exponents_of_a_long_product(columns, rng, constant, noise):
    exponents = np.array([1.0, -2.0, 0.5, -1.0, 3.0])
    target = 0.3 * np.prod(columns**exponents, axis=1)
    target = constant + target + noise * target.std() * rng.normal(size=200)
    found = log_linear_exponents(np.log(columns), target, np.ones(200))
    np.testing.assert_array_equal(found, exponents)


def test_a_sum_is_no_product(columns):
    target = columns[:, 0] + columns[:, 1] * np.sin(columns[:, 2]) + 10.0
    assert log_linear_exponents(np.log(columns), target, np.ones(200)) is None


def test_factors_beside_another_function_are_found(columns):
    response = columns[:, 0] / columns[:, 1] ** 2 * (columns[:, 2] + np.exp(columns[:, 3] / 3))
    found = separable_exponents(np.log(columns[:, :4]), response)
    np.testing.assert_array_equal(found, [1.0, -2.0, 0.0, 0.0])


def test_factors_are_found_beside_a_function_that_is_far_from_a_parabola(columns):
    """Its misfit is no noise, and may look like a small effect of the factors."""
    response = columns[:, 0] / (columns[:, 1] * columns[:, 2] * (1.0 - columns[:, 3] / 5.5))
    found = separable_exponents(np.log(columns[:, :4]), response)
    np.testing.assert_array_equal(found, [1.0, -1.0, -1.0, 0.0])


def test_too_few_rows_tell_no_factors(columns):
    few = columns[:30]
    assert not separable_exponents(np.log(few), few[:, 0]).any()


def test_numbers_beyond_all_bounds_are_no_product(columns):
    weight = np.full(200, 1e300)
    with np.errstate(all="ignore"):
        assert log_linear_exponents(np.log(columns), 1e300 * columns[:, 0], weight) is None
