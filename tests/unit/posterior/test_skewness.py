"""The mean of a coefficient posterior, against sums over a fine grid."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.special

import dbrm
from dbrm.evidence import GlmEngine, resolve_prior
from dbrm.posterior.skewness import mean_shifts

GRID = np.linspace(-4.0, 7.0, 181)


def exact_mean(x, log_likelihood, weight, *, jeffreys):
    """Mean of intercept and slope under a flat prior or Jeffreys', by sums over a grid."""
    first, second = (a.ravel() for a in np.meshgrid(GRID, GRID, indexing="ij"))
    eta = first[:, None] + second[:, None] * x
    value = log_likelihood(eta).sum(axis=1)
    if jeffreys:
        w = weight(eta)
        determinant = w.sum(axis=1) * (w @ x**2) - (w @ x) ** 2
        value = value + 0.5 * np.log(np.maximum(determinant, 1e-300))
    mass = np.exp(value - value.max())
    return np.array([mass @ first, mass @ second]) / mass.sum()


def simulate(rng, family):
    x = rng.normal(size=60)
    eta = 0.3 + 1.4 * x
    if family == "binomial":
        y = (rng.random(60) < scipy.special.expit(eta)).astype(float)
        likelihood = lambda e: y * e - np.logaddexp(0, e)  # noqa: E731
        weight = lambda e: scipy.special.expit(e) * scipy.special.expit(-e)  # noqa: E731
    else:
        y = rng.poisson(np.exp(eta - 1.0)).astype(float)
        likelihood, weight = (lambda e: y * e - np.exp(e)), np.exp
    return x, y, likelihood, weight


def centre(x, y, family, prior):
    options = {"family": family, "prior": prior, "always": ["x1"], "algorithm": "enumerate"}
    averaged = dbrm.fit(x[:, None], y, **options)._averaged
    return averaged.fits[0].coefficients, averaged.centre(0)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_under_a_flat_prior_the_shift_takes_the_mode_to_the_mean(family, rng):
    x, y, likelihood, weight = simulate(rng, family)
    mode, shifted = centre(x, y, family, "bic")
    mean = exact_mean(x, likelihood, weight, jeffreys=False)
    assert np.abs(shifted - mean).max() < 0.25 * np.abs(mode - mean).max()


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_under_jeffreys_prior_the_maximum_of_the_likelihood_is_the_mean_already(family, rng):
    x, y, likelihood, weight = simulate(rng, family)
    mode, shifted = centre(x, y, family, "jeffreys")
    np.testing.assert_allclose(shifted, mode, atol=1e-4)
    mean = exact_mean(x, likelihood, weight, jeffreys=True)
    flat = exact_mean(x, likelihood, weight, jeffreys=False)
    assert np.abs(shifted - mean).max() < 0.25 * np.abs(flat - mean).max()


def test_from_firth_s_coefficients_the_shift_goes_to_the_mean_under_jeffreys_prior():
    """Separated classes: the likelihood has no maximum, the posterior has a mode and a mean."""
    x = np.concatenate([np.linspace(-2.0, -0.3, 12), np.linspace(0.1, 2.0, 12)])
    y = (x > 0).astype(float)
    mode, shifted = centre(x, y, "binomial", "jeffreys")
    assert 0.0 < mode[1] < shifted[1]


def test_a_gaussian_posterior_has_its_mean_at_the_mode(rng):
    x = rng.normal(size=(40, 2))
    averaged = dbrm.enumerate_models(x, x[:, 0] + rng.normal(size=40))._averaged
    assert all(not shift.any() for shift in averaged.shifts)


def test_plug_in_predictions_use_the_mode(rng):
    x = rng.normal(size=(60, 1))
    y = (rng.random(60) < scipy.special.expit(2 * x[:, 0])).astype(float)
    options = {"family": "binomial", "always": ["x1"], "algorithm": "enumerate"}
    plug = dbrm.fit(x, y, uncertainty="plugin", **options)
    by_hand = scipy.special.expit(
        np.column_stack([np.ones(60), x]) @ plug.best_model.fit.coefficients
    )
    np.testing.assert_allclose(plug.predict(x), by_hand, rtol=1e-12)
    assert np.abs(dbrm.fit(x, y, **options).predict(x) - by_hand).max() > 1e-4


def test_no_shift_leaves_the_range_of_the_expansion(rng):
    """Separated classes: the likelihood has no mode, and no formula may run away."""
    x = np.linspace(-1, 1, 20)[:, None]
    posterior = dbrm.fit(
        x, (x[:, 0] > 0).astype(float), family="binomial", always=["x1"], algorithm="enumerate"
    )
    fit, shift = posterior._averaged.fits[0], posterior._averaged.shifts[0]
    spread = np.sqrt(np.diag(fit.covariance) * fit.dispersion)
    assert np.all(np.abs(shift) <= 2.0 * spread + 1e-12)
    assert np.isfinite(posterior.predict(x)).all()


def test_sums_that_overflow_shift_nothing_and_warn_of_nothing(rng):
    x, y, _, _ = simulate(rng, "binomial")
    engine = GlmEngine(y, resolve_prior("bic"), "binomial")
    fit = engine.fit(x[:, None])
    one = np.ones((x.size, 1))
    shift = partial(mean_shifts, engine.likelihood(), one, x[:, None], [np.array([0])])
    assert shift([fit], jeffreys=False)[0].any()
    enormous = replace(fit, covariance=fit.covariance * 1e200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not shift([enormous], jeffreys=False)[0].any()
