"""Tests of `dbrm.evidence.remainder`, against dense matrices."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from dbrm.evidence import GaussianEngine, ZellnerSiow
from dbrm.evidence.remainder import Remainder

RATIO = 0.7


@pytest.fixture
def rows(rng):
    """Columns of the remainder, columns of a model, and a response."""
    columns = rng.normal(size=(30, 6)) * [1, 2, 3, 4, 5, 6] + 10.0
    own = np.column_stack([columns[:, 0], columns[:, 1] ** 2])
    response = columns @ [0.3, 0.2, -0.1, 0.1, 0.0, 0.1] + rng.normal(size=30)
    return columns, own, response


def dense(columns, ratio):
    """Columns in their units, and the covariance matrix of the rows over the noise variance."""
    units = columns.std(axis=0) * np.sqrt(columns.shape[1])
    z = (columns - columns.mean(axis=0)) / units
    return units, z, np.eye(len(z)) + ratio * z @ z.T


def test_evidence_is_that_of_correlated_rows(rows):
    columns, own, response = rows
    units, _, v = dense(columns, RATIO)
    remainder = Remainder.of(GaussianEngine(response, ZellnerSiow()), columns, units)
    masks = np.array([[False, False], [True, False], [True, True]])
    found = remainder.log_evidence(remainder.prepare(own, RATIO), masks, RATIO)
    root = np.linalg.inv(sqrtm(v).real)
    engine = GaussianEngine(root @ response, ZellnerSiow())
    wanted = [
        engine.log_evidence(root @ own[:, mask])[0] - 0.5 * np.linalg.slogdet(v)[1]
        for mask in masks
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_no_model_is_evidence_of_a_multivariate_t(rows):
    """Against a model without a remainder the constants cancel."""
    columns, _, response = rows
    units, _, v = dense(columns, RATIO)
    engine = GaussianEngine(response, ZellnerSiow())
    remainder = Remainder.of(engine, columns, units)
    nothing = np.empty((30, 0))
    found = remainder.log_evidence(
        remainder.prepare(nothing, RATIO), np.zeros((1, 0), dtype=bool), RATIO
    )[0]
    centred = response - response.mean()
    squares = centred @ np.linalg.solve(v, centred) / (centred @ centred)
    wanted = -0.5 * np.linalg.slogdet(v)[1] - 0.5 * 29 * np.log(squares)
    assert found - engine.log_evidence(nothing)[0] == pytest.approx(wanted, rel=1e-9)


def test_effects_and_coefficients_are_the_joint_posterior(rows):
    columns, own, response = rows
    units, z, v = dense(columns, RATIO)
    found = Remainder.of(GaussianEngine(response, ZellnerSiow()), columns, units).fit(own, RATIO)
    centred = own - own.mean(axis=0)
    information = centred.T @ np.linalg.solve(v, centred)
    # The g-prior is that which shrinks as the fit did.
    shrinkage = (found.fit.covariance[1:, 1:] @ information)[0, 0]
    prior = np.zeros((8, 8))
    prior[:2, :2] = information * (1.0 - shrinkage) / shrinkage
    prior[2:, 2:] = np.eye(6) / RATIO
    design = np.hstack([centred, z])
    covariance = np.linalg.inv(design.T @ design + prior)
    mean = covariance @ design.T @ response
    np.testing.assert_allclose(found.fit.coefficients[1:], mean[:2], rtol=1e-8)
    np.testing.assert_allclose(found.effects, mean[2:], rtol=1e-8)
    np.testing.assert_allclose(found.fit.covariance[1:, 1:], covariance[:2, :2], rtol=1e-8)
    np.testing.assert_allclose(found.shared[:, 1:], covariance[2:, :2], rtol=1e-7, atol=1e-14)
    np.testing.assert_allclose(found.effects_covariance, covariance[2:, 2:], rtol=1e-7)


def test_a_row_of_weight_two_is_the_row_twice(rows):
    columns, own, response = rows
    units = columns.std(axis=0)
    weights = np.where(np.arange(30) < 5, 2.0, 1.0)
    twice = np.repeat(np.arange(30), weights.astype(int))
    weighted = Remainder.of(GaussianEngine(response, ZellnerSiow(), weights), columns, units)
    repeated = Remainder.of(GaussianEngine(response[twice], ZellnerSiow()), columns[twice], units)
    first, second = weighted.fit(own, RATIO), repeated.fit(own[twice], RATIO)
    np.testing.assert_allclose(first.effects, second.effects, rtol=1e-10)
    np.testing.assert_allclose(first.fit.coefficients, second.fit.coefficients, rtol=1e-10)
