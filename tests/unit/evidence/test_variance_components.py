"""Tests of `dbrm.evidence.variance_components`, against dense matrices and integrals."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from dbrm.evidence import GaussianEngine, ZellnerSiow
from dbrm.evidence.remainder import Remainder, gaussian_quadratic
from dbrm.evidence.variance_components import (
    GROUP_SD,
    Quadratic,
    QuadraticSum,
    components_at,
    find_components,
)

GROUPS = np.array([0, 0, 0, 1, 1, 2])
CENTRE = np.array([0.0, -1.0, 0.5])


@pytest.fixture
def rows(rng):
    """Columns in three groups, of which the second has no effects, and a response."""
    columns = rng.normal(size=(60, 6))
    columns -= columns.mean(axis=0)
    response = columns @ [1.0, -0.8, 0.6, 0.0, 0.0, 0.3] + rng.normal(size=60)
    return columns, response - response.mean()


def quadratic(rows, *, known):
    columns, response = rows
    own = (columns.T @ columns, columns.T @ response)
    return Quadratic(*own) if known else Quadratic(*own, float(response @ response), 59.0)


@pytest.mark.parametrize("known", [True, False])
def test_evidence_is_that_of_correlated_rows(rows, known):
    columns, response = rows
    place = np.array([0.3, -2.0, 1.0])[GROUPS]
    found = quadratic(rows, known=known).log_evidence(place)[0]
    v = np.eye(60) + (columns * np.exp(place)) @ columns.T
    if known:
        alone = multivariate_normal.logpdf(response, cov=np.eye(60))
        assert found == pytest.approx(multivariate_normal.logpdf(response, cov=v) - alone)
    else:
        squares = response @ np.linalg.solve(v, response)
        wanted = -0.5 * np.linalg.slogdet(v)[1] - 0.5 * 59 * np.log(squares)
        assert found == pytest.approx(wanted)


@pytest.mark.parametrize("known", [True, False])
def test_gradient_is_that_of_finite_differences(rows, known):
    own = quadratic(rows, known=known)
    place = np.linspace(-1.0, 1.0, 6)
    _, gradient, _ = own.log_evidence(place)
    wanted = approx_fprime(place, lambda at: own.log_evidence(at)[0], 1e-6)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("known", [True, False])
def test_curvature_is_expected(rng, rows, known):
    """The mean of the curvature over responses that the variances predict."""
    columns, _ = rows
    place = np.array([0.3, -0.5, 1.0])[GROUPS]
    root = np.linalg.cholesky(np.eye(60) + (columns * np.exp(place)) @ columns.T)
    total = np.zeros((6, 6))
    for _ in range(2_000):
        response = root @ rng.normal(size=60)
        own = quadratic((columns, response - response.mean()), known=known)
        gradient = own.log_evidence(place)[1]
        total += np.outer(gradient, gradient) / 2_000
    np.testing.assert_allclose(own.log_evidence(place)[2], total, rtol=0.2, atol=0.05)


def test_the_mode_has_no_slope_and_tells_groups_apart(rows):
    own = quadratic(rows, known=False)
    found = find_components(own, GROUPS, CENTRE)

    def posterior(at):
        away = at - CENTRE
        prior = multivariate_normal.logpdf(
            away, cov=GROUP_SD**2 * np.eye(3) + 4.0 * np.ones((3, 3))
        )
        return own.log_evidence(at[GROUPS])[0] + prior

    slope = approx_fprime(found.log_variances, posterior, 1e-6)
    np.testing.assert_allclose(slope, 0.0, atol=0.05)
    assert found.log_variances[1] < min(found.log_variances[0], found.log_variances[2]) - 0.5


def test_no_group_moves_far_from_a_start(rows):
    start = np.array([-6.0, -6.0, -6.0])
    found = find_components(quadratic(rows, known=True), GROUPS, CENTRE, start)
    assert np.all(np.abs(found.log_variances - start) <= 2.0)


def test_the_weight_is_the_integral_over_the_difference_of_two_groups(rows):
    own = quadratic(rows, known=False)
    groups, centre = np.array([0, 0, 0, 0, 0, 1]), np.zeros(2)
    found = find_components(own, groups, centre)
    level = found.log_variances.mean()
    # Half the difference of two independent normals.
    half = np.linspace(-8, 8, 801)
    values = [own.log_evidence(level + np.array([d, -d])[groups])[0] for d in half]
    prior = norm.logpdf(half, scale=GROUP_SD / np.sqrt(2.0))
    whole = logsumexp(np.array(values) + prior) + np.log(half[1] - half[0])
    at_mode = own.log_evidence(found.log_variances[groups])[0]
    assert found.log_weight == pytest.approx(whole - at_mode, abs=0.35)
    assert found.log_weight < 0.0


def test_a_single_group_costs_nothing(rows):
    found = components_at(
        quadratic(rows, known=True), np.zeros(6, dtype=int), np.zeros(1), np.array([3.0])
    )
    assert found.log_weight == 0.0


def test_beside_nothing_it_is_the_evidence_of_the_remainder(rows):
    """Up to a constant, for all variances; and columns of a model are regressed out."""
    columns, response = rows
    engine = GaussianEngine(response + 3.0, ZellnerSiow())
    nothing = np.empty((60, 0))
    gaps = []
    for place in (np.zeros(6), np.linspace(-2, 1, 6)):
        own = gaussian_quadratic(engine, columns, np.ones(6), nothing).log_evidence(place)[0]
        remainder = Remainder.of(engine, columns, np.exp(-0.5 * place))
        ratio = float(np.mean(np.sum(columns**2 * np.exp(place), axis=1)))
        prepared = remainder.prepare(nothing, ratio)
        gaps.append(remainder.log_evidence(prepared, np.zeros((1, 0), dtype=bool), ratio) - own)
    assert gaps[0] == pytest.approx(gaps[1])
    beside = gaussian_quadratic(engine, columns, np.ones(6), columns[:, :2])
    np.testing.assert_allclose(beside.gram[:2], 0.0, atol=1e-10)
    assert beside.degrees == 57.0


def test_sets_of_effects_with_the_same_variances_are_a_larger_set(rows):
    """As if the columns of both sets stood beside each other, where they are orthogonal."""
    one = quadratic(rows, known=True)
    other = Quadratic(0.5 * one.gram, one.products[::-1].copy())
    both = QuadraticSum((one, other))
    gram = np.block([[one.gram, np.zeros((6, 6))], [np.zeros((6, 6)), other.gram]])
    large = Quadratic(gram, np.concatenate([one.products, other.products]))
    place = np.array([0.3, -2.0, 1.0])
    value, gradient, _ = both.log_evidence(place[GROUPS])
    wanted, slopes, _ = large.log_evidence(np.tile(place[GROUPS], 2))
    assert value == pytest.approx(wanted)
    np.testing.assert_allclose(gradient, slopes[:6] + slopes[6:])
    found = find_components(both, GROUPS, CENTRE)
    again = find_components(large, np.tile(GROUPS, 2), CENTRE)
    np.testing.assert_allclose(found.log_variances, again.log_variances, atol=1e-6)
    assert found.log_weight == pytest.approx(again.log_weight, abs=1e-6)
