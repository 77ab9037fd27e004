"""Sums over rows for likelihoods with several parameters; see `dbrm.evidence.joint`.

Compiled rather than by BLAS, whose sums depend on the number of threads.
"""

import numba as nb
import numpy as np

__all__ = ["combine_columns", "weighted_products"]

# Rows that stay in the first-level cache.
_BLOCK = 512


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _dot(left, right):
    total = 0.0
    for i in range(left.size):
        total += left[i] * right[i]
    return total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def weighted_products(left, weight, right):
    """Sums over the rows of ``left[j] * weight * right[k]``, all pairs of columns."""
    n = weight.size
    out = np.zeros((len(left), len(right)))
    scaled = np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for j in range(len(left)):
            for i in range(size):
                scaled[i] = left[j, start + i] * weight[start + i]
            for k in range(len(right)):
                out[j, k] += _dot(scaled[:size], right[k, start : start + size])
    return out


@nb.njit(cache=True, nogil=True, error_model="numpy")
def combine_columns(coefficients, columns, offset):
    """Linear predictors (rows) of coefficients, columns by predictors, beside an offset."""
    out = np.empty((coefficients.shape[1], offset.size))
    for k in range(len(out)):
        out[k] = offset
        for j in range(len(columns)):
            share = coefficients[j, k]
            if share != 0.0:
                for i in range(offset.size):
                    out[k, i] += share * columns[j, i]
    return out
