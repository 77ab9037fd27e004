r"""Laplace log evidence of one mask of a generalised linear model.

Every mask starts from the same two places, whatever was evaluated before: one scoring
step away from the fitted null model, and one away from the model with all columns.
Neither step needs a pass over the rows for its Hessian, because its submatrices are
prepared. The value is therefore a pure function of data and mask, down to the last bit.
"""

from math import lgamma

import numba as nb
import numpy as np

from dbrm._kernels.glm_dispersion import log_likelihood, profile_shape
from dbrm._kernels.glm_firth import firth
from dbrm._kernels.glm_linalg import cholesky
from dbrm._kernels.glm_newton import (
    begin,
    linearise_at,
    load_null,
    means,
    newton,
    penalty_of,
    plain_scoring,
    submatrix,
)
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, NEGATIVE_BINOMIAL
from dbrm._kernels.piecewise import glm_score_one

__all__ = [
    "NORMAL",
    "NORMAL_LOG_GAMMA",
    "TABLE",
    "choose",
    "evaluate_glm",
    "evaluate_many_glm",
    "fit_chosen",
    "fit_firth",
    "fit_from",
    "set_penalty",
]

# The values of `dbrm.status.Status`, which kernels must not import.
OK = np.uint8(0)
DEPENDENT = np.uint8(10)
PERFECT_FIT = np.uint8(11)
SEPARATED = np.uint8(12)
UNDEFINED = np.uint8(14)
TABLE, NORMAL, NORMAL_LOG_GAMMA = 0, 1, 2
_LOG_TWO_PI = 1.8378770664093453
# Larger prior precisions pin a coefficient at zero just the same.
_LARGEST_PENALTY = 1e100


@nb.njit(cache=True, nogil=True)
def choose(context, mask):
    """Write the fixed columns and those of the mask into the work space; return their number.

    The places behind the last one stay valid column numbers, as `weighted_gram` needs.
    """
    chosen = context.work.chosen
    k = context.rows.n_fixed
    for j in range(k):
        chosen[j] = j
    for j in range(mask.size):
        if mask[j]:
            chosen[k] = context.rows.n_fixed + j
            k += 1
    for j in range(k, chosen.size):
        chosen[j] = 0
    return k


@nb.njit(cache=True, nogil=True)
def independent(context, k):
    """Whether the chosen columns are linearly independent over the rows that count."""
    work = context.work
    submatrix(context.unit_gram, work, k)
    for i in range(k):
        if not work.hessian[i, i] > 0.5:
            return False
    return cholesky(work.hessian, k, work.factor, context.tolerance) == 0


@nb.njit(cache=True, nogil=True, error_model="numpy")
def set_penalty(context, k, precision):
    """Prior precisions of the scaled coefficients; returns half the log of their product."""
    work = context.work
    total = 0.0
    work.penalty[0] = 0.0
    for i in range(1, k):
        unit = context.scale[work.chosen[i]]
        penalty = precision / unit / unit
        if penalty < _LARGEST_PENALTY:
            total += 0.5 * np.log(precision) - np.log(unit)
        else:
            penalty = _LARGEST_PENALTY
            total += 0.5 * np.log(penalty)
        work.penalty[i] = penalty
    return total


@nb.njit(cache=True, nogil=True)
def _shape_at(context, value, start):
    rows, work = context.rows, context.work
    if rows.shape == rows.shape:
        return rows.shape
    if rows.family == NEGATIVE_BINOMIAL:
        means(rows, work.eta, work.step)
    return profile_shape(
        rows.family, rows.constants, value, rows.mean, rows.total, work.step, start
    )


@nb.njit(cache=True, nogil=True)
def fit_from(context, k, value, shape):
    """Maximise over coefficients and dispersion in turn, from where the work space stands.

    Returns the log likelihood's moving part, the shape and a status. Gamma and Gaussian
    coefficients depend on the dispersion only through the prior.
    """
    rows, work = context.rows, context.work
    scaled = context.prior != TABLE and (rows.family == GAMMA or rows.family == GAUSSIAN)
    status = OK
    if rows.shape == rows.shape or not (scaled or rows.family == NEGATIVE_BINOMIAL):
        scale = shape if scaled else 1.0
        value, status = newton(context, k, value, shape, scale, context.strict)
        return value, _shape_at(context, value, shape), status
    for _ in range(context.max_iterations):
        value, status = newton(context, k, value, shape, shape if scaled else 1.0, True)
        previous = shape
        shape = _shape_at(context, value, previous)
        if rows.family == NEGATIVE_BINOMIAL:
            value = linearise_at(rows, shape, work.eta, work)
        if abs(np.log(shape / previous)) < 1e-8:
            break
    return value, shape, status


@nb.njit(cache=True, nogil=True)
def fit_chosen(context, k):
    """Fit the chosen columns under the penalties in the work space, from the common starts."""
    start, rows = context.start, context.rows
    if context.plain:
        value, status = plain_scoring(context, k)
        return value, _shape_at(context, value, start.shape), status
    scaled = context.prior != TABLE and (rows.family == GAMMA or rows.family == GAUSSIAN)
    value = begin(context, k, start.shape, start.shape if scaled else 1.0)
    return fit_from(context, k, value, start.shape)


