"""Tests of `dbrm.evolution.sweep.polynomials`."""

import pytest

from dbrm.evolution.sweep.polynomials import sweep_polynomials

POWERS = ["sqrt_abs", "square", "power[-1]"]


def texts(features):
    return {feature.text for feature in features}


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_all_powers_of_a_sum_of_many_are_found(rng, pose, noise):
    x = rng.uniform(-1, 1, (150, 1))
    y = sum(x[:, 0] ** k for k in (1, 2, 4, 5)) + noise * rng.normal(size=150)
    found = sweep_polynomials(pose(x, y, transforms=POWERS, penalty=3.0))
    assert texts(found) == {"x1", "square(x1)", "square(square(x1))", "x1*square(square(x1))"}


def test_products_of_two_covariates_are_found(rng, pose):
    x = rng.uniform(-1, 1, (150, 2))
    y = x[:, 0] * x[:, 1] - x[:, 0] ** 3
    found = sweep_polynomials(pose(x, y, transforms=POWERS, penalty=3.0), only_exact=True)
    assert texts(found) == {"x1*x2", "x1*square(x1)"}


def test_what_is_no_polynomial_is_not_exact(rng, pose):
    x = rng.uniform(1, 3, (150, 1))
    problem = pose(x, 1.0 / x[:, 0], transforms=POWERS, penalty=3.0)
    assert sweep_polynomials(problem, only_exact=True) == []
    assert sweep_polynomials(problem)


def test_many_covariates_have_none(rng, pose):
    x = rng.uniform(-1, 1, (150, 4))
    assert sweep_polynomials(pose(x, x[:, 0] ** 2, transforms=POWERS)) == []
    few = pose(x[:20, :1], x[:20, 0] ** 2, transforms=POWERS)
    assert sweep_polynomials(few) == []
