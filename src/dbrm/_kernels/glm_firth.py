r"""Firth's penalised likelihood: finite coefficients when the classes are separated.

Maximises :math:`\ell(\beta) + \frac12\log|I(\beta)|`, the posterior mode under Jeffreys'
prior (Firth 1993, Heinze & Schemper 2002). With leverages
:math:`h_r = w_r x_r' I^{-1} x_r` the score in :math:`\eta_r` is
:math:`\ell'_r + \frac12 h_r w'_r / w_r`, for any family and link.
"""

import numba as nb
import numpy as np

from dbrm._kernels.compilation import INTERNAL
from dbrm._kernels.glm_linalg import cholesky, combine, cross_products, solve
from dbrm._kernels.glm_rows import expect, weight_slopes

__all__ = ["firth"]

_MAX_ITERATIONS = 100


@nb.njit(**INTERNAL, error_model="numpy")
def _expected(rows, work, shape, eta):
    """Score and expected information at `eta` into the work space; returns the value there."""
    value = rows.linearise(
        rows.family, rows.link, shape, rows.mean, rows.total, eta, work.score, work.weight
    )
    expect(rows.family, rows.link, shape, rows.total, eta, work.weight)
    return value


@nb.njit(**INTERNAL, error_model="numpy")
def _information(rows, work, k):
    """Factor of the information at the current weights; returns half its log determinant."""
    shaped = work.weight.reshape((rows.columns.shape[1], rows.columns.shape[2]))
    rows.gram(rows.columns, work.chosen, k, shaped, work.scaled, work.hessian)
    if cholesky(work.hessian, k, work.factor, 1e-14) > 0:
        return -np.inf
    total = 0.0
    for i in range(k):
        total += np.log(work.factor[i, i])
    return total


@nb.njit(**INTERNAL, error_model="numpy", fastmath={"contract"})
def _leverages(flat, chosen, k, factor, weight, out):
    rotated = np.empty((k, weight.size))
    for r in range(weight.size):
        out[r] = 0.0
    for i in range(k):
        row = rotated[i]
        source = flat[chosen[i]]
        for r in range(weight.size):
            row[r] = source[r]
        for m in range(i):
            other = rotated[m]
            coefficient = factor[i, m]
            for r in range(weight.size):
                row[r] -= coefficient * other[r]
        inverse = 1.0 / factor[i, i]
        for r in range(weight.size):
            row[r] *= inverse
            out[r] += row[r] * row[r]
    for r in range(weight.size):
        out[r] *= weight[r]


@nb.njit(**INTERNAL, error_model="numpy")
def firth(rows, work, k, shape):
    """Iterate from ``work.beta``; returns the log likelihood's moving part and success.

    On exit ``work`` holds coefficients, linear predictor, information and its factor.
    """
    leverage = np.empty(work.eta.size)
    slopes = np.empty(work.eta.size)
    value = _expected(rows, work, shape, work.eta)
    determinant = _information(rows, work, k)
    for _ in range(_MAX_ITERATIONS):
        _leverages(rows.flat, work.chosen, k, work.factor, work.weight, leverage)
        weight_slopes(rows.family, rows.link, shape, work.eta, slopes)
        for r in range(slopes.size):
            if rows.total[r] > 0.0:
                work.score[r] += 0.5 * leverage[r] * slopes[r]
        cross_products(rows.flat, work.chosen, k, work.score, work.gradient)
        decrement = solve(work.factor, k, work.gradient, work.direction)
        combine(rows.flat, work.chosen, k, work.direction, work.step)
        jump = np.max(np.abs(work.step))
        fraction = min(1.0, 5.0 / jump) if jump > 0.0 else 1.0
        before = value + determinant
        accepted = False
        for _ in range(30):
            for r in range(work.eta.size):
                work.moved[r] = work.eta[r] + fraction * work.step[r]
            new = _expected(rows, work, shape, work.moved)
            new_determinant = _information(rows, work, k)
            if new + new_determinant >= before - 1e-12 * (1.0 + abs(before)):
                accepted = True
                break
            fraction *= 0.5
        if not accepted:
            value = _expected(rows, work, shape, work.eta)
            _information(rows, work, k)
            return value, decrement < 1e-6
        for r in range(work.eta.size):
            work.eta[r] = work.moved[r]
        for i in range(k):
            work.beta[i] += fraction * work.direction[i]
        value = new
        determinant = new_determinant
        if decrement < 1e-18 or (decrement < 1e-12 and jump < 1e-8):
            return value, True
    return value, False