@nb.njit(cache=True, nogil=True)
def fit_firth(context, k, shape):
    """Firth's coefficients of the chosen columns; returns the moving part and success."""
    load_null(context.start, context.rows, context.work, k)
    return firth(context.rows, context.work, k, shape)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _wald(context, k, shape):
    """Log total information and Wald statistic of the slopes, from the Hessian at hand."""
    rows, work = context.rows, context.work
    scale = shape if rows.family == GAMMA or rows.family == GAUSSIAN else 1.0
    quadratic = 0.0
    cross = 0.0
    for i in range(1, k):
        cross += work.hessian[i, 0] * work.beta[i]
        quadratic += work.hessian[i, i] * work.beta[i] * work.beta[i]
        for j in range(1, i):
            quadratic += 2.0 * work.hessian[i, j] * work.beta[i] * work.beta[j]
    wald = quadratic - cross * cross / work.hessian[0, 0]
    return np.log(scale * work.hessian[0, 0]), scale * max(wald, 0.0)


@nb.njit(cache=True, nogil=True)
def _score_normal(context, k, likelihood, half_log_prior):
    """Laplace approximation around the penalised mode, flat intercept.

    Minus infinity where even the prior leaves a direction undetermined.
    """
    work = context.work
    value = likelihood - penalty_of(work, k, work.beta) + half_log_prior + 0.5 * _LOG_TWO_PI
    for i in range(k):
        value -= np.log(work.factor[i, i])
    return value + context.dispersion


@nb.njit(cache=True, nogil=True)
def _integrate_precision(context, k):
    r"""Evidence with an unknown common precision :math:`\tau`: trapezoids in :math:`\log\tau`.

    The closed-form marginal prior is a spike with heavy tails and the posterior under it
    often has two modes, so one Laplace approximation would do for neither. From tight to
    loose priors each fit starts at the last one.
    """
    start, rows, work = context.start, context.rows, context.work
    slopes = k - 1
    top = np.log(max(context.prior_shape, 1.0) / context.prior_rate) + 5.0
    step = 0.25
    scaled = rows.family == GAMMA or rows.family == GAUSSIAN
    best = -np.inf
    total = 0.0
    worst = OK
    shape = start.shape
    for node in range(600):
        psi = top - step * node
        half = set_penalty(context, k, np.exp(psi))
        if node == 0:
            value = begin(context, k, shape, shape if scaled else 1.0)
        value, shape, status = fit_from(context, k, value, shape)
        worst = max(worst, status)
        likelihood = log_likelihood(rows.family, rows.constants, value, shape)
        if 2.0 * (rows.constants.saturated - value) < rows.constants.floor:
            worst = PERFECT_FIT
        log_term = _score_normal(context, k, likelihood, half)
        if slopes == 0:
            return log_term, worst
        if not abs(log_term) < np.inf:
            return -np.inf, DEPENDENT
        log_term += context.prior_shape * (np.log(context.prior_rate) + psi)
        log_term -= lgamma(context.prior_shape) + context.prior_rate * np.exp(psi)
        if log_term > best:
            total = total * np.exp(best - log_term) + 1.0
            best = log_term
        else:
            total += np.exp(log_term - best)
        # Once the data no longer feel the prior, terms fall like tau ** (slopes / 2 + a).
        shrinkage = 0.0
        for i in range(1, k):
            shrinkage = max(shrinkage, work.penalty[i] / work.hessian[i, i])
        if shrinkage < 1e-3 and log_term < best - 40.0:
            break
    return best + np.log(total * step), worst


@nb.njit(cache=True, nogil=True)
def evaluate_glm(context, mask):
    """Log evidence and status of one mask."""
    rows = context.rows
    k = choose(context, mask)
    row = k - rows.n_fixed
    if context.prior == TABLE and context.table[0][row] == -np.inf:
        return -np.inf, UNDEFINED
    if context.prior == NORMAL_LOG_GAMMA:
        return _integrate_precision(context, k)
    # A proper prior determines the coefficients of dependent columns too.
    if context.prior == TABLE and not independent(context, k):
        return -np.inf, DEPENDENT
    half = set_penalty(context, k, context.prior_rate)
    value, shape, status = fit_chosen(context, k)
    likelihood = log_likelihood(rows.family, rows.constants, value, shape)
    if 2.0 * (rows.constants.saturated - value) < rows.constants.floor:
        status = PERFECT_FIT
    if context.prior == NORMAL:
        score = _score_normal(context, k, likelihood, half)
        if not abs(score) < np.inf:
            return -np.inf, DEPENDENT
        return score, status
    information = 0.0
    wald = 0.0
    if context.strict:
        if status == SEPARATED:
            # Infinite coefficients carry no information; Firth's are finite.
            fit_firth(context, k, shape)
        information, wald = _wald(context, k, shape)
    score = glm_score_one(likelihood, information, wald, row, *context.table) + context.dispersion
    if not abs(score) < np.inf:
        return -np.inf, UNDEFINED
    return score, status


@nb.njit(cache=True, nogil=True)
def evaluate_many_glm(context, masks):
    """Evaluate the rows of a boolean matrix one after the other."""
    values = np.empty(masks.shape[0])
    statuses = np.empty(masks.shape[0], dtype=np.uint8)
    for row in range(masks.shape[0]):
        values[row], statuses[row] = evaluate_glm(context, masks[row])
    return values, statuses
