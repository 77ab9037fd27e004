"""Tests of the elementary functions, cross products and row loops of the GLM kernels."""

import mpmath
import numba as nb
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from dbrm._kernels.glm_dispersion import gamma_shape
from dbrm._kernels.glm_linalg import (
    cholesky,
    combine,
    cross_products,
    solve,
    standardise,
    weighted_gram,
)
from dbrm._kernels.glm_math import log1p_unit, log_rising, safe_exp, trigamma
from dbrm._kernels.glm_rows import BINOMIAL, LOGIT, expect, linearise, weight_slopes
from dbrm._kernels.glm_sums import model_sums
from dbrm.evidence.design import build_design, group_rows, in_blocks, independent_columns
from dbrm.evidence.families import FAMILIES, CompiledFamily
from dbrm.evidence.links import LINKS

ULP = np.finfo(float).eps


@nb.njit
def _many(function, x):
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = function(x[i])
    return out


def test_exponential_is_right_to_an_ulp(rng):
    x = np.concatenate([rng.uniform(-700, 700, 2000), rng.uniform(-1, 1, 2000), [0.0, -0.0]])
    with mpmath.workdps(40):
        exact = np.array([float(mpmath.exp(mpmath.mpf(float(v)))) for v in x])
    assert np.max(np.abs(_many(safe_exp, x) / exact - 1)) <= 1.5 * ULP
    assert safe_exp(1e9) == safe_exp(700.0)
    assert safe_exp(-np.inf) == safe_exp(-700.0) > 0


def test_log1p_is_right_to_two_ulps(rng):
    t = np.concatenate([rng.random(2000), 10.0 ** rng.uniform(-300, 0, 500), [0.0, 1.0]])
    with mpmath.workdps(40):
        exact = np.array([float(mpmath.log1p(mpmath.mpf(float(v)))) for v in t])
    assert np.all(np.abs(_many(log1p_unit, t) - exact) <= 2 * ULP * exact)


def test_trigamma(rng):
    x = 10.0 ** rng.uniform(-6, 8, 500)
    np.testing.assert_allclose(_many(trigamma, x), scipy.special.polygamma(1, x), rtol=1e-12)


@pytest.mark.parametrize("shape", [1e-6, 0.3, 50.0, 99.9, 100.1, 1e4, 1e7, 1e10])
@pytest.mark.parametrize("y", [0.0, 1.0, 3.0, 1e3, 1e6])
def test_rising_factorial_does_not_cancel(shape, y):
    with mpmath.workdps(60):
        theta, count = mpmath.mpf(shape), mpmath.mpf(y)
        exact = mpmath.loggamma(theta + count) - mpmath.loggamma(theta) - count * mpmath.log(theta)
    assert log_rising(y, shape) == pytest.approx(float(exact), rel=1e-11, abs=1e-12)


