"""Tests of simple numbers inside laws."""

import numpy as np
import pytest

from dbrm.evolution.sweep.snapping import snapped_numbers


@pytest.fixture
def law(rng):
    design = rng.uniform(0.5, 2.0, (300, 2))

    def value(numbers):
        return np.exp(design @ numbers)

    def slopes(numbers):
        return value(numbers)[:, None] * design

    return value, slopes


def fitted(law, true, noise, rng):
    """The response of a law, and numbers as far off as estimates are."""
    value, slopes = law
    response = 2.0 * value(true)
    scale = noise * response.std()
    response = response + scale * rng.normal(size=300)
    derivatives = 2.0 * slopes(true)
    covariance = scale**2 * np.linalg.inv(derivatives.T @ derivatives)
    return response, true + 0.5 * np.sqrt(np.diag(covariance))


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1e-2])
def test_numbers_near_simple_ones_become_simple(law, rng, noise):
    true = np.array([-0.5, 1.0])
    response, numbers = fitted(law, true, noise, rng)
    found = snapped_numbers(numbers, np.zeros(2, dtype=bool), *law, response)
    np.testing.assert_array_equal(found, true)


def test_other_numbers_keep_the_digits_that_matter(law, rng):
    true = np.array([-0.4321, 0.8765])
    response, numbers = fitted(law, true, 1e-4, rng)
    found = snapped_numbers(numbers, np.zeros(2, dtype=bool), *law, response)
    np.testing.assert_allclose(found, true, atol=2e-3)
    assert all(len(str(abs(number))) < 10 for number in found)


def test_fixed_numbers_stay(law, rng):
    response, numbers = fitted(law, np.array([-0.5, 1.0]), 1e-2, rng)
    found = snapped_numbers(numbers, np.array([True, False]), *law, response)
    assert found[0] == numbers[0]
    assert found[1] == 1.0


@pytest.mark.parametrize("exponent", range(-200, -80, 10))
def test_numbers_beyond_their_errors_do_no_harm(rng, exponent):
    """Variances that overflow: nothing is known of such a number."""
    x, tiny = rng.uniform(1.0, 3.0, 60), 10.0**exponent
    design = np.column_stack([x, tiny * x**2])
    response = np.exp(0.5 * x + 0.1 * x**2) + 0.01 * rng.normal(size=60)

    def value(numbers):
        return np.exp(design @ numbers)

    def slopes(numbers):
        return value(numbers)[:, None] * design

    numbers = np.array([0.4871, 0.1011 / tiny])
    with np.errstate(all="ignore"):
        found = snapped_numbers(numbers, np.zeros(2, dtype=bool), value, slopes, response)
    assert np.all(np.isfinite(found))
