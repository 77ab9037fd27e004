"""Priors of single coefficients and models without an intercept, against closed forms."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm, poisson

from dbrm.evidence import KnownVariance, Observations, add_latent, build_engine
from dbrm.evidence.coefficient_priors.fixed_g import GPrior
from dbrm.evidence.coefficient_priors.radial import Normal
from dbrm.evidence.latent.hyperpriors import ExponentialDeviation

PRIOR = (0.4, 0.7)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(50, 2)) + 1.0
    return X, 2.0 + 0.8 * X[:, 0] + rng.normal(size=50), rng.normal(size=50) + 0.5


def engine_of(y, always, prior, *, family="gaussian", priors=(PRIOR,), intercept=True):
    seen = Observations(np.asarray(y, dtype=float))
    plain = build_engine(seen, prior, family=family, always=always)
    return add_latent(
        plain,
        seen,
        prior,
        [],
        family=family,
        link=None,
        always=always,
        always_priors=priors,
        intercept=intercept,
    )


def density(y, covariance, mean, flat):
    """Of a normal response, coefficients of the `flat` columns integrated out."""
    value = multivariate_normal(mean, covariance).logpdf(y)
    if flat.shape[1]:
        weights = np.linalg.solve(covariance, flat)
        information = flat.T @ weights
        slope = np.linalg.solve(information, weights.T @ (y - mean))
        value += 0.5 * slope @ information @ slope
        value += 0.5 * flat.shape[1] * np.log(2 * np.pi)
        value -= 0.5 * np.linalg.slogdet(information)[1]
    return value


@pytest.mark.parametrize("intercept", [True, False])
def test_gaussian_with_known_noise_and_normal_priors(data, intercept):
    """Closed form: every coefficient is normal, an intercept flat; to 1e-8."""
    X, y, always = data
    engine = engine_of(y, always[:, None], Normal(3.0), intercept=intercept)
    model = engine.prepare(X).model(np.arange(2), ())
    variance = 1.3
    noise = np.log(engine.unit**2 / variance)
    value = model.at(np.array([noise])).value - ExponentialDeviation().log_density(noise)
    covariance = variance * np.eye(50) + PRIOR[1] ** 2 * np.outer(always, always)
    # The variance of the common prior refers to the response in units of its deviation.
    covariance += 3.0 * engine.unit**2 * X @ X.T
    flat = np.ones((50, int(intercept)))
    expected = density(y, covariance, PRIOR[0] * always, flat)
    expected -= intercept * np.log(engine.unit)
    assert value + engine.constant == pytest.approx(expected, abs=1e-8)


def test_the_comparison_notices_another_deviation(data):
    """Negative control: one per cent more is far outside the tolerance."""
    X, y, always = data
    values = [
        engine_of(
            y, always[:, None], KnownVariance(1.3), priors=((0.4, sd),), intercept=False
        ).log_evidence(X)[0]
        for sd in (0.7, 0.707)
    ]
    assert abs(values[0] - values[1]) > 1e-4


def test_without_an_intercept_and_flat_coefficients(data):
    """The maximised likelihood, Jeffreys' prior with no constant."""
    X, y, always = data
    engine = engine_of(y, always[:, None], KnownVariance(1.3), intercept=False)
    covariance = 1.3 * np.eye(50) + PRIOR[1] ** 2 * np.outer(always, always)
    weights = np.linalg.solve(covariance, X)
    slopes = np.linalg.solve(X.T @ weights, weights.T @ (y - PRIOR[0] * always))
    expected = multivariate_normal(PRIOR[0] * always + X @ slopes, covariance).logpdf(y)
    assert engine.log_evidence(X)[0] == pytest.approx(expected, abs=1e-6)


def test_a_g_prior_without_an_intercept(data):
    r"""With the dispersion known: :math:`-\frac p2\log(1+g)` and the shrunk Wald statistic."""
    X, y, _ = data
    counts = np.round(np.exp(0.2 * y)).astype(float)
    g = 20.0
    engine = engine_of(counts, None, GPrior(g), family="poisson", priors=(), intercept=False)

    beta = np.zeros(2)
    for _ in range(30):
        mean = np.exp(X @ beta)
        information = X.T @ (mean[:, None] * X)
        beta = beta + np.linalg.solve(information, X.T @ (counts - mean))
    wald = beta @ information @ beta
    likelihood = poisson.logpmf(counts, np.exp(X @ beta)).sum()
    expected = likelihood - np.log1p(g) - 0.5 * wald / (1 + g)
    # Newton's method ends at a squared decrement of 1e-10, which the Wald statistic feels.
    assert engine.log_evidence(X)[0] == pytest.approx(expected, abs=5e-6)


def test_poisson_is_laplace_at_the_penalised_mode(data):
    """One coefficient with a normal prior and no intercept: by hand, to 1e-6."""
    _, y, always = data
    counts = np.round(np.exp(0.3 * always + 0.1 * y)).astype(float)
    engine = engine_of(counts, always[:, None], Normal(1.0), family="poisson", intercept=False)

    def loss(beta):
        value = poisson.logpmf(counts, np.exp(always * beta[0])).sum()
        return -value - norm(*PRIOR).logpdf(beta[0])

    best = minimize(loss, [0.3], method="BFGS", options={"gtol": 1e-10})
    curvature = np.sum(np.exp(always * best.x[0]) * always**2) + PRIOR[1] ** -2
    expected = -best.fun + 0.5 * np.log(2 * np.pi / curvature)
    value, _ = engine.log_evidence(np.empty((50, 0)))
    assert value == pytest.approx(expected, abs=1e-6)
    fit = engine.fit(np.empty((50, 0)))
    assert fit.coefficients == pytest.approx([0.0, best.x[0]], abs=1e-6)
    assert fit.covariance[1, 1] * fit.dispersion == pytest.approx(1 / curvature, rel=1e-6)


def test_a_sharp_prior_holds_a_coefficient(data):
    X, y, always = data
    engine = engine_of(y, always[:, None], Normal(10.0), priors=((0.4, 1e-6),))
    fit = engine.fit(X)
    assert fit.coefficients[1] == pytest.approx(0.4, abs=1e-5)
    assert fit.covariance[1, 1] * fit.dispersion == pytest.approx(1e-12, rel=1e-3)


def test_a_vague_prior_and_an_intercept_give_least_squares(data):
    X, y, always = data
    engine = engine_of(y, always[:, None], Normal(1e6), priors=((0.0, 1e3),))
    design = np.column_stack([np.ones(50), always, X])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(engine.fit(X).coefficients, expected, atol=1e-4)
