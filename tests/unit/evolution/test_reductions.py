"""Tests of groups of covariates and factors found by tests on the data, and of fitted numbers."""

import numpy as np
import pytest

from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.law_targets import reduced_targets
from dbrm.evolution.sweep.powers import separable_exponents
from dbrm.evolution.sweep.ratios import sweep_reduced
from dbrm.evolution.sweep.reductions import merged_pairs, reduce_covariates
from dbrm.features import evaluate

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]


def with_noise(response, rng, noise=0.01):
    return response + noise * response.std() * rng.normal(size=response.size)


def groups_of(found):
    """Groups up to their sign."""
    return {tuple(np.sign(row[np.flatnonzero(row)[0]]) * row) for row in found.groups}


def test_a_response_of_one_group_is_reduced_to_it(rng):
    x = rng.uniform(1, 3, (300, 4))
    group = x[:, 0] * x[:, 1] / (x[:, 2] * x[:, 3])
    response = with_noise(1 / (np.exp(group) + np.exp(-group)), rng)
    found = reduce_covariates(np.log(x), np.empty((300, 0)), response)
    assert groups_of(found) == {(1.0, 1.0, -1.0, -1.0)}
    np.testing.assert_array_equal(found.factor, np.zeros(4))


def test_a_factor_is_found_beside_a_group_of_the_same_covariates(rng):
    """A root of (E - U - L^2 / (2 m r^2)) / m, in the order m, U, L, r, E."""
    m, u, momentum, r = rng.uniform(1, 3, (4, 300))
    energy = rng.uniform(8, 12, 300)
    response = with_noise(np.sqrt((energy - u - momentum**2 / (2 * m * r**2)) * 2 / m), rng)
    columns = np.column_stack([m, u, momentum, r, energy])
    found = reduce_covariates(np.log(columns), np.empty((300, 0)), response)
    assert groups_of(found) == {(1, 0, -2, 2, 0), (0, 1, 0, 0, 0), (0, 0, 0, 0, 1)}
    np.testing.assert_array_equal(found.factor, [-0.5, 0, 0, 0, 0])


def test_what_has_no_groups_is_not_reduced(rng):
    """The control."""
    x = rng.uniform(1, 3, (300, 3))
    response = with_noise(x[:, 0] ** 2 + np.sin(x[:, 1]) + 3 * np.exp(x[:, 2] / 2), rng, 0.001)
    assert reduce_covariates(np.log(x), np.empty((300, 0)), response) is None


def test_factors_may_change_their_sign(rng, pose):
    x = np.column_stack([rng.uniform(-1, 1, (300, 2)), rng.uniform(1, 2, 300)])
    response = with_noise(x[:, 0] * x[:, 1] / ((x[:, 0] - 10) * x[:, 2] ** 2), rng)
    found = separable_exponents(np.log(np.abs(x)), response, weighted=True)
    np.testing.assert_array_equal(found, [1, 1, -2])


def test_small_responses_do_not_hide_a_factor(rng):
    """Their logarithms are noise, and count as such."""
    x = rng.uniform(1, 3, (300, 3))
    response = with_noise(x[:, 0] / x[:, 1] * np.cos(x[:, 2]) ** 4, rng)
    np.testing.assert_array_equal(
        separable_exponents(np.log(x), response, weighted=True)[:2], [1, -1]
    )


REDUCED = {
    "a function of one group": lambda a, b, c, d: a / (np.exp(b * d / c) + np.exp(-b * d / c)),
    "a power of a sum beside a sum": lambda a, b, c, d: (
        a * np.sqrt(1 - (b / c) ** 2) / (1 + b * np.cos(d) / c)
    ),
    "a sum over a sum": lambda a, b, c, d: d * (a + b) / (1 + a * b / c),
}


@pytest.mark.parametrize("name", REDUCED)
def test_a_law_of_groups_is_found(rng, pose, name):
    """Nothing is left where it was not fitted."""
    low, high = np.array([1, 1, 3, 1]), np.array([3, 2, 9, 3])
    x, fresh = rng.uniform(low, high, (300, 4)), rng.uniform(low, high, (200, 4))
    limits = {"max_complexity": 20, "max_depth": 8, "penalty": 3.0}
    problem = pose(x, REDUCED[name](*x.T), transforms=LAWS, **limits)
    assert all(len(target.bases) < 4 for target in reduced_targets(problem))
    law = REDUCED[name](*fresh.T)
    table = dict(zip(problem.table.names, fresh.T, strict=True))
    left = []
    for column in evaluate(sweep_reduced(problem), table)[0].T:
        design = np.column_stack([np.ones(200), column])
        rest = law - design @ np.linalg.lstsq(design, law, rcond=None)[0]
        left.append(float(rest @ rest) / float(np.sum((law - law.mean()) ** 2)))
    assert min(left) < 1e-15


def test_numbers_are_fitted_to_all_digits(rng):
    column = rng.uniform(0.3, 4.0, 300)
    true = np.array([-0.4321, 1.2345])

    def value(numbers):
        return np.exp(column * numbers[0]) * numbers[1]

    def slopes(numbers):
        return np.column_stack([column * value(numbers), value(numbers) / numbers[1]])

    found = fit_numbers(lambda numbers: value(numbers) - value(true), slopes, np.array([0.5, 0.3]))
    np.testing.assert_allclose(found, true, rtol=1e-12)


def test_differences_take_the_place_of_pairs(rng):
    """Where a response depends on a difference, and not where it depends on both."""
    x = rng.uniform(1, 3, (300, 3))
    a, b, c = x.T
    merged = merged_pairs(x, np.sin(a - b) / c)
    assert sorted(map(tuple, np.abs(merged).tolist())) == [(0.0, 0.0, 1.0), (1.0, 1.0, 0.0)]
    assert np.prod(merged[np.count_nonzero(merged, axis=1) == 2][0][:2]) == -1.0
    np.testing.assert_array_equal(merged_pairs(x, np.sin(a * b) + a / c), np.eye(3))
