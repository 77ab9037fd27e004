"""The mean of a coefficient posterior, against sums over a fine grid."""

import numpy as np
import pytest
import scipy.special

import dbrm

GRID = np.linspace(-6.0, 9.0, 1201)


def exact_mean(log_likelihood):
    """Mean of intercept and slope under a flat prior."""
    first, second = np.meshgrid(GRID, GRID, indexing="ij")
    value = np.array([[log_likelihood(a, b) for b in GRID[::8]] for a in GRID[::8]])
    weight = np.exp(value - value.max())
    first, second = first[::8, ::8], second[::8, ::8]
    return np.array([(weight * first).sum(), (weight * second).sum()]) / weight.sum()


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_the_shift_takes_the_mode_to_the_mean(family, rng):
    x = rng.normal(size=(60, 1))
    eta = 0.3 + 1.4 * x[:, 0]
    if family == "binomial":
        y = (rng.random(60) < scipy.special.expit(eta)).astype(float)
        values = lambda e: y * e - np.logaddexp(0, e)  # noqa: E731
    else:
        y = rng.poisson(np.exp(eta - 1.0)).astype(float)
        values = lambda e: y * e - np.exp(e)  # noqa: E731
    posterior = dbrm.fit(x, y, family=family, always=["x1"], algorithm="enumerate")
    averaged = posterior._averaged
    mode = averaged.fits[0].coefficients
    mean = exact_mean(lambda a, b: values(a + b * x[:, 0]).sum())
    assert np.abs(averaged.centre(0) - mean).max() < 0.25 * np.abs(mode - mean).max()


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
