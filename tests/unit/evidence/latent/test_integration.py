"""Integration over hyperparameters, against densities whose integral is known."""

from functools import partial

import numpy as np
import pytest
from scipy.special import gammaln

from dbrm.evidence.hyper_integration import integrate
from dbrm.evidence.nested_laplace import Point
from dbrm.status import Status


def point(log_density, theta, near=None):
    del near
    empty = np.zeros(0)
    value = float(log_density(theta))
    return Point(theta, value, empty, empty, None, 0.0, Status.OK)


def found(log_density, start):
    evaluate = partial(point, log_density)
    return integrate(evaluate, evaluate(np.array(start, dtype=float)))


def normal(precision, theta):
    centred = theta - np.arange(1.0, theta.size + 1.0)
    root = np.linalg.slogdet(precision / (2 * np.pi))[1]
    return 0.5 * root - 0.5 * centred @ precision @ centred


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_normal_densities(rng, size):
    root = rng.normal(size=(size, size)) + 2.0 * np.eye(size)
    precision = root @ root.T
    result = found(partial(normal, precision), np.zeros(size))
    assert result.log_value == pytest.approx(0.0, abs=0.01)
    assert result.shares.sum() == pytest.approx(1.0)
    if size <= 2:
        mean = sum(s * p.theta for s, p in zip(result.shares, result.points, strict=True))
        np.testing.assert_allclose(mean, np.arange(1.0, size + 1.0), atol=0.05)


@pytest.mark.parametrize("shape", [0.7, 1.0, 5.0])
def test_the_law_of_an_effect_that_is_not_there(shape):
    """LogGamma, skewed to the left, where only the prior speaks."""

    def log_density(theta):
        psi = theta[0]
        return shape * psi - np.exp(psi) - gammaln(shape)

    assert found(log_density, [-2.0]).log_value == pytest.approx(0.0, abs=0.03)


def test_a_far_start_finds_the_mass():
    assert found(partial(normal, np.eye(2) * 9.0), [20.0, -20.0]).log_value == pytest.approx(
        0.0, abs=0.01
    )


def test_the_sum_notices_a_wrong_constant():
    """Negative control: three per cent are seen."""
    value = found(lambda theta: normal(np.eye(1), theta) + 0.03, [0.0]).log_value
    assert abs(value) > 0.02


def test_no_hyperparameters_no_integral():
    assert found(lambda theta: -3.5, []).log_value == -3.5


def test_an_impossible_model_stays_impossible():
    assert found(lambda theta: -np.inf, [0.0]).log_value == -np.inf
