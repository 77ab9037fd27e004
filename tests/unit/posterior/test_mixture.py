"""Tests of `dbrm.posterior.mixture`: mixtures of t distributions against SciPy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from dbrm.posterior.mixture import StudentMixture


def mixture(seed, n_models=4, n_rows=3):
    draw = np.random.default_rng(seed)
    weights = draw.dirichlet(np.ones(n_models), size=n_rows).T
    df = draw.choice([3.0, 10.0, 200.0, np.inf], size=n_models)
    locations = 3.0 * draw.normal(size=(n_models, n_rows))
    return StudentMixture(weights, locations, draw.uniform(0.1, 2.0, (n_models, n_rows)), df)


def scipy_cdf(mixed, row, value):
    standard = (np.asarray(value)[..., None] - mixed.locations[:, row]) / mixed.scales[:, row]
    df = mixed.degrees_of_freedom
    student = stats.t.cdf(standard, np.where(np.isinf(df), 1.0, df))
    return np.where(np.isinf(df), stats.norm.cdf(standard), student) @ mixed.weights[:, row]


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), level=st.floats(1e-4, 1 - 1e-4))
def test_quantiles_are_those_of_the_mixture(seed, level):
    mixed = mixture(seed)
    found = mixed.quantile(level)
    for row in range(3):
        expected = brentq(
            lambda value, row=row: scipy_cdf(mixed, row, value) - level, -1e3, 1e3, xtol=1e-12
        )
        assert found[row] == pytest.approx(expected, abs=1e-7)
        assert mixed.cdf(found)[row] == pytest.approx(level, abs=1e-9)


def test_one_component_is_the_t_distribution():
    single = StudentMixture(np.ones((1, 1)), np.array([[2.0]]), np.array([[3.0]]), np.array([7.0]))
    for level in (0.01, 0.5, 0.975):
        assert single.quantile(level)[0] == pytest.approx(stats.t.ppf(level, 7, 2.0, 3.0))
    assert single.mean()[0] == 2.0
    assert single.standard_deviation()[0] == pytest.approx(stats.t.std(7, scale=3.0))


def test_infinite_degrees_of_freedom_are_the_normal():
    single = StudentMixture(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.array([np.inf]))
    for level in (1e-6, 0.025, 0.5, 0.999):
        assert single.quantile(level)[0] == pytest.approx(stats.norm.ppf(level), abs=1e-6)
    assert single.standard_deviation()[0] == 1.0


def test_variance_adds_up_within_and_between():
    mixed = mixture(3)
    df = mixed.degrees_of_freedom
    inflation = [1.0 if np.isinf(d) else d / (d - 2) for d in df]
    for row in range(3):
        w, loc = mixed.weights[:, row], mixed.locations[:, row]
        mean = w @ loc
        variance = w @ (mixed.scales[:, row] ** 2 * inflation) + w @ (loc - mean) ** 2
        assert mixed.mean()[row] == pytest.approx(mean)
        assert mixed.standard_deviation()[row] == pytest.approx(np.sqrt(variance))


def test_a_t_without_variance_has_none():
    heavy = StudentMixture(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.array([2.0]))
    assert heavy.standard_deviation()[0] == np.inf


def test_draws_follow_the_law(rng):
    """Kolmogorov's test, one false alarm per million runs; the control shifts the law."""
    mixed = mixture(11)
    draws = mixed.sample(rng, 4000)
    for row in range(3):
        uniform = scipy_cdf(mixed, row, draws[:, row])
        assert stats.kstest(uniform, "uniform").pvalue > 1e-6
        shifted = scipy_cdf(mixed, row, draws[:, row] + 0.5)
        assert stats.kstest(shifted, "uniform").pvalue < 1e-6


def test_a_model_without_weight_does_not_matter():
    """Also one whose location is absurd: its features may be undefined in that row."""
    mixed = mixture(5, n_models=2, n_rows=1)
    weights = np.vstack([mixed.weights, [[0.0]]])
    locations = np.vstack([mixed.locations, [[1e12]]])
    scales = np.vstack([mixed.scales, [[1.0]]])
    more = StudentMixture(weights, locations, scales, np.append(mixed.degrees_of_freedom, 5.0))
    assert more.quantile(0.9)[0] == pytest.approx(mixed.quantile(0.9)[0], abs=1e-9)
    assert np.abs(more.sample(np.random.default_rng(0), 500)).max() < 1e3


