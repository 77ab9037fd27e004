"""Gaussian log evidence of one mask from the Gram matrix of its population."""

from collections import namedtuple

import numba as nb
import numpy as np

from dbrm._kernels.enumeration import score_one

__all__ = ["DEPENDENT", "UNDEFINED", "GaussianContext", "evaluate_gaussian", "evaluate_many"]

# The values of `dbrm.status.Status`, which kernels must not import.
PERFECT_FIT = np.uint8(11)
DEPENDENT = np.uint8(10)
UNDEFINED = np.uint8(14)

GaussianContext = namedtuple(
    "GaussianContext",
    "gram cross total tolerance rounding floor constant log_slope complement_slope shift linear "
    "ceiling pieces scale inverse_width work chosen",
)


@nb.njit(cache=True, nogil=True)
def evaluate_gaussian(context, mask):
    """Log evidence and status of one mask: a Cholesky factor of its rows of the Gram matrix.

    The last column of the work space holds rounding errors by row over the diagonal of the
    factor; see `dbrm._kernels.enumeration.residuals_of_all`.
    """
    chosen = context.chosen
    k = 0
    for j in range(mask.size):
        if mask[j]:
            chosen[k] = j
            k += 1
    if context.constant[k] == -np.inf:
        return -np.inf, UNDEFINED
    factor = context.work
    size = mask.size
    residual = context.total
    least = np.sqrt(context.rounding * context.total)
    for i in range(k):
        row = chosen[i]
        for j in range(i):
            total = context.gram[row, chosen[j]]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            factor[i, j] = total / factor[j, j]
        pivot = context.gram[row, row]
        cross = context.cross[row]
        error = np.sqrt(context.rounding * pivot)
        for m in range(i):
            pivot -= factor[i, m] * factor[i, m]
            cross -= factor[i, m] * factor[m, size]
            error += abs(factor[i, m]) * factor[m, size + 1]
        if not pivot > max(context.tolerance * context.gram[row, row], error * error):
            return -np.inf, DEPENDENT
        factor[i, i] = np.sqrt(pivot)
        factor[i, size] = cross / factor[i, i]
        factor[i, size + 1] = error / factor[i, i]
        residual -= factor[i, size] ** 2
        least += abs(factor[i, size]) * factor[i, size + 1]
    status = np.uint8(0)
    residual = max(residual, 0.0) + least * least
    if not residual > context.floor:
        residual = context.floor
        status = PERFECT_FIT
    value = score_one(
        residual,
        k,
        context.constant,
        context.log_slope,
        context.complement_slope,
        context.shift,
        context.linear,
        context.ceiling,
        context.pieces,
        context.scale,
        context.inverse_width,
    )
    return value, status


@nb.njit(cache=True, nogil=True)
def evaluate_many(context, masks):
    """Evaluate the rows of a boolean matrix one after the other."""
    values = np.empty(masks.shape[0])
    statuses = np.empty(masks.shape[0], dtype=np.uint8)
    for row in range(masks.shape[0]):
        values[row], statuses[row] = evaluate_gaussian(context, masks[row])
    return values, statuses
