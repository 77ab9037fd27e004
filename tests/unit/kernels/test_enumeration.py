"""Tests of `dbrm._kernels.enumeration`: all subsets from one Gram matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import (
    BLOCK,
    forbid_orphans,
    inclusion_of_all,
    prior_of_all,
    residuals_of_all,
    score_of_all,
    score_one,
)
from dbrm._kernels.screening import score_row
from dbrm.evidence.coefficient_priors import HyperG, Jeffreys
from dbrm.evidence.coefficient_priors.base import GaussianShape
from dbrm.search import PriorTerms

TOLERANCE = 1e-9


def by_least_squares(columns, response):
    """RSS of every subset, one NumPy least squares each."""
    masks = unpack_index(np.arange(1 << columns.shape[1]), columns.shape[1])
    values = []
    for mask in masks:
        chosen = columns[:, mask]
        fitted = chosen @ np.linalg.lstsq(chosen, response)[0] if mask.any() else 0.0
        values.append(np.sum((response - fitted) ** 2))
    return np.array(values)


def all_residuals(columns, response, max_size=99, kernel=residuals_of_all):
    gram, cross = columns.T @ columns, columns.T @ response
    return kernel(gram, cross, response @ response, max_size, TOLERANCE, 1e-15)


@settings(max_examples=60)
@given(
    size=st.integers(0, 7),
    extra=st.integers(1, 30),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    seed=st.integers(0, 2**32),
)
def test_residuals_are_those_of_least_squares(size, extra, scale, seed):
    draw = np.random.default_rng(seed)
    columns = draw.normal(size=(size + extra, size)) * scale
    response = draw.normal(size=size + extra)
    expected = by_least_squares(columns, response)
    found = all_residuals(columns, response)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * expected[0])


def test_the_order_is_that_of_the_bits(rng):
    """Negative control of the order: reversed columns give another table."""
    columns, response = rng.normal(size=(30, 5)), rng.normal(size=30)
    found = all_residuals(columns[:, ::-1], response)
    assert np.max(np.abs(found - by_least_squares(columns, response))) > 0.1


def test_dependent_columns_are_flagged_and_no_others(rng):
    columns = rng.normal(size=(40, 6))
    columns[:, 4] = 2 * columns[:, 1] - columns[:, 3]
    response = rng.normal(size=40)
    found = all_residuals(columns, response)
    masks = unpack_index(np.arange(64), 6)
    dependent = masks[:, 1] & masks[:, 3] & masks[:, 4]
    np.testing.assert_array_equal(np.isnan(found), dependent)
    expected = by_least_squares(columns, response)
    np.testing.assert_allclose(found[~dependent], expected[~dependent], rtol=1e-9)


def test_a_zero_column_is_dependent():
    columns = np.zeros((10, 1))
    found = all_residuals(columns, np.ones(10))
    assert found[0] == 10.0
    assert np.isnan(found[1])


def test_more_columns_than_rows_are_flagged(rng):
    found = all_residuals(rng.normal(size=(3, 5)), rng.normal(size=3))
    sizes = unpack_index(np.arange(32), 5).sum(axis=1)
    np.testing.assert_array_equal(np.isnan(found), sizes > 3)


@pytest.mark.parametrize("max_size", [0, 1, 3, 6])
def test_large_subsets_are_left_out_and_the_rest_is_unchanged(rng, max_size):
    columns, response = rng.normal(size=(30, 6)), rng.normal(size=30)
    sizes = unpack_index(np.arange(64), 6).sum(axis=1)
    found = all_residuals(columns, response, max_size)
    np.testing.assert_array_equal(np.isinf(found), sizes > max_size)
    within = sizes <= max_size
    np.testing.assert_array_equal(found[within], all_residuals(columns, response)[within])


def test_residuals_agree_with_their_plain_twin(rng):
    columns, response = rng.normal(size=(20, 5)), rng.normal(size=20)
    columns[:, 3] = columns[:, 0]
    compiled = all_residuals(columns, response, 4)
    plain = all_residuals(columns, response, 4, residuals_of_all.py_func)
    np.testing.assert_allclose(compiled, plain, rtol=1e-12)


def nearly_dependent(seed):
    """Functions of one variable on a short range, some with a pole: a handful of directions."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(-1, 1, 300)
    bent = x * np.sqrt(np.abs(x))
    columns = [x, 1 / x, x**3, np.sin(x**3), 1 / np.sin(x), np.exp(bent), np.exp(bent / 2)]
    columns = np.column_stack([*columns, np.log(np.abs(x))])
    columns -= columns.mean(axis=0)
    response = x + x**2 + x**3 + 0.01 * draw.normal(size=x.size)
    return columns / np.linalg.norm(columns, axis=0), response - response.mean()


