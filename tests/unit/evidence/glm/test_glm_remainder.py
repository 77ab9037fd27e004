"""Tests of `dbrm.evidence.glm_remainder`, against quadrature, brute force and the plain engine."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import chi2

from dbrm.evidence import GlmEngine, Jeffreys
from dbrm.evidence.glm_remainder import GlmRemainder

RATIO = 0.7
UNIT = Jeffreys(constant="unit_information")


@pytest.fixture
def rows(rng):
    """Columns of the remainder, columns of a model, and a response of zeros and ones."""
    columns = rng.normal(size=(120, 6)) * [1, 2, 3, 4, 5, 6] + 10.0
    own = np.column_stack([columns[:, 0], columns[:, 1] ** 2])
    eta = (columns - 10.0) @ [0.5, 0.2, -0.1, 0.1, 0.0, 0.1]
    return columns, own, (rng.uniform(size=120) < expit(eta)).astype(float)


def units(columns):
    return columns.std(axis=0) * np.sqrt(columns.shape[1])


def unit_information(own):
    """Prior precision of coefficients: the information of one observation at the null model."""
    centred = own - own.mean(axis=0)
    return centred.T @ centred / len(own)


def test_without_columns_it_is_the_null_model(rows):
    columns, _, response = rows
    engine = GlmEngine(response, UNIT)
    nothing = np.empty((120, 0))
    wanted = engine.log_evidence(nothing)[0]
    found = GlmRemainder.of(engine, columns, units(columns)).find_mode(nothing, 1e-12)
    assert found.log_evidence == pytest.approx(wanted, abs=1e-6)
    assert GlmRemainder.nothing(engine).wide_log_evidence(nothing) == pytest.approx(wanted)


def test_the_fit_is_the_penalised_maximum_with_its_curvature(rows):
    columns, own, response = rows
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), columns, units(columns))
    found = remainder.fit(own, RATIO)
    z = (columns - columns.mean(axis=0)) / units(columns)
    design = np.hstack([np.ones((120, 1)), own, z])
    share = response.mean() * (1.0 - response.mean())
    penalty = np.diag([0.0, 0.0, 0.0, *[1 / RATIO] * 6])
    penalty[1:3, 1:3] = share * unit_information(own)

    def loss(b):
        eta = design @ b
        return np.sum(np.logaddexp(0.0, eta) - response * eta) + 0.5 * b @ penalty @ b

    def slope(b):
        return design.T @ (expit(design @ b) - response) + penalty @ b

    start = np.concatenate([found.fit.coefficients, found.effects])
    best = minimize(loss, start + 0.01, jac=slope, method="BFGS", options={"gtol": 1e-9})
    assert loss(start) - best.fun < 1e-8
    np.testing.assert_allclose(start, best.x, rtol=1e-3, atol=1e-3)
    weights = expit(design @ start) * (1 - expit(design @ start))
    covariance = np.linalg.inv((design * weights[:, None]).T @ design + penalty)
    np.testing.assert_allclose(found.fit.covariance, covariance[:3, :3], rtol=1e-5)
    np.testing.assert_allclose(found.shared, covariance[3:, :3], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(found.effects_covariance, covariance[3:, 3:], rtol=1e-5, atol=1e-12)


def test_evidence_of_one_effect_is_its_integral(rng):
    """Intercept and one effect, integrated numerically; Laplace's method is near that."""
    column = rng.normal(size=(80, 1))
    response = (rng.uniform(size=80) < expit(0.8 * column[:, 0])).astype(float)
    engine = GlmEngine(response, UNIT)
    remainder = GlmRemainder.of(engine, column, column.std(axis=0))
    z = (column[:, 0] - column.mean()) / column.std()

    def joint(b, b0):
        eta = b0 + b * z
        likelihood = np.exp(np.sum(response * eta - np.logaddexp(0.0, eta)) + 55.0)
        return likelihood * np.exp(-0.5 * b * b / RATIO) / np.sqrt(2 * np.pi * RATIO)

    def alone(b0):
        return joint(0.0, b0) * np.sqrt(2 * np.pi * RATIO)

    with_effect, _ = dblquad(joint, -4, 4, -4, 4, epsabs=1e-12)
    grid = np.linspace(-4, 4, 4001)
    without = np.trapezoid([alone(b0) for b0 in grid], grid)
    # The prior of the intercept is Jeffreys' in one, flat in the other: little of the ratio.
    nothing = np.empty((80, 0))
    found = remainder.find_mode(nothing, RATIO).log_evidence - engine.log_evidence(nothing)[0]
    assert found == pytest.approx(np.log(with_effect / without), abs=0.1)


def test_a_row_of_weight_two_is_the_row_twice(rows):
    columns, own, response = rows
    weights = np.where(np.arange(120) < 30, 2.0, 1.0)
    twice = np.repeat(np.arange(120), weights.astype(int))
    weighted = GlmRemainder.of(
        GlmEngine(response, UNIT, weights=weights), columns, units(columns)
    ).fit(own, RATIO)
    repeated = GlmRemainder.of(
        GlmEngine(response[twice], UNIT), columns[twice], units(columns)
    ).fit(own[twice], RATIO)
    np.testing.assert_allclose(weighted.effects, repeated.effects, rtol=1e-6, atol=1e-10)
    assert weighted.fit.log_evidence == pytest.approx(repeated.fit.log_evidence, abs=1e-8)


