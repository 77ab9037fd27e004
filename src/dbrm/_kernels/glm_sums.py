"""One pass over rows in blocks for one model: log likelihood, score and information together.

Linear predictor, score and weights exist for one block of rows at a time, while its columns are in
the nearest cache.
"""

import numba as nb
import numpy as np

from dbrm._kernels.glm_linalg import add_gram
from dbrm._kernels.glm_rows import linearise

__all__ = ["model_sums"]


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _predict(columns, block, chosen, k, coefficients, offset, eta):
    for r in range(eta.size):
        eta[r] = offset[r]
    for i in range(k):
        source = columns[chosen[i], block]
        slope = coefficients[i]
        for r in range(eta.size):
            eta[r] += slope * source[r]


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _product(source, vector):
    total = 0.0
    for r in range(vector.size):
        total += source[r] * vector[r]
    return total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def model_sums(family, link, rows, columns, chosen, coefficients, out):
    """Add up one model over all blocks; returns its moving log likelihood.

    ``columns`` has the axes column, block, row in block, ``rows`` response mean, number of
    observations and offset by block. Into ``out`` goes the lower triangle of the information and
    below it, in row ``k``, the score; it needs room for ``k + 4`` columns, as ``chosen`` does.
    """
    k = coefficients.size
    size = columns.shape[2]
    eta, score, weight = np.empty(size), np.empty(size), np.empty(size)
    scaled = np.empty((2, size))
    gradient = np.zeros(k)
    out[:] = 0.0
    value = 0.0
    for block in range(columns.shape[1]):
        _predict(columns, block, chosen, k, coefficients, rows[2, block], eta)
        value += linearise(family, link, 1.0, rows[0, block], rows[1, block], eta, score, weight)
        add_gram(columns, block, chosen, k, weight, scaled, out)
        for i in range(k):
            gradient[i] += _product(columns[chosen[i], block], score)
    out[k, :k] = gradient
    return value
