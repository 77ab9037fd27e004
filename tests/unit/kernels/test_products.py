"""Tests of `dbrm._kernels.products`."""

import numpy as np
import pytest

from dbrm._kernels.products import unit_products


def twin(factors, subsets, smallest):
    products = np.prod(factors[subsets].astype(np.float64), axis=1)
    centred = products - products.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    varies = length > smallest * np.linalg.norm(products, axis=1, keepdims=True)
    return np.where(varies, centred / np.where(varies, length, 1.0), np.nan)


def run(factors, subsets, smallest=1e-6):
    out = np.empty((len(subsets), factors.shape[1]), dtype=np.float32)
    unit_products(factors, subsets, smallest, out)
    return out


@pytest.mark.parametrize("size", [2, 3, 6])
def test_products_are_centred_and_of_unit_length(rng, size):
    factors = rng.uniform(-1.0, 1.0, (8, 57)).astype(np.float32)
    subsets = np.array([rng.permutation(8)[:size] for _ in range(20)])
    np.testing.assert_allclose(run(factors, subsets), twin(factors, subsets, 1e-6), atol=1e-5)


def test_constant_and_undefined_products_are_not_numbers(rng):
    signs = np.where(rng.random(30) < 0.5, -1.0, 1.0)
    undefined = np.where(np.arange(30) == 3, np.nan, 1.0)
    factors = np.array([signs, signs, undefined, rng.normal(size=30)], dtype=np.float32)
    found = run(factors, np.array([[0, 1], [0, 2], [0, 3]]))
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [True, True, False])


def test_tiny_products_keep_their_shape(rng):
    """Squares of products of many small numbers are below the smallest single number."""
    factors = (1e-6 * rng.uniform(0.5, 1.0, (5, 40))).astype(np.float32)
    found = run(factors, np.array([[0, 1, 2, 3, 4]]))
    expected = twin(factors.astype(np.float64) * 1e6, np.array([[0, 1, 2, 3, 4]]), 1e-6)
    np.testing.assert_allclose(found, expected, atol=1e-3)
