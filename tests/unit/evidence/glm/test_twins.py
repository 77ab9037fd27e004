"""The compiled GLM population against its NumPy twin, and users' own families and links."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.special
import scipy.stats
from scipy.special import expit

from dbrm._kernels.bits import unpack_index
from dbrm.evidence.coefficient_priors import BIC, EBLocal, GPrior, Jeffreys, Normal, NormalLogGamma
from dbrm.evidence.families import FAMILIES, ExponentialFamily
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.glm_population import GlmPopulation
from dbrm.evidence.glm_python import PythonPopulation
from dbrm.evidence.links import LINKS, Link
from dbrm.status import Status

MASKS = unpack_index(np.arange(8), 3)
CASES = [
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("negative_binomial", "log"),
    ("gaussian", "log"),
]
PRIORS = [
    Jeffreys(),
    BIC(),
    GPrior(),
    EBLocal(),
    Normal(2.0),
    Normal(0.2, standardised=True),
    NormalLogGamma(1.0, 0.05),
]


class PlainLink(Link):
    """A built-in link without its compiled version."""

    code = None

    def __init__(self, link):
        self._link = link
        self.name, self.mean_interval = link.name, link.mean_interval

    def eta(self, mean):
        return self._link.eta(mean)

    def mean(self, eta):
        return self._link.mean(eta)

    def slope(self, eta):
        return self._link.slope(eta)

    def curvature(self, eta):
        return self._link.curvature(eta)


def simulate(rng, family, link, n=90):
    columns = rng.uniform(-1, 1, (n, 3))
    wave = columns @ [0.8, -0.5, 0.0]
    if family == "binomial":
        trials = rng.integers(0, 4, n).astype(float)
        return columns, rng.binomial(trials.astype(int), expit(wave)).astype(float), trials
    mean = {"identity": 4 + wave, "inverse": 1 / (1.5 + 0.5 * wave)}.get(link, np.exp(wave + 0.5))
    dispersion = {"gaussian": 0.05}.get(family, 0.4)
    return columns, FAMILIES[family].rvs(rng, mean, dispersion), None


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: p.name)
@pytest.mark.parametrize(("family", "link"), CASES)
def test_compiled_equals_python(rng, family, link, prior):
    columns, y, trials = simulate(rng, family, link)
    offset, weights = 0.1 * rng.random(y.size), rng.integers(1, 3, y.size).astype(float)
    options = {"offset": offset, "weights": weights, "trials": trials, "always": columns[:, 2:]}
    fast = GlmEngine(y, prior, family, link, **options)
    slow = GlmEngine(y, prior, family, PlainLink(LINKS[link]), **options)
    population, twin = fast.prepare(columns[:, :2]), slow.prepare(columns[:, :2])
    assert isinstance(population, GlmPopulation)
    assert isinstance(twin, PythonPopulation)
    masks = unpack_index(np.arange(4), 2)
    values, statuses = population.log_evidence(masks)
    others, other_statuses = twin.log_evidence(masks)
    np.testing.assert_allclose(values, others, rtol=1e-11, atol=1e-7)
    np.testing.assert_array_equal(statuses, other_statuses)
    one, two = fast.fit(columns[:, :2]), slow.fit(columns[:, :2])
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(fast.project(columns), slow.project(columns), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        fast.score_test(columns[:, :1]).residual,
        slow.score_test(columns[:, :1]).residual,
        atol=1e-6,
    )


@dataclass(frozen=True)
class Geometric(ExponentialFamily):
    """A user's own family, as short as one can be."""

    name = "geometric"
    default_link = "log"
    mean_interval = support = (0.0, np.inf)
    discrete = True

    def log_density(self, y, mean, dispersion=1.0, trials=None):
        return scipy.special.xlogy(y, mean) - (y + 1) * np.log1p(mean)

    def variance(self, mean, dispersion=1.0):
        return mean * (1 + mean)

    def cdf(self, y, mean, dispersion=1.0, trials=None):
        return scipy.stats.nbinom.cdf(y, 1, 1 / (1 + mean))

    def quantile(self, probability, mean, dispersion=1.0, trials=None):
        return scipy.stats.nbinom.ppf(probability, 1, 1 / (1 + mean))


@dataclass(frozen=True)
class Cauchit(Link):
    """A user's own link."""

    name = "cauchit"
    mean_interval = (0.0, 1.0)

    def eta(self, mean):
        return np.tan(np.pi * (mean - 0.5))

    def mean(self, eta):
        return 0.5 + np.arctan(eta) / np.pi

    def slope(self, eta):
        return 1 / (np.pi * (1 + eta**2))

    def curvature(self, eta):
        return -2 * eta / (np.pi * (1 + eta**2) ** 2)


def test_users_family_is_what_it_should_be(rng):
    """The geometric is the negative binomial with dispersion one."""
    columns = rng.standard_normal((100, 3))
    y = Geometric().rvs(rng, np.exp(0.5 * columns[:, 0]))
    from dbrm.evidence.families import NegativeBinomial

    for prior in (Jeffreys(), GPrior(), Normal(5.0)):
        mine = GlmEngine(y, prior, Geometric()).prepare(columns).log_evidence(MASKS)
        known = GlmEngine(y, prior, NegativeBinomial(1.0)).prepare(columns).log_evidence(MASKS)
        np.testing.assert_allclose(mine[0], known[0], atol=1e-7)


def test_users_link_finds_the_maximum(rng):
    columns = rng.standard_normal((200, 1))
    y = (rng.random(200) < Cauchit().mean(columns[:, 0])).astype(float)
    fit = GlmEngine(y, Jeffreys(), "binomial", Cauchit()).fit(columns)
    assert fit.status is Status.OK

    def likelihood(b):
        mean = Cauchit().mean(b[0] + columns[:, 0] * b[1])
        return np.sum(y * np.log(mean) + (1 - y) * np.log1p(-mean))

    best = likelihood(fit.coefficients)
    assert fit.log_likelihood == pytest.approx(best, abs=1e-8)
    moves = rng.standard_normal((100, 2)) * 1e-3
    assert all(likelihood(fit.coefficients + m) < best for m in moves)
