"""Tests of `dbrm.evidence.glm_remainder`, against quadrature, brute force and the plain engine."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize
from scipy.special import expit

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


def test_without_variance_it_is_the_plain_model(rows):
    columns, own, response = rows
    engine = GlmEngine(response, UNIT)
    mode = GlmRemainder.of(engine, columns, units(columns)).find_mode(own, 1e-12)
    assert mode.log_evidence == pytest.approx(engine.log_evidence(own)[0], abs=1e-6)


def test_the_fit_is_the_penalised_maximum_with_its_curvature(rows):
    columns, own, response = rows
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), columns, units(columns))
    found = remainder.fit(own, RATIO)
    z = (columns - columns.mean(axis=0)) / units(columns)
    design = np.hstack([np.ones((120, 1)), own, z])
    penalty = np.array([0, 0, 0, *[1 / RATIO] * 6])

    def loss(b):
        eta = design @ b
        return np.sum(np.logaddexp(0.0, eta) - response * eta) + 0.5 * penalty @ b**2

    def slope(b):
        return design.T @ (expit(design @ b) - response) + penalty * b

    start = np.concatenate([found.fit.coefficients, found.effects])
    best = minimize(loss, start + 0.01, jac=slope, method="BFGS", options={"gtol": 1e-9})
    assert loss(start) - best.fun < 1e-8
    np.testing.assert_allclose(start, best.x, rtol=1e-3, atol=1e-3)
    weights = expit(design @ start) * (1 - expit(design @ start))
    covariance = np.linalg.inv((design * weights[:, None]).T @ design + np.diag(penalty))
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


def test_columns_that_separate_or_depend_have_no_mode(rows):
    columns, own, response = rows
    remainder = GlmRemainder.of(GlmEngine(response, UNIT), columns, units(columns))
    assert remainder.find_mode(response[:, None], RATIO).log_evidence == -np.inf
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
