"""Laplace's approximation against two-dimensional quadrature of the exact integrand."""

import numpy as np
import pytest
from scipy.special import expit

from dbrm.evidence.coefficient_priors import Jeffreys, Normal, NormalLogGamma
from dbrm.evidence.families import FAMILIES
from dbrm.evidence.glm import GlmEngine


def simulate(rng, family, n):
    x = rng.standard_normal(n)
    eta = 0.3 + 0.7 * x
    if family == "binomial":
        return x, (rng.random(n) < expit(eta)).astype(float)
    return x, rng.poisson(np.exp(eta)).astype(float)


def integrate(family, x, y, engine, log_prior, *, nodes=121, width=9.0):
    """Log of the integral of likelihood times prior over intercept and slope, trapezoidal rule."""
    fit = engine.fit(x[:, None])
    mode = fit.coefficients
    root = np.linalg.cholesky(fit.covariance)
    across, along = np.linspace(-width, width, 121), np.linspace(-width, width, nodes)
    u, v = (g.ravel() for g in np.meshgrid(across, along, indexing="ij"))
    b0 = mode[0] + root[0, 0] * u
    b1 = mode[1] + root[1, 0] * u + root[1, 1] * v
    value = np.zeros(u.size)
    information = np.zeros((3, u.size))
    for xi, yi in zip(x, y, strict=True):
        eta = b0 + b1 * xi
        if family == "binomial":
            value += yi * eta - np.logaddexp(0, eta)
            weight = expit(eta) * expit(-eta)
        else:
            value += FAMILIES["poisson"].log_density(np.float64(yi), np.exp(eta))
            weight = np.exp(eta)
        information += weight * np.array([[1.0], [xi], [xi * xi]])
    value += log_prior(b1, information)
    volume = (across[1] - across[0]) * (along[1] - along[0]) * root[0, 0] * root[1, 1]
    return float(np.logaddexp.reduce(value)) + np.log(volume)


def jeffreys(slope, information):
    determinant = information[0] * information[2] - information[1] ** 2
    return 0.5 * np.log(np.maximum(determinant, 1e-300))


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize(("n", "bound"), [(20, 0.15), (64, 0.05), (200, 0.015)])
def test_jeffreys_is_close_to_the_integral(rng, family, n, bound):
    """Known errors are +0.048, +0.019 and +0.004 for n = 20, 64, 200; they shrink like 1/n."""
    x, y = simulate(rng, family, n)
    engine = GlmEngine(y, Jeffreys(), family)
    exact = integrate(family, x, y, engine, jeffreys, nodes=181, width=14.0)
    value, _ = engine.log_evidence(x[:, None])
    assert abs(value - exact) < bound


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("variance", [0.1, 25.0])
@pytest.mark.parametrize(("n", "bound"), [(30, 0.1), (200, 0.015)])
def test_normal_prior_is_close_to_the_integral(rng, family, variance, n, bound):
    x, y = simulate(rng, family, n)
    engine = GlmEngine(y, Normal(variance), family)

    def prior(slope, information):
        return -0.5 * (np.log(2 * np.pi * variance) + slope**2 / variance)

    exact = integrate(family, x, y, engine, prior)
    value, _ = engine.log_evidence(x[:, None])
    assert abs(value - exact) < bound


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("rate", [5e-5, 0.5])
@pytest.mark.parametrize("strength", [0.0, 0.7])
def test_unknown_precision_is_close_to_the_integral(rng, family, rate, strength):
    """The closed-form marginal prior is integrated as it stands, spike and tails."""
    n = 150
    x = rng.standard_normal(n)
    eta = 0.2 + strength * x
    if family == "binomial":
        y = (rng.random(n) < expit(eta)).astype(float)
    else:
        y = rng.poisson(np.exp(eta)).astype(float)
    member = NormalLogGamma(1.0, rate)

    def prior(slope, information):
        power = 0.5 + member.shape
        constant = member.radial(0.0, 1).value + power * np.log(rate)
        return constant - power * np.log(rate + 0.5 * slope**2)

    # Enough nodes to see a spike of width sqrt(rate) = 0.007 at slope zero.
    engine = GlmEngine(y, Normal(100.0), family)
    exact = integrate(family, x, y, engine, prior, nodes=1201)
    value, _ = GlmEngine(y, member, family).log_evidence(x[:, None])
    assert abs(value - exact) < 0.03


def test_jeffreys_constant_is_two_pi_for_each_coefficient(rng):
    x, y = simulate(rng, "poisson", 50)
    columns = np.column_stack([x, rng.standard_normal(50)])
    for constant, each in (
        ("paper", np.log(2 * np.pi)),
        ("unit_information", np.log(2 * np.pi / 50)),
        ("none", 0.0),
    ):
        engine = GlmEngine(y, Jeffreys(constant), "poisson")
        fit = engine.fit(columns)
        assert fit.log_evidence - fit.log_likelihood == pytest.approx(1.5 * each, abs=1e-9)
