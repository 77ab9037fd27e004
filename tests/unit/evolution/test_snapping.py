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
