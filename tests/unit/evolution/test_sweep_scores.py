"""Tests of `dbrm.evolution.sweep.scores`."""

import numpy as np
import pytest

from dbrm.data import to_unit_length
from dbrm.evolution.sweep.scores import Baselines, PairProducts


def brute_force(left, right, residual):
    shares = np.zeros((left.shape[1], right.shape[1]))
    for i, x in enumerate(left.T):
        for j, z in enumerate(right.T):
            product = x * z - np.mean(x * z)
            if product @ product > 1e-9 * np.sum((x * z) ** 2):
                shares[i, j] = np.corrcoef(product, residual)[0, 1] ** 2
    return shares


def all_shares(left, right, residual):
    blocks = PairProducts(left, right).shares(residual / np.linalg.norm(residual))
    return np.concatenate([block for _, _, block in blocks])


def test_shares_equal_squared_correlations(rng):
    left, right = rng.uniform(-1, 1, (50, 300)), rng.uniform(-1, 1, (50, 7))
    residual = rng.normal(size=50)
    residual -= residual.mean()
    expected = brute_force(left, right, residual)
    np.testing.assert_allclose(all_shares(left, right, residual), expected, atol=1e-10)


def test_pairs_of_one_set_are_scored_once(rng):
    columns, residual = rng.uniform(-1, 1, (50, 300)), rng.normal(size=50)
    residual -= residual.mean()
    found = np.zeros((300, 300))
    for start, first, block in PairProducts(columns).shares(residual / np.linalg.norm(residual)):
        found[start : start + len(block), first:] = block
    expected = np.triu(brute_force(columns, columns, residual))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_binary_columns_take_the_short_cut_to_the_same_shares(rng):
    left, right = (rng.random((60, k)) < 0.5 for k in (20, 9))
    residual = rng.normal(size=60)
    residual -= residual.mean()
    expected = brute_force(left.astype(float), right.astype(float), residual)
    found = all_shares(left.astype(float), right.astype(float), residual)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_constant_and_undefined_products_have_no_share(rng):
    signs = np.where(rng.random(40) < 0.5, -1.0, 1.0)
    left = np.column_stack([signs, np.full(40, np.nan)])
    residual = rng.normal(size=40)
    shares = all_shares(left, signs[:, None], residual - residual.mean())
    np.testing.assert_array_equal(shares, np.zeros((2, 1)))


def partial_correlation(column, response, others):
    """Squared correlation of what other columns and a constant leave of two."""
    design = np.column_stack([np.ones(len(column)), others])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (column, response)]
    return float(left[0] @ left[1]) ** 2 / float(left[0] @ left[0]) / float(left[1] @ left[1])


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize(("kind", "error"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_shares_beside_parts_of_a_model_are_partial_correlations(rng, pose, kind, error, some):
    """On all rows; on some of them the residual is the one of the fit to all."""
    values = rng.normal(size=(90, 6)) + 5.0
    y = values[:, 0] * values[:, 1] + rng.normal(size=90)
    model, candidates = values[:, :3], values[:, 3:]
    baselines = Baselines(pose(values, y), model, [None, 1])
    rows = np.arange(0, 90, 2) if some else np.arange(90)
    columns = to_unit_length(candidates[rows]).astype(kind)
    shares = baselines.on(rows).shares(columns)
    for share, kept in zip(shares, ([0, 1, 2], [0, 2]), strict=True):
        design = np.column_stack([np.ones(90), model[:, kept]])
        residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        expected = [
            partial_correlation(column, residual[rows], model[rows][:, kept])
            for column in candidates[rows].T
        ]
        np.testing.assert_allclose(share, expected, rtol=error, atol=error)


def test_columns_in_the_span_have_no_share(rng, pose):
    values = rng.normal(size=(60, 3))
    baselines = Baselines(pose(values, rng.normal(size=60)), values[:, :2], [None, 0])
    columns = to_unit_length(np.column_stack([values[:, 0] - 2 * values[:, 1], np.ones(60)]))
    shares = baselines.shares(columns)
    assert np.isnan(shares[:, 1]).all()
    assert np.isnan(shares[0, 0])
    assert shares[1, 0] > 0.0
    np.testing.assert_allclose(baselines.outside(columns[:, :1]), 0.0, atol=1e-12)
