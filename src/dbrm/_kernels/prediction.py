"""Predictions of many models at once: variances of linear predictors, and logistic means."""

import numba as nb
import numpy as np

from dbrm._kernels.glm_math import safe_exp

__all__ = ["mixed_logistic_means", "quadratic_forms"]


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def quadratic_forms(columns, members, starts, matrices, offsets, out):
    """Write ``x' C x`` of every model (rows of `out`) at every row of the table.

    Parameters
    ----------
    columns
        Columns by rows.
    members, starts
        Model ``m`` has the columns ``members[starts[m]:starts[m + 1]]``.
    matrices, offsets
        Its symmetric matrix ``C`` begins at ``matrices[offsets[m]]``, row by row.
    """
    half = np.empty(columns.shape[1])
    for m in range(starts.size - 1):
        own = members[starts[m] : starts[m + 1]]
        k = own.size
        total = out[m]
        total[:] = 0.0
        for i in range(k):
            first = columns[own[i]]
            weight = matrices[offsets[m] + i * k + i]
            for r in range(half.size):
                half[r] = weight * first[r]
            for j in range(i):
                second = columns[own[j]]
                weight = matrices[offsets[m] + i * k + j] + matrices[offsets[m] + j * k + i]
                for r in range(half.size):
                    half[r] += weight * second[r]
            for r in range(half.size):
                total[r] += half[r] * first[r]


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def mixed_logistic_means(weights, locations, scales, halves, reach, low, high):
    r"""Means of :math:`1/(1 + e^{-\eta})`, :math:`\eta \sim N(m, s^2)`, mixed over models.

    Parameters
    ----------
    weights, locations, scales
        Of each model (rows) at each row of the table.
    halves, reach
        Nodes of each model on either side of its mean, and how far they reach in units of s.
    low, high
        Limits of the means.
    """
    out, mean = np.zeros(weights.shape[1]), np.empty(weights.shape[1])
    for m in range(weights.shape[0]):
        half = halves[m]
        mean[:] = 0.0
        total = 0.0
        for q in range(-half, half + 1):
            node = reach * q / half
            share = np.exp(-0.5 * node * node)
            total += share
            for r in range(mean.size):
                value = 1.0 / (1.0 + safe_exp(-(locations[m, r] + node * scales[m, r])))
                mean[r] += share * min(max(value, low), high)
        for r in range(mean.size):
            out[r] += weights[m, r] * (mean[r] / total)
    return out
