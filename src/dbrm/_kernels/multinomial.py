"""Damped Newton steps of multinomial logistic regression; see `dbrm.evidence.families.multinomial`.

Parameters stand as in `dbrm.evidence.joint.likelihood`: the intercepts of all classes but the
first, then their coefficients of the first column, of the second, and so on.
"""

import numba as nb
import numpy as np

from dbrm._kernels.glm_linalg import cholesky, solve
from dbrm._kernels.joint import combine_columns, weighted_products

__all__ = ["climb"]

_HALVINGS = 40
# A pivot below this share of its diagonal is rounding.
_TOLERANCE = 1e-13


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _chances(design, number, weights, offset, parameters, m, out):
    """Probabilities of all classes but the first, into `out`; returns the log likelihood."""
    eta = combine_columns(parameters.reshape(-1, m), design, offset)
    value = 0.0
    for i in range(offset.size):
        top = 0.0
        for k in range(m):
            top = max(top, eta[k, i])
        total = np.exp(-top)
        for k in range(m):
            out[k, i] = np.exp(eta[k, i] - top)
            total += out[k, i]
        for k in range(m):
            out[k, i] /= total
        own = eta[number[i] - 1, i] if number[i] > 0 else 0.0
        value += weights[i] * (own - top - np.log(total))
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _information(design, weights, chance, out):
    """Negative second derivatives of the log likelihood, into `out`."""
    m = len(chance)
    for k in range(m):
        for other in range(k + 1):
            weight = -weights * chance[k] * chance[other]
            if k == other:
                weight += weights * chance[k]
            block = weighted_products(design, weight, design)
            for i in range(len(design)):
                for j in range(len(design)):
                    out[i * m + k, j * m + other] = block[i, j]
                    out[j * m + other, i * m + k] = block[i, j]


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pull(precision, parameters, out):
    """The matrix times the parameters, into `out`; returns their quadratic form."""
    form = 0.0
    for i in range(parameters.size):
        total = 0.0
        for j in range(parameters.size):
            total += precision[i, j] * parameters[j]
        out[i] = total
        form += total * parameters[i]
    return form


@nb.njit(cache=True, nogil=True, error_model="numpy")
def climb(columns, number, weights, offset, start, precision, still, iterations):
    """Parameters after Newton steps from `start`, until they gain less than `still`.

    Climbs the log likelihood less half of the quadratic form of `precision`; stops early where a
    step cannot be taken.

    Parameters
    ----------
    columns
        By rows of the data.
    number
        Class of each row, from zero.
    """
    n, size = offset.size, start.size
    m = size // (len(columns) + 1)
    design = np.ones((len(columns) + 1, n))
    design[1:] = columns
    here = start.copy()
    chance, moved_chance = np.empty((m, n)), np.empty((m, n))
    value = _chances(design, number, weights, offset, here, m, chance)
    pull = np.empty(size)
    height = value - 0.5 * _pull(precision, here, pull)
    matrix, factor = np.empty((size, size)), np.empty((size, size))
    step, ones = np.empty(size), np.ones(n)
    score = np.empty((m, n))
    for _ in range(iterations):
        for i in range(n):
            for k in range(m):
                score[k, i] = -weights[i] * chance[k, i]
            if number[i] > 0:
                score[number[i] - 1, i] += weights[i]
        _pull(precision, here, pull)
        gradient = weighted_products(design, ones, score).ravel() - pull
        _information(design, weights, chance, matrix)
        matrix += precision
        if cholesky(matrix, size, factor, _TOLERANCE) > 0:
            break
        if not solve(factor, size, gradient, step) >= still:
            break
        fraction = 1.0
        for _ in range(_HALVINGS):
            moved = here + fraction * step
            there = _chances(design, number, weights, offset, moved, m, moved_chance)
            there -= 0.5 * _pull(precision, moved, pull)
            if there >= height:
                break
            fraction *= 0.5
        else:
            break
        here, height = moved, there
        chance, moved_chance = moved_chance, chance
    return here
