"""Tests of `dbrm.posterior.mixture`: mixtures of t distributions against SciPy."""

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
