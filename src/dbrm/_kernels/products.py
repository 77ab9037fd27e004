"""Products of many columns, centred and scaled to unit length, one after the other."""

from math import nan, sqrt

import numba as nb

__all__ = ["unit_products"]


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def unit_products(factors, subsets, smallest, out):
    """Fill each row of `out` with the product of the rows of `factors` that a subset names.

    Not a number where a product is not finite, or where its standard deviation is at most
    `smallest` times its root mean square.
    """
    n = factors.shape[1]
    for i in range(subsets.shape[0]):
        column, first, second = out[i], factors[subsets[i, 0]], factors[subsets[i, 1]]
        for r in range(n):
            column[r] = first[r] * second[r]
        for k in range(2, subsets.shape[1]):
            other = factors[subsets[i, k]]
            for r in range(n):
                column[r] *= other[r]
        total = 0.0
        for r in range(n):
            total += column[r]
        mean = total / n
        squares = 0.0
        for r in range(n):
            distance = column[r] - mean
            squares += distance * distance
        varies = squares > smallest * smallest * (squares + n * mean * mean)
        scale = 1.0 / sqrt(squares) if varies else nan
        for r in range(n):
            column[r] = (column[r] - mean) * scale
