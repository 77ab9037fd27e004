"""Banded kernels against dense linear algebra, compiled and not."""

import numpy as np
import pytest

from dbrm._kernels import banded


def random_band(rng, n, b):
    """A positive definite banded matrix, as a band and in full."""
    band = rng.normal(size=(n, b + 1))
    for d in range(1, b + 1):
        band[:d, d] = 0.0
    band[:, 0] = 2.0 * (b + 1) + np.abs(band[:, 0])
    full = np.diag(band[:, 0])
    for d in range(1, min(b, n - 1) + 1):
        full += np.diag(band[d:, d], -d) + np.diag(band[d:, d], d)
    return band, full


@pytest.fixture(params=[(1, 0), (1, 2), (9, 0), (12, 1), (12, 3), (5, 7)], ids=str)
def matrices(request, rng):
    return random_band(rng, *request.param)


@pytest.mark.parametrize("twin", [False, True], ids=["compiled", "plain"])
def test_factor_determinant_and_solves(matrices, rng, twin):
    def kernel(function):
        return function.py_func if twin else function

    band, full = matrices
    factor = np.zeros_like(band)
    assert kernel(banded.factorise)(band, factor)
    value = kernel(banded.log_determinant)(factor)
    assert value == pytest.approx(np.linalg.slogdet(full)[1])
    columns = rng.normal(size=(len(full), 3))
    solved = columns.copy()
    kernel(banded.solve_lower)(factor, solved)
    kernel(banded.solve_upper)(factor, solved)
    np.testing.assert_allclose(full @ solved, columns, atol=1e-12)
    product = np.empty(len(full))
    kernel(banded.multiply)(band, columns[:, 0], product)
    np.testing.assert_allclose(product, full @ columns[:, 0], atol=1e-12)
    found, inverse = kernel(banded.band_of_inverse)(factor), np.linalg.inv(full)
    for d in range(min(band.shape[1], len(full))):
        np.testing.assert_allclose(found[d:, d], np.diag(inverse, -d), atol=1e-12)


def test_a_matrix_that_is_not_positive_is_refused():
    band = np.array([[1.0, 0.0], [1.0, 2.0]])
    assert not banded.factorise(band, np.zeros_like(band))
    assert not banded.factorise(np.array([[np.nan, 0.0]]), np.zeros((1, 2)))