def test_a_row_without_models_is_not_a_number(rng):
    nothing = StudentMixture(
        np.array([[np.nan, 1.0]]), np.zeros((1, 2)), np.ones((1, 2)), np.array([5.0])
    )
    for found in (nothing.mean(), nothing.quantile(0.3), nothing.sample(rng, 5)[0]):
        assert np.isnan(found[0])
        assert np.isfinite(found[1])


def squares(seed, n_models=4, n_rows=3):
    """A mixture, the first two of whose models are of the root of the response plus 0.4."""
    plain = mixture(seed, n_models, n_rows)
    df = np.where(np.isinf(plain.degrees_of_freedom), np.inf, 10.0)
    own = np.arange(n_models) < 2
    locations = np.where(own[:, None], np.abs(plain.locations), plain.locations)
    origins = np.full((n_models, n_rows), 0.4)
    return replace(plain, locations=locations, degrees_of_freedom=df, squares=own, origins=origins)


def response(mixed, model, row, t):
    """The response where the t variable, of location zero and scale one, is `t`."""
    z = mixed.locations[model, row] + mixed.scales[model, row] * t
    return z**2 - 0.4 if mixed.squares[model] else z


def integrate(mixed, row, function):
    """Expectation of a function of the response, over a fine grid of each model's quantiles."""
    levels = (np.arange(400_000) + 0.5) / 400_000
    total = 0.0
    for model, df in enumerate(mixed.degrees_of_freedom):
        law = stats.norm if np.isinf(df) else stats.t(df)
        values = function(response(mixed, model, row, law.ppf(levels)))
        total += mixed.weights[model, row] * values.mean()
    return total


@pytest.mark.parametrize("seed", [1, 2])
def test_moments_and_cdf_of_squares(seed):
    mixed = squares(seed)
    values = np.array([-0.3, 0.7, 6.0])
    for row in range(3):
        mean = integrate(mixed, row, lambda y: y)
        assert mixed.mean()[row] == pytest.approx(mean, abs=1e-4)
        variance = integrate(mixed, row, lambda y, mean=mean: (y - mean) ** 2)
        assert mixed.standard_deviation()[row] == pytest.approx(np.sqrt(variance), rel=5e-3)
        below = integrate(mixed, row, lambda y, row=row: y <= values[row])
        assert mixed.cdf(values)[row] == pytest.approx(below, abs=1e-5)


@pytest.mark.parametrize("kind", [mixture, squares])
def test_log_density_is_the_derivative_of_the_cdf(kind):
    mixed, step = kind(4), 1e-5
    for value in (-3.0, -0.1, 0.9, 8.0):
        at = np.full(3, value)
        slope = (mixed.cdf(at + step) - mixed.cdf(at - step)) / (2.0 * step)
        np.testing.assert_allclose(np.exp(mixed.log_density(at)), slope, rtol=1e-4, atol=1e-9)


def test_quantiles_and_draws_of_squares(rng):
    """Kolmogorov's test, one false alarm per million runs; the control leaves the origin out."""
    mixed = squares(5)
    for level in (0.025, 0.4, 0.975):
        found = mixed.quantile(level)
        np.testing.assert_allclose(mixed.cdf(found), level, atol=1e-9)
    draws = mixed.sample(rng, 4_000)
    for row in range(3):
        uniform = np.array([mixed.cdf(np.full(3, y))[row] for y in draws[:, row]])
        assert stats.kstest(uniform, "uniform").pvalue > 1e-6
    wrong = replace(mixed, origins=mixed.origins - 4.0).sample(rng, 4_000)
    uniform = np.array([mixed.cdf(np.full(3, y))[0] for y in wrong[:, 0]])
    assert stats.kstest(uniform, "uniform").pvalue < 1e-6


def test_quantiles_of_the_mean_of_squares(rng):
    """The mean of a square given the coefficients is their square and the noise's variance."""
    one, leverage = np.ones((1, 1)), 0.25
    mixed = StudentMixture(
        one, 3.0 * one, 0.5 * one, np.array([20.0]), leverage * one, one[0] > 0, 0.4 * one
    )
    # The scale holds noise and coefficients in the proportion of 1 and the leverage.
    noise = 0.25 / (1.0 + leverage) * 20.0 / 18.0
    z = 3.0 + np.sqrt(0.25 * leverage / (1.0 + leverage)) * rng.standard_t(20.0, size=400_000)
    for level in (0.05, 0.5, 0.9):
        expected = np.quantile(z**2, level) + noise - 0.4
        assert mixed.mean_quantile(level)[0] == pytest.approx(expected, rel=5e-3)