@pytest.mark.parametrize("seed", range(6))
def test_lost_digits_never_look_like_a_good_fit(seed):
    """The residual is at least that of least squares, and the same where digits are left."""
    columns, response = nearly_dependent(seed)
    found = all_residuals(columns, response)
    ratio = found / by_least_squares(columns, response)
    sound = ~np.isnan(found)
    assert sound.sum() > 128
    assert np.min(ratio[sound]) > 1 - 1e-6
    assert np.median(ratio[sound]) < 1 + 1e-8


def test_without_the_rounding_error_they_would():
    """Negative control: plain elimination returns a residual that is a twelfth too small."""
    columns, response = nearly_dependent(4)
    gram, cross = columns.T @ columns, columns.T @ response
    found = residuals_of_all(gram, cross, response @ response, 99, TOLERANCE, 0.0)
    assert np.nanmin(found / by_least_squares(columns, response)) < 0.99


def table_of(prior, n=40.0, size=6):
    return prior.score_table(np.arange(size + 1), GaussianShape(n=n, total=3.0, floor=1e-12))


@pytest.mark.parametrize("prior", [Jeffreys(), HyperG()], ids=["closed form", "pieces"])
def test_scores_of_all_are_scores_one_by_one(rng, prior):
    """The blocked loop, the row loop, the scalar and its plain twin are one function."""
    size = 9
    assert 1 << size > BLOCK
    table = table_of(prior, size=size)
    fractions = rng.random(1 << size)
    fractions[[3, 5]] = np.nan, np.inf
    fractions[6] = -1e-17
    found = score_of_all(fractions, 1e-12, *table.arguments)
    rows = unpack_index(np.arange(1 << size), size).sum(axis=1)
    assert np.all(found[[3, 5]] == -np.inf)
    for subset in [0, 1, 2, 4, 6, 7, 300, 511]:
        fraction = max(fractions[subset], 1e-12)
        expected = table.value(fraction, rows[subset])
        assert found[subset] == pytest.approx(expected, rel=1e-10)
        assert score_one(fraction, rows[subset], *table.arguments) == pytest.approx(expected)
        row = score_row(fractions[[subset]], rows[subset], 1e-12, *table.arguments)
        assert row[0] == pytest.approx(expected, rel=1e-10)


def test_sizes_that_the_prior_excludes_score_minus_infinity():
    """Six columns and an intercept on seven observations fit perfectly."""
    table = table_of(Jeffreys(), n=7.0, size=6)
    found = score_of_all(np.full(64, 0.5), 1e-12, *table.arguments)
    assert np.flatnonzero(found == -np.inf).tolist() == [63]


@given(size=st.integers(0, 8), seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_prior_and_inclusion_are_those_of_brute_force(size, seed):
    draw = np.random.default_rng(seed)
    feature, sizes = draw.normal(size=size), draw.normal(size=size + 1)
    masks = unpack_index(np.arange(1 << size), size)
    expected = masks @ feature + sizes[masks.sum(axis=1)]
    np.testing.assert_allclose(prior_of_all(feature, sizes, np.zeros(1)), expected, atol=1e-12)
    np.testing.assert_allclose(
        prior_of_all.py_func(feature, sizes, np.zeros(1)), expected, atol=1e-12
    )

    log_posterior = 300 * draw.normal(size=1 << size) - 5000.0
    log_posterior[draw.random(1 << size) < 0.2] = -np.inf
    log_posterior[0] = -5000.0
    weights = np.exp(log_posterior - logsumexp(log_posterior))
    for kernel in (inclusion_of_all, inclusion_of_all.py_func):
        log_mass, inclusion = kernel(log_posterior, size)
        assert log_mass == pytest.approx(logsumexp(log_posterior), rel=1e-12)
        np.testing.assert_allclose(inclusion, weights @ masks, atol=1e-12)


def test_a_forbidden_feature_has_no_inclusion():
    log_posterior = prior_of_all(np.array([0.0, -np.inf]), np.zeros(3), np.zeros(1))
    _, inclusion = inclusion_of_all(log_posterior, 2)
    np.testing.assert_allclose(inclusion, [0.5, 0.0])


@pytest.mark.parametrize("kernel", [forbid_orphans, forbid_orphans.py_func])
def test_subsets_with_features_that_lack_parents_are_forbidden(kernel, rng):
    """The rule written as in the definition: mask by mask, and as `PriorTerms.of` has it."""
    parents = rng.random((5, 5)) < 0.4
    needed = np.array([0, 1, 0, 2, 1])
    masks = unpack_index(np.arange(32), 5)
    allowed = [
        all((mask & parents[j]).sum() >= needed[j] for j in np.flatnonzero(mask)) for mask in masks
    ]
    values = np.zeros(32)
    kernel(values, parents, needed)
    np.testing.assert_array_equal(np.isfinite(values), allowed)
    assert 0 < sum(allowed) < 32
    terms = PriorTerms(np.zeros(5), np.zeros(6), parents, needed)
    np.testing.assert_array_equal(terms.of(masks), values)
    for mask in masks:
        left = terms.without_orphans(mask)
        assert terms.of(left[None])[0] == 0.0
        assert not np.any(left & ~mask)
