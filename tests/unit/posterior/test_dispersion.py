"""Posterior of the dispersion, against closed forms and sums over fine grids."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import dbrm
from dbrm.evidence import GlmEngine, find_link, resolve_prior
from dbrm.evidence.families import Gaussian, NegativeBinomial
from dbrm.evidence.predictor import predictor_likelihood
from dbrm.posterior.dispersion import dispersion_posteriors
from dbrm.posterior.family_mixture import FamilyMixture


def posterior_of(x, y, family, link=None):
    engine = GlmEngine(y, resolve_prior("jeffreys"), family, link)
    fit = engine.fit(x)
    one = np.ones((y.size, 1))
    every = [np.arange(x.shape[1])]
    return fit, dispersion_posteriors(engine.likelihood(), one, x, every, [fit])[0]


def test_with_gaussian_noise_predictions_are_t_distributed(rng):
    """Mixed over the dispersion, a normal response is t with n - p degrees of freedom."""
    n, x = 9, rng.normal(size=(9, 2))
    y = x[:, 0] + rng.normal(size=n)
    exact = dbrm.enumerate_models(x, y)._source
    fit = exact.problem.engine.fit(x)
    # The engine's dispersion is RSS/(n - p); the likelihood is largest at RSS/n.
    rss = fit.dispersion * 6
    likelihood = predictor_likelihood(Gaussian(), find_link("identity"), y)
    one = np.ones((n, 1))
    (found,) = dispersion_posteriors(likelihood, one, x, [np.arange(2)], [fit])
    assert found.weights @ found.values == pytest.approx(rss / 4, rel=2e-2)
    size = found.values.size
    mixed = FamilyMixture(
        Gaussian(),
        find_link("identity"),
        found.weights[:, None],
        np.zeros((size, 1)),
        np.sqrt(found.values)[:, None] * 0.5,
        found.values,
    )
    t = stats.t(6, scale=np.sqrt(rss / 6 * 1.25))
    for level in (0.01, 0.05, 0.5, 0.95, 0.99):
        assert mixed.cdf(t.ppf([level]))[0] == pytest.approx(level, abs=5e-4)
    # Negative control: the fitted dispersion alone is far off.
    assert abs(stats.norm.cdf(t.ppf(0.99), scale=np.sqrt(rss / 9 * 1.25)) - 0.99) > 5e-3


def test_a_gamma_dispersion_has_its_integrated_posterior(rng):
    """One mean: shape and mean integrated over a grid in two dimensions."""
    y = rng.gamma(2.0, 1.0, size=12)
    fit, found = posterior_of(np.empty((12, 0)), y, "gamma")
    mean, log_shape = np.meshgrid(np.linspace(-2, 4, 801), np.linspace(-4, 6, 1001))
    shape = np.exp(log_shape)
    # Flat in the log mean and the log shape.
    value = 12 * (shape * (log_shape - mean) - special.gammaln(shape))
    value += (shape - 1) * np.log(y).sum() - shape * y.sum() / np.exp(mean)
    mass = np.exp(value - value.max())
    average = (mass * -log_shape).sum() / mass.sum()
    spread = np.sqrt((mass * (log_shape + average) ** 2).sum() / mass.sum())
    ours = found.weights @ np.log(found.values)
    assert ours == pytest.approx(average, abs=0.02)
    assert np.sqrt(found.weights @ (np.log(found.values) - ours) ** 2) == pytest.approx(
        spread, rel=0.03
    )
    assert ours - np.log(fit.dispersion) > 0.05
    np.testing.assert_allclose(found.factors, found.values / fit.dispersion)


def test_a_negative_binomial_dispersion_has_its_integrated_posterior(rng):
    """One mean: flat in its logarithm, with a uniform phi/(1 + phi)."""
    y = rng.negative_binomial(2, 0.3, size=15).astype(float)
    _, found = posterior_of(np.empty((15, 0)), y, NegativeBinomial())

    def density(log_phi):
        phi = np.exp(log_phi)

        def over_mean(eta):
            mean = np.exp(eta)
            terms = NegativeBinomial().log_density(y, np.full(15, mean), phi)
            return np.exp(terms.sum() + 40.0)

        inner = integrate.quad(over_mean, -1.0, 4.5, epsrel=1e-6)[0]
        return inner * phi / (1 + phi) ** 2

    grid = np.linspace(-7, 3, 41)
    mass = np.array([density(v) for v in grid])
    average = mass @ grid / mass.sum()
    ours = found.weights @ np.log(found.values)
    assert ours == pytest.approx(average, abs=0.05)


def test_without_overdispersion_the_posterior_is_still_one(rng):
    """Counts less variable than Poisson: the likelihood has its supremum at zero."""
    y = np.tile([4.0, 5.0, 5.0, 6.0], 5)
    fit, found = posterior_of(np.empty((20, 0)), y, NegativeBinomial())
    assert fit.dispersion < 1e-6
    assert found.weights.sum() == pytest.approx(1.0)
    assert 0.001 < found.weights @ found.values < 0.2


def test_what_is_known_or_overwhelming_stays_at_the_fit(rng):
    y = rng.gamma(2.0, 1.0, size=6000)
    for response, family in ((y, "gamma"), (rng.poisson(y[:20]).astype(float), "poisson")):
        fit, found = posterior_of(np.empty((response.size, 0)), response, family)
        assert found.values.tolist() == [fit.dispersion]


def test_saved_posteriors_keep_the_dispersion(rng, tmp_path):
    x = rng.normal(size=(20, 1))
    y = rng.gamma(2.0, np.exp(0.5 * x[:, 0]) / 2.0)
    posterior = dbrm.enumerate_models(x, y, family="gamma")
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    assert np.array_equal(loaded.predict_interval(x), posterior.predict_interval(x))
    plug = dbrm.enumerate_models(x, y, family="gamma", uncertainty="plugin")
    assert np.all(np.diff(plug.predict_interval(x)) < np.diff(posterior.predict_interval(x)))
