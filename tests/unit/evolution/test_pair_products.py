"""Tests of `dbrm.evolution.sweep.scores`."""

import numpy as np

from dbrm.evolution.sweep.scores import PairProducts


def brute_force(left, right, residual):
    shares = np.zeros((left.shape[1], right.shape[1]))
    for i, x in enumerate(left.T):
        for j, z in enumerate(right.T):
            product = x * z - np.mean(x * z)
            if product @ product > 1e-9 * np.sum((x * z) ** 2):
                shares[i, j] = np.corrcoef(product, residual)[0, 1] ** 2
    return shares


def all_shares(left, right, residual):
    return np.concatenate([block for _, block in PairProducts(left, right).shares(residual)])


def test_shares_equal_squared_correlations(rng):
    left, right = rng.uniform(-1, 1, (50, 300)), rng.uniform(-1, 1, (50, 7))
    residual = rng.normal(size=50)
    residual -= residual.mean()
    expected = brute_force(left, right, residual)
    np.testing.assert_allclose(all_shares(left, right, residual), expected, atol=1e-10)


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
