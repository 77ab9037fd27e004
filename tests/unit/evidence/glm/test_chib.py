"""Chib's and Chib and Jeliazkov's estimates against exact values; 4 standard errors."""

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit
from tests.unit.evidence.glm.chib import NormalPrior, chib_gaussian, chib_jeliazkov

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors import Normal
from dbrm.evidence.families import FAMILIES
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.links import LINKS

# Four standard errors from 40 batches: one false alarm in about 4000 runs of a right
# estimator; the seed is fixed by the test's name.
FOUR = 4.0


def prior(k, variance):
    return NormalPrior(np.zeros(k), variance * np.eye(k))


def design(rng, n, k):
    return np.column_stack([np.ones(n), rng.standard_normal((n, k - 1))])


def exact_gaussian(x, y, shape, rate, variance):
    """Integrate the noise variance out numerically; the coefficients are Gaussian."""
    values, vectors = np.linalg.eigh(variance * x @ x.T)
    rotated = vectors.T @ y
    log_s = np.linspace(-8, 6, 4001)
    s = np.exp(log_s)[:, None]
    like = -0.5 * np.sum(np.log(2 * np.pi * (values + s)) + rotated**2 / (values + s), axis=1)
    inverse_gamma = scipy.stats.invgamma.logpdf(s[:, 0], shape, scale=rate) + log_s
    return np.logaddexp.reduce(like + inverse_gamma) + np.log(log_s[1] - log_s[0])


def test_gaussian_gibbs(rng):
    x = design(rng, 50, 3)
    y = x @ [0.5, 1.0, 0.0] + rng.standard_normal(50)
    estimate = chib_gaussian(rng, x, y, prior(3, 4.0), shape=2.0, rate=1.5, draws=5000)
    exact = exact_gaussian(x, y, 2.0, 1.5, 4.0)
    assert abs(estimate.value - exact) < FOUR * estimate.standard_error
    assert 0 < estimate.standard_error < 0.02


def quadrature(family, link, x, y, variance, dispersion):
    """Trapezoidal rule over intercept and slope."""
    member, tie = FAMILIES[family], LINKS[link]
    grid = np.linspace(-4.0, 4.0, 401)
    b0, b1 = (g.ravel() for g in np.meshgrid(grid, grid, indexing="ij"))
    value = -np.log(2 * np.pi * variance) - 0.5 * (b0**2 + b1**2) / variance
    for xi, yi in zip(x[:, 1], y, strict=True):
        mean = np.clip(tie.mean(b0 + b1 * xi), 1e-300, None)
        if family == "binomial":
            mean = np.clip(mean, 1e-300, 1 - 1e-16)
        value += member.log_density(np.float64(yi), mean, dispersion)
    return np.logaddexp.reduce(value) + 2 * np.log(grid[1] - grid[0])


@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("binomial", "logit"),
        ("binomial", "probit"),
        ("poisson", "log"),
        ("gamma", "log"),
        ("negative_binomial", "log"),
    ],
)
def test_metropolis_hastings(rng, family, link):
    x = design(rng, 60, 2)
    dispersion = 0.5 if FAMILIES[family].has_dispersion else 1.0
    y = FAMILIES[family].rvs(rng, LINKS[link].mean(x @ [0.3, 0.6]), dispersion)
    estimate = chib_jeliazkov(
        rng, x, y, prior(2, 5.0), family=family, link=link, dispersion=dispersion, draws=8000
    )
    exact = quadrature(family, link, x, y, 5.0, dispersion)
    assert abs(estimate.value - exact) < FOUR * estimate.standard_error
    assert 0 < estimate.standard_error < 0.02


def test_metropolis_hastings_agrees_with_laplace(rng):
    """Within 0.15 for n >= 50 and three coefficients; a wide intercept prior is nearly flat."""
    x = design(rng, 80, 3)
    y = (rng.random(80) < expit(x @ [0.2, 0.8, -0.5])).astype(float)
    wide = NormalPrior(np.zeros(3), np.diag([1e6, 25.0, 25.0]))
    estimate = chib_jeliazkov(rng, x, y, wide, draws=5000)
    flat = estimate.value + 0.5 * np.log(2 * np.pi * 1e6)
    laplace, _ = GlmEngine(y, Normal(25.0), "binomial").log_evidence(x[:, 1:])
    assert abs(flat - laplace) < 0.15


def test_the_standard_error_can_fail(rng):
    """Negative control: a value off by 0.2 is many standard errors away."""
    x = design(rng, 60, 2)
    y = (rng.random(60) < expit(x[:, 1])).astype(float)
    estimate = chib_jeliazkov(rng, x, y, prior(2, 5.0), draws=4000)
    exact = quadrature("binomial", "logit", x, y, 5.0, 1.0)
    assert abs(estimate.value + 0.2 - exact) > FOUR * estimate.standard_error


def test_priors_must_be_proper():
    with pytest.raises(InvalidSettingError, match="positive definite 2 x 2"):
        NormalPrior(np.zeros(2), np.diag([1.0, 0.0]))