@given(st.floats(-12, 6))
def test_gamma_shape_solves_its_equation(log_target):
    target = 10.0**log_target
    shape = mpmath.mpf(float(gamma_shape(target)))
    with mpmath.workdps(50):
        gap = mpmath.log(shape) - mpmath.digamma(shape)
    if shape > 2e-8:
        assert float(gap) == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("n", [1, 7, 513, 1200])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_cross_products_equal_numpy(rng, n, k):
    columns = rng.standard_normal((n, 9))
    design, _ = build_design(
        columns, rng.random(n), rng.random(n) + 0.1, np.zeros(n), filler=0.0, merge=False
    )
    flat, rows = design.flat, design.flat.shape[1]
    chosen = np.zeros(k + 5, dtype=np.int64)
    chosen[:k] = rng.permutation(10)[:k]
    weight, out = rng.random(rows), np.zeros((k + 5, k + 5))
    block = design.blocks.shape[2]
    weighted_gram(design.blocks, chosen, k, weight.reshape(-1, block), np.zeros((2, block)), out)
    part = flat[chosen[:k]]
    expected = (part * weight) @ part.T
    np.testing.assert_allclose(np.tril(out[:k, :k]), np.tril(expected), rtol=1e-12, atol=1e-11)
    vector, products = rng.standard_normal(rows), np.zeros(k)
    cross_products(flat, chosen, k, vector, products)
    np.testing.assert_allclose(products, part @ vector, rtol=1e-11, atol=1e-11)
    combine(flat, chosen, k, products, vector)
    np.testing.assert_allclose(vector, products @ part, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_one_pass_gives_likelihood_score_and_information(rng, k, dtype):
    """The NumPy twin of a logistic model with weights and an offset; padded rows do not count."""
    n = 1_100
    x = rng.standard_normal((n, 6)).astype(dtype).astype(float)
    mean, total, offset = (rng.random(n) < 0.5) * 1.0, rng.integers(0, 3, n) * 1.0, rng.random(n)
    columns = in_blocks(list(x.T), n).astype(dtype)
    rows = in_blocks([mean, total, offset], n)[1:]
    chosen, out = np.zeros(k + 4, dtype=np.int64), np.empty((k + 4, k + 4))
    chosen[:k] = rng.permutation(7)[:k]
    beta = rng.standard_normal(k)
    value = model_sums(BINOMIAL, LOGIT, rows, columns, chosen, beta, out)
    part = np.column_stack([np.ones(n), x])[:, chosen[:k]]
    eta = offset + part @ beta
    mu = 1 / (1 + np.exp(-eta))
    assert value == pytest.approx(total @ (mean * eta - np.logaddexp(0.0, eta)), rel=1e-10)
    np.testing.assert_allclose(out[k, :k], part.T @ (total * (mean - mu)), atol=1e-8)
    expected = (part * (total * mu * (1 - mu))[:, None]).T @ part
    np.testing.assert_allclose(np.tril(out[:k, :k]), np.tril(expected), atol=1e-8)


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_columns_are_standardised_in_any_unit(rng, unit):
    total = rng.integers(0, 3, 500).astype(float)
    x = rng.standard_normal(500) + 7.0
    column = x * unit
    location, scale = standardise(column, total, 1e-8)
    centre = np.average(x, weights=total)
    spread = np.sqrt(np.average((x - centre) ** 2, weights=total))
    assert (location / unit, scale / unit) == pytest.approx((centre, spread), rel=1e-10)
    np.testing.assert_allclose(column, np.where(total > 0, (x - centre) / spread, 0.0), atol=1e-10)
    constant = np.full(500, 3.0 * unit)
    assert standardise(constant, total, 1e-8) == (0.0, 1.0)
    assert not constant.any()


def test_cholesky_solves_and_leaves_empty_directions_alone(rng):
    root = rng.standard_normal((6, 6))
    matrix, right = root @ root.T, rng.standard_normal(6)
    factor, out = np.zeros((6, 6)), np.zeros(6)
    assert cholesky(matrix, 6, factor, 1e-14) == 0
    norm = solve(factor, 6, right, out)
    np.testing.assert_allclose(out, np.linalg.solve(matrix, right), rtol=1e-7)
    assert norm == pytest.approx(right @ out, rel=1e-9)
    singular = matrix.copy()
    singular[:, 5], singular[5] = singular[:, 4], singular[4]
    singular[5, 5] = singular[4, 4]
    assert cholesky(singular, 6, factor, 1e-12) == 1
    solve(factor, 6, right, out)
    assert out[5] == 0.0
    np.testing.assert_allclose(out[:5], np.linalg.solve(matrix[:5, :5], right[:5]), rtol=1e-7)


def test_equal_rows_are_merged_and_minus_zero_is_zero(rng):
    table = rng.integers(0, 2, (300, 4)).astype(float)
    table[table == 0] *= rng.choice([-1.0, 1.0], int(np.sum(table == 0)))
    first, pattern = group_rows(table)
    assert first.size == len(np.unique(np.abs(table), axis=0))
    np.testing.assert_array_equal(table[first[pattern]], table)


@pytest.mark.parametrize(("kinds", "merged"), [(50, True), (3_000, True), (10**9, False)])
def test_equal_rows_of_many_are_found_from_a_sample(rng, kinds, merged):
    n = 20_000
    columns = rng.integers(0, kinds, n)[:, None] * np.array([1.0, -2.0])
    design, group_mean = build_design(
        columns, rng.random(n), np.ones(n), np.zeros(n), filler=0.0, merge=True
    )
    assert (design.n_live < n) == merged
    assert design.total.sum() == n
    assert group_mean.size == n


def test_independent_columns_keeps_the_first_of_each_kind(rng):
    a, b = rng.standard_normal((2, 50))
    design, _ = build_design(
        np.column_stack([a, 2 * a + 1, b, a - b, np.ones(50)]),
        np.zeros(50),
        np.ones(50),
        np.zeros(50),
        filler=0.0,
        merge=False,
    )
    assert list(independent_columns(design.unit_gram(), 1e-9, 50)) == [0, 1, 3]


PAIRS = [
    (family, link)
    for family in FAMILIES
    for link in LINKS
    if isinstance(FAMILIES[family], CompiledFamily)
    if (family == "binomial") == (link in ("logit", "probit", "cloglog"))
    or (family == "binomial" and link in ("log", "identity"))
]


def _predictors(rng, family, link, n=64):
    if link == "identity":
        return rng.uniform(0.1, 0.9, n)
    if link == "inverse":
        return rng.uniform(0.3, 3.0, n)
    if family == "binomial" and link == "log":
        return rng.uniform(-3.0, -0.1, n)
    return rng.uniform(-3.0, 2.0, n)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_rows_are_derivatives_of_the_density(rng, family, link):
    """Score by finite differences of the family's own density; information by expectation."""
    member, tie = FAMILIES[family], LINKS[link]
    eta = _predictors(rng, family, link)
    shape, mean = 2.5, tie.mean(eta)
    dispersion = 1 / shape if family == "negative_binomial" else 1.0
    trials = np.full(eta.size, 5.0) if family == "binomial" else None
    y = member.rvs(rng, mean, dispersion, trials)
    total = trials if trials is not None else np.ones(eta.size)
    score, weight = np.empty(eta.size), np.empty(eta.size)

    def value(moved):
        return linearise(
            member.code, tie.code, shape, y / total, total, moved, score.copy(), weight.copy()
        )

    def density(moved):
        return member.log_density(y, tie.mean(moved), dispersion, trials)

    base = linearise(member.code, tie.code, shape, y / total, total, eta, score, weight)
    step = 1e-5
    slope = (density(eta + step) - density(eta - step)) / (2 * step)
    np.testing.assert_allclose(score, slope, rtol=1e-6, atol=1e-6)
    # The moving part differs from the log density by a constant.
    other = eta * 0.97
    gap = density(other).sum() - density(eta).sum()
    assert value(other) - base == pytest.approx(gap, abs=1e-9 * (1 + abs(base)))
    if link == "log" and family in ("gamma", "negative_binomial"):
        up, down = np.empty(eta.size), np.empty(eta.size)
        linearise(member.code, tie.code, shape, y, total, eta + step, up, weight.copy())
        linearise(member.code, tie.code, shape, y, total, eta - step, down, weight.copy())
        np.testing.assert_allclose(weight, -(up - down) / (2 * step), rtol=1e-6, atol=1e-6)
    expect(member.code, tie.code, shape, total, eta, weight)
    expected = total * tie.slope(eta) ** 2 / member.variance(mean, dispersion)
    np.testing.assert_allclose(weight, expected, rtol=1e-10)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_weight_slopes_are_log_derivatives_of_the_information(rng, family, link):
    member, tie = FAMILIES[family], LINKS[link]
    eta, shape = _predictors(rng, family, link), 2.5
    y, ones = np.full(eta.size, 0.5), np.ones(eta.size)
    score, up, down, slopes = (np.empty(eta.size) for _ in range(4))
    step = 1e-6
    for moved, weight in ((eta + step, up), (eta - step, down)):
        linearise(member.code, tie.code, shape, y, ones, moved, score, weight)
        expect(member.code, tie.code, shape, ones, moved, weight)
    weight_slopes(member.code, tie.code, shape, eta, slopes)
    np.testing.assert_allclose(slopes, np.log(up / down) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_binomial_rows_survive_any_predictor(link):
    eta = np.array([-1e300, -800.0, -50.0, 0.0, 50.0, 800.0, 1e300])
    score, weight = np.empty(7), np.empty(7)
    for y in (0.0, 1.0):
        binomial, code = FAMILIES["binomial"].code, LINKS[link].code
        linearise(binomial, code, 1.0, np.full(7, y), np.ones(7), eta, score, weight)
        assert np.all(np.isfinite(score))
        assert np.all(weight > 0)


def test_outside_the_domain_is_minus_infinity():
    one = np.ones(1)
    poisson, binomial = FAMILIES["poisson"].code, FAMILIES["binomial"].code
    identity, log = LINKS["identity"].code, LINKS["log"].code
    assert linearise(poisson, identity, 1.0, one, one, -one, one.copy(), one.copy()) == -np.inf
    assert linearise(binomial, log, 1.0, one, one, one, one.copy(), one.copy()) == -np.inf
