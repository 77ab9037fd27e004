"""Weighted cross products over the rows and small Cholesky factors.

The population is stored column by column, ``columns[j]`` contiguous, so that a mask
selects columns without copying rows. Sums run over fixed blocks of rows: the same
numbers on every machine with the same vector width, whatever the number of threads.
"""

import numba as nb
import numpy as np

__all__ = [
    "BLOCK",
    "add_gram",
    "cholesky",
    "combine",
    "cross_products",
    "solve",
    "standardise",
    "weighted_gram",
]

# Rows handled at a time; the selected columns of a block stay in the first-level cache.
BLOCK = 512


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _four_by_two(left0, left1, right0, right1, right2, right3):
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    for r in range(left0.size):
        x = left0[r]
        z = left1[r]
        a0 += x * right0[r]
        a1 += x * right1[r]
        a2 += x * right2[r]
        a3 += x * right3[r]
        b0 += z * right0[r]
        b1 += z * right1[r]
        b2 += z * right2[r]
        b3 += z * right3[r]
    return a0, a1, a2, a3, b0, b1, b2, b3


@nb.njit(cache=True, nogil=True, error_model="numpy")
def add_gram(columns, block, chosen, k, weight, scaled, out):
    """Add the part of one block of rows to a weighted Gram matrix; see `weighted_gram`."""
    left0 = scaled[0]
    left1 = scaled[1]
    for i in range(0, k, 2):
        source0 = columns[chosen[i], block]
        source1 = columns[chosen[i + 1], block]
        for r in range(weight.size):
            left0[r] = source0[r] * weight[r]
            left1[r] = source1[r] * weight[r]
        for j in range(0, i + 2, 4):
            a0, a1, a2, a3, b0, b1, b2, b3 = _four_by_two(
                left0,
                left1,
                columns[chosen[j], block],
                columns[chosen[j + 1], block],
                columns[chosen[j + 2], block],
                columns[chosen[j + 3], block],
            )
            out[i, j] += a0
            out[i, j + 1] += a1
            out[i, j + 2] += a2
            out[i, j + 3] += a3
            out[i + 1, j] += b0
            out[i + 1, j + 1] += b1
            out[i + 1, j + 2] += b2
            out[i + 1, j + 3] += b3


@nb.njit(cache=True, nogil=True, error_model="numpy")
def weighted_gram(columns, chosen, k, weight, scaled, out):
    r"""Lower triangle of :math:`X' \mathrm{diag}(w) X` for the ``k`` chosen columns.

    ``columns`` has the axes column, block, row in block; ``scaled`` is work space for two
    blocks. ``chosen`` and ``out`` must have room for ``k + 4`` columns: the last tile
    runs over the edge, into numbers that nobody reads.
    """
    for i in range(k + 4):
        for j in range(k + 4):
            out[i, j] = 0.0
    for block in range(columns.shape[1]):
        add_gram(columns, block, chosen, k, weight[block], scaled, out)


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def cross_products(columns, chosen, k, vector, out):
    """Inner products of the chosen columns with one vector over the rows."""
    for i in range(k):
        source = columns[chosen[i]]
        total = 0.0
        for r in range(vector.size):
            total += source[r] * vector[r]
        out[i] = total


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def combine(columns, chosen, k, coefficients, out):
    """Linear combination of the chosen columns; four at a time to save passes over ``out``."""
    rows = out.size
    for r in range(rows):
        out[r] = 0.0
    i = 0
    while i + 4 <= k:
        c0, c1, c2, c3 = (
            columns[chosen[i]],
            columns[chosen[i + 1]],
            columns[chosen[i + 2]],
            columns[chosen[i + 3]],
        )
        b0, b1, b2, b3 = (
            coefficients[i],
            coefficients[i + 1],
            coefficients[i + 2],
            coefficients[i + 3],
        )
        for r in range(rows):
            out[r] += (b0 * c0[r] + b1 * c1[r]) + (b2 * c2[r] + b3 * c3[r])
        i += 4
    while i < k:
        source = columns[chosen[i]]
        b0 = coefficients[i]
        for r in range(rows):
            out[r] += b0 * source[r]
        i += 1


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def standardise(column, total, least):
    """Centre and scale one column in place, weighted by `total`; returns location and scale.

    A column whose deviation is at most `least` of its largest value becomes zero, as do rows that
    do not count. Sums are of numbers of size one, so that no unit overflows when squared.
    """
    largest = 0.0
    weight = 0.0
    for r in range(total.size):
        weight += total[r]
        if total[r] > 0.0:
            largest = max(largest, abs(column[r]))
    centre = 0.0
    length = 0.0
    if largest > 0.0:
        for r in range(total.size):
            column[r] = column[r] / largest if total[r] > 0.0 else 0.0
            centre += total[r] * column[r]
        centre /= weight
        for r in range(total.size):
            column[r] = column[r] - centre if total[r] > 0.0 else 0.0
            length += total[r] * column[r] * column[r]
        length = np.sqrt(length / weight)
    if length <= least:
        column[: total.size] = 0.0
        return 0.0, 1.0
    for r in range(total.size):
        column[r] /= length
    return centre * largest, max(length * largest, np.finfo(np.float64).tiny)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def cholesky(matrix, k, factor, tolerance):
    """Cholesky factor of the leading ``k`` rows; returns how many pivots failed.

    A pivot below ``tolerance`` times its diagonal element means a direction without
    information of its own. Its pivot becomes infinite, so that `solve` leaves that
    coefficient alone.
    """
    failed = 0
    for i in range(k):
        for j in range(i):
            total = matrix[i, j]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            factor[i, j] = total / factor[j, j]
        pivot = matrix[i, i]
        for m in range(i):
            pivot -= factor[i, m] * factor[i, m]
        if pivot > tolerance * matrix[i, i]:
            factor[i, i] = np.sqrt(pivot)
        else:
            factor[i, i] = np.inf
            failed += 1
    return failed


@nb.njit(cache=True, nogil=True, error_model="numpy")
def solve(factor, k, right, out):
    """Solve the system with a Cholesky factor; returns the squared norm of the half-way vector.

    With ``right`` a score vector that norm is the squared Newton decrement.
    """
    norm = 0.0
    for i in range(k):
        total = right[i]
        for m in range(i):
            total -= factor[i, m] * out[m]
        out[i] = total / factor[i, i]
        norm += out[i] * out[i]
    for i in range(k - 1, -1, -1):
        total = out[i]
        for m in range(i + 1, k):
            total -= factor[m, i] * out[m]
        out[i] = total / factor[i, i]
    return norm
