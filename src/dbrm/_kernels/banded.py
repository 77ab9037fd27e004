r"""Symmetric banded matrices: Cholesky factor, solves, and the band of the inverse.

A matrix with half-bandwidth :math:`b` is kept as ``band[i, d] = M[i, i - d]`` for
:math:`d = 0, \ldots, b`: its lower part, one row of the array for each row of the matrix.
Everything is linear in the number of rows.
"""

import numba as nb
import numpy as np

__all__ = [
    "band_of_inverse",
    "factorise",
    "log_determinant",
    "multiply",
    "solve_lower",
    "solve_upper",
]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def factorise(band, factor):
    """Write the Cholesky factor in the same layout; ``False`` if the matrix is not positive."""
    n, width = band.shape
    b = width - 1
    for i in range(n):
        for d in range(min(b, i), -1, -1):
            j = i - d
            total = band[i, d]
            for e in range(1, min(b - d, j) + 1):
                total -= factor[i, d + e] * factor[j, e]
            if d > 0:
                factor[i, d] = total / factor[j, 0]
            else:
                if not 0.0 < total < np.inf:
                    return False
                factor[i, 0] = np.sqrt(total)
    return True


@nb.njit(cache=True, nogil=True, error_model="numpy")
def solve_lower(factor, columns):
    """Solve ``L x = columns`` in place, all columns at once."""
    n, width = factor.shape
    for i in range(n):
        for d in range(1, min(width - 1, i) + 1):
            part = factor[i, d]
            for c in range(columns.shape[1]):
                columns[i, c] -= part * columns[i - d, c]
        inverse = 1.0 / factor[i, 0]
        for c in range(columns.shape[1]):
            columns[i, c] *= inverse


@nb.njit(cache=True, nogil=True, error_model="numpy")
def solve_upper(factor, columns):
    """Solve ``L' x = columns`` in place, all columns at once."""
    n, width = factor.shape
    for i in range(n - 1, -1, -1):
        inverse = 1.0 / factor[i, 0]
        for c in range(columns.shape[1]):
            columns[i, c] *= inverse
        for d in range(1, min(width - 1, i) + 1):
            part = factor[i, d]
            for c in range(columns.shape[1]):
                columns[i - d, c] -= part * columns[i, c]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def log_determinant(factor):
    """Log determinant of the matrix whose Cholesky factor this is."""
    total = 0.0
    for i in range(factor.shape[0]):
        total += np.log(factor[i, 0])
    return 2.0 * total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def multiply(band, vector, out):
    """Write the product of the matrix with a vector."""
    n, width = band.shape
    out[:] = 0.0
    for i in range(n):
        out[i] += band[i, 0] * vector[i]
        for d in range(1, min(width - 1, i) + 1):
            out[i] += band[i, d] * vector[i - d]
            out[i - d] += band[i, d] * vector[i]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def band_of_inverse(factor):
    r"""Entries of :math:`(LL')^{-1}` inside the band, by Takahashi's recursion.

    .. math:: \Sigma_{ij} = \frac{1[i = j]}{L_{ii}^2}
        - \frac{1}{L_{ii}} \sum_{k=i+1}^{i+b} L_{ki} \Sigma_{kj}, \qquad j \ge i .
    """
    n, width = factor.shape
    b = width - 1
    inverse = np.zeros((n, width))
    for i in range(n - 1, -1, -1):
        last = min(i + b, n - 1)
        for j in range(last, i - 1, -1):
            total = 0.0
            for k in range(i + 1, last + 1):
                high, low = (k, j) if k > j else (j, k)
                total -= factor[k, k - i] * inverse[high, high - low]
            total /= factor[i, 0]
            if i == j:
                total += 1.0 / (factor[i, 0] * factor[i, 0])
            inverse[j, j - i] = total
    return inverse