def test_counts_have_one_too(rng):
    columns = rng.normal(size=(100, 4))
    response = rng.poisson(np.exp(0.5 + columns @ [0.3, -0.2, 0.2, 0.1])).astype(float)
    engine = GlmEngine(response, UNIT, family="poisson")
    assert GlmRemainder.is_possible(engine)
    found = GlmRemainder.of(engine, columns, units(columns)).fit(np.empty((100, 0)), 1.0)
    plain = engine.fit(columns).coefficients[1:]
    shrunk = found.effects / units(columns)
    assert np.all(np.abs(shrunk) < np.abs(plain))
    assert np.corrcoef(shrunk, plain)[0, 1] > 0.99


def by_quadrature(response, column, precision):
    """Log ratio of the integrals with a normal coefficient and without, the intercept flat."""
    b0, b = np.linspace(-4, 4, 41), np.linspace(-8, 16, 241)
    eta = b0[:, None, None] + b[:, None] * column
    logs = np.sum(response * eta - np.logaddexp(0.0, eta), axis=2)
    prior = 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * b**2
    without = np.sum(
        response * b0[:, None] - np.logaddexp(0.0, b0[:, None]) * np.ones(response.size), axis=1
    )
    return logsumexp(logs + prior) + np.log(b[1] - b[0]) - logsumexp(without)


def test_evidence_of_a_coefficient_is_its_integral(rng):
    column = rng.normal(size=50)
    column = (column - column.mean()) / column.std()
    response = (rng.uniform(size=50) < expit(1.2 * column)).astype(float)
    engine = GlmEngine(response, UNIT)
    nothing = GlmRemainder.nothing(engine)
    null = engine.log_evidence(np.empty((50, 0)))[0]
    share = response.mean() * (1.0 - response.mean())
    for width in (1.0, 16.0):
        found = nothing.find_mode(column[:, None], 1.0, width=width).log_evidence
        wanted = by_quadrature(response, column, share / width)
        assert found - null == pytest.approx(wanted, abs=0.15)


def test_the_wide_prior_is_that_of_zellner_and_siow(rng):
    """Their prior is Cauchy's: here a mixture of normals whose precisions are chi-squared."""
    column = rng.normal(size=50)
    column = (column - column.mean()) / column.std()
    response = (rng.uniform(size=50) < expit(2.0 * column)).astype(float)
    engine = GlmEngine(response, UNIT)
    null = engine.log_evidence(np.empty((50, 0)))[0]
    share = response.mean() * (1.0 - response.mean())
    # Equally probable precisions.
    levels = (np.arange(12) + 0.5) / 12
    values = [by_quadrature(response, column, share * chi2.ppf(at, 1)) for at in levels]
    found = GlmRemainder.nothing(engine).wide_log_evidence(column[:, None]) - null
    assert found == pytest.approx(logsumexp(values) - np.log(12), abs=0.2)


def test_separated_classes_have_less_evidence_than_the_highest_likelihood(rng):
    column = np.sort(rng.normal(size=60))
    response = (column > 0).astype(float)
    engine = GlmEngine(response, UNIT)
    found = GlmRemainder.nothing(engine).wide_log_evidence(column[:, None])
    assert found < engine.log_evidence(column[:, None])[0] - 2.0


def test_the_shift_leads_to_the_posterior_mean(rng):
    """One effect of nearly separated classes, against the mean by quadrature."""
    column = rng.normal(size=40)
    column = (column - column.mean()) / column.std()
    response = (column + 0.2 * rng.normal(size=40) > 0).astype(float)
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), column[:, None], np.ones(1))
    found = remainder.fit(np.empty((40, 0)), 4.0)
    b0, b = np.linspace(-6, 6, 61), np.linspace(-5, 15, 201)
    eta = b0[:, None, None] + b[:, None] * column
    p = expit(b0)
    # Jeffreys' prior of the intercept.
    logs = np.sum(response * eta - np.logaddexp(0.0, eta), axis=2) - b**2 / 8.0
    weights = np.exp(logs - logs.max()) * np.sqrt(p * (1 - p))[:, None]
    mean = float(np.sum(weights * b) / np.sum(weights))
    mode = float(found.effects[0])
    assert mean > mode + 0.2
    assert mode + found.shift[1] == pytest.approx(mean, abs=0.4 * (mean - mode))


def test_the_quadratic_at_the_mode_leads_back_to_it(rows):
    columns, own, response = rows
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), columns, units(columns))
    mode = remainder.find_mode(own, RATIO)
    scale = np.full(6, np.sqrt(RATIO))
    found = mode.quadratic(scale)
    effects = np.linalg.solve(found.gram + np.eye(6) / RATIO, found.products)
    # The prior of the coefficients counts for the information of one row of 120.
    np.testing.assert_allclose(effects, mode.parameters[3:] * scale, rtol=0.02, atol=1e-3)


def test_columns_that_separate_have_a_mode_and_those_that_depend_have_none(rows):
    columns, own, response = rows
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), columns, units(columns))
    assert np.isfinite(remainder.find_mode(response[:, None], RATIO).log_evidence)
    assert remainder.find_mode(own[:, [0, 0]], RATIO).log_evidence == -np.inf


@pytest.mark.parametrize("family", ["gamma", "negative_binomial"])
def test_families_with_a_dispersion_have_none(rng, family):
    response = rng.poisson(5.0, size=30) + 1.0
    assert not GlmRemainder.is_possible(GlmEngine(response, UNIT, family=family))


def test_wald_statistics_are_squared_coefficients_over_variances(rows):
    columns, own, response = rows
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), columns, units(columns))
    fit = remainder.fit(own, RATIO).fit
    wanted = fit.coefficients[1:] ** 2 / np.diag(fit.covariance)[1:]
    np.testing.assert_allclose(remainder.find_mode(own, RATIO).wald, wanted, rtol=1e-6)
