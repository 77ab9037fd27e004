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
        (["x"], [0.05, 2.0], 1),
        (["x"], [0.5, 2.0], 2),
        (["x", "z*x"], [0.0, 2.0, 1.0], 2),
        (["sin{1.0*x - 1.0*z}"], [0.0, 2.0], 1),
        (["x*exp{0.3 - 2.0*z + 1.0*x}"], [5.0, 2.0], 4),
        (["sin(exp{0.5*x})"], [0.0, 2.0], 2),
    ],
)
def test_what_counts_as_a_fitted_number(texts, coefficients, count):
    assert count_fitted_numbers(model(texts, coefficients)) == count


@pytest.mark.parametrize(("noise", "flexible"), [(0.3, True), (1e-4, False), (0.0, False)])
def test_the_same_formula_is_believed_with_smaller_errors(rng, noise, flexible):
    """Three coefficients and an intercept: four numbers, and four digits are enough for them."""
    x = rng.normal(size=(80, 3))
    y = 3.0 + x @ [1.0, 2.0, -1.0] + noise * rng.normal(size=80)
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
