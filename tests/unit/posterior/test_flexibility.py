"""Tests of `dbrm.posterior.flexibility`: fitted numbers against the digits of the fit."""

from types import SimpleNamespace

import numpy as np
import pytest

import dbrm
from dbrm.posterior.flexibility import count_fitted_numbers
from dbrm.status import Status


def model(texts, coefficients, error=0.1):
    """A fitted model of these features, its intercept first."""
    fit = SimpleNamespace(
        coefficients=np.array(coefficients),
        covariance=np.eye(len(coefficients)) * error**2,
        dispersion=1.0,
        has_intercept=True,
        status=Status.OK,
    )
    return SimpleNamespace(terms=tuple(dbrm.parse_feature(t) for t in texts), fit=fit)


@pytest.mark.parametrize(
    ("texts", "coefficients", "count"),
    [
        (["x"], [0.05, 2.3], 1),
        (["x"], [0.53, 2.3], 2),
        (["x", "z*x"], [0.0, 2.3, 1.7], 2),
        (["sin{1.0*x - 1.0*z}"], [0.0, 2.3], 1),
        (["x*exp{0.3 - 2.0*z + 1.0*x}"], [5.2, 2.3], 4),
        (["sin(exp{0.5*x})"], [0.0, 2.3], 2),
        (["x", "z*x"], [0.0, 1.01, -0.98], 2),
    ],
)
def test_what_counts_as_a_fitted_number(texts, coefficients, count):
    assert count_fitted_numbers(model(texts, coefficients)) == count


def test_coefficients_that_are_short_numbers_to_their_error_were_not_fitted():
    sure = {"error": 0.001}
    assert count_fitted_numbers(model(["x", "z*x"], [0.0, 1.001, -0.4999], **sure)) == 0
    assert count_fitted_numbers(model(["x"], [3.0002, 2 * np.pi], **sure)) == 0
    assert count_fitted_numbers(model(["x"], [0.0, 1 / (2 * np.pi)], error=0.0005)) == 0
    assert count_fitted_numbers(model(["x"], [0.0, 0.5123], **sure)) == 1


@pytest.mark.parametrize(("noise", "flexible"), [(0.3, True), (1e-5, False), (0.0, False)])
def test_the_same_formula_is_believed_with_smaller_errors(rng, noise, flexible):
    """Three coefficients and an intercept: four numbers, and five digits are enough for them."""
    x = rng.normal(size=(80, 3))
    y = 3.141 + x @ [1.313, 2.117, -0.839] + noise * rng.normal(size=80)
    posterior = dbrm.enumerate_models(x, y)
    assert len(posterior.best_model.features) == 3
    assert posterior.may_approximate == flexible
    share = posterior.best_model.probability * (1.0 - posterior.lack_of_fit)
    assert posterior.claim == pytest.approx(share * (0.2 if flexible else 1.0))


def test_a_formula_without_features_claims_little(rng):
    x = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)
    posterior = dbrm.enumerate_models(x, np.tile([1.0, -1.0], 30), prior="zellner-siow")
    assert posterior.best_model.features == ()
    assert posterior.claim <= 0.2
