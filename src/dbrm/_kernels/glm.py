r"""Laplace log evidence of one mask of a generalised linear model.

Every mask starts from the same place, whatever was evaluated before: one scoring step away
from the fitted model with all columns or, where that leads nowhere, from the null model.
Neither step needs a pass over the rows for its Hessian, because its submatrices are
prepared. The value is therefore a pure function of data and mask, down to the last bit.
"""

from math import lgamma

import numba as nb
import numpy as np

from dbrm._kernels.compilation import INTERNAL, ONCE
from dbrm._kernels.glm_dispersion import log_likelihood, profile_shape
from dbrm._kernels.glm_firth import firth
from dbrm._kernels.glm_linalg import cholesky
from dbrm._kernels.glm_newton import (
    AT_MAXIMUM,
    NEAR,
    ONE_STEP,
    begin,
    hessian_of,
    linearise_at,
    load_null,
    means,
    newton,
    penalty_of,
    plain_scoring,
    submatrix,
)
from dbrm._kernels.glm_problem import problem_of
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, NEGATIVE_BINOMIAL, expect
from dbrm._kernels.piecewise import glm_score_one

__all__ = [
    "NORMAL",
    "NORMAL_LOG_GAMMA",
    "TABLE",
    "evaluate_glm",
    "evaluate_likelihood",
    "evaluate_many_glm",
    "evaluate_mixture",
    "evaluate_normal",
    "evaluate_plain",
    "evaluate_wald",
    "fit_newton",
    "fit_plain",
    "linearise_in",
    "maximise",
    "place",
    "solve_many",
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


@nb.njit(**INTERNAL)
def choose(problem, mask):
    """Write the fixed columns and those of the mask into the work space; return their number.

    The places behind the last one stay valid column numbers, as `weighted_gram` needs.
    """
    chosen = problem.work.chosen
    k = problem.rows.n_fixed
    for j in range(k):
        chosen[j] = j
    for j in range(mask.size):
        if mask[j]:
            chosen[k] = problem.rows.n_fixed + j
            k += 1
    for j in range(k, chosen.size):
        chosen[j] = 0
    return k


@nb.njit(**INTERNAL)
def independent(problem, k):
    """Whether the chosen columns are linearly independent over the rows that count."""
    work = problem.work
    submatrix(problem.unit_gram, work, k)
    for i in range(k):
        if not work.hessian[i, i] > 0.5:
            return False
    return cholesky(work.hessian, k, work.factor, problem.tolerance) == 0


@nb.njit(**INTERNAL, error_model="numpy")
def set_penalty(problem, k, precision):
    """Prior precisions of the scaled coefficients; returns half the log of their product."""
    work = problem.work
    total = 0.0
    work.penalty[0] = 0.0
    for i in range(1, k):
        unit = problem.scale[work.chosen[i]]
        penalty = precision / unit / unit
        if penalty < _LARGEST_PENALTY:
            total += 0.5 * np.log(precision) - np.log(unit)
        else:
            penalty = _LARGEST_PENALTY
            total += 0.5 * np.log(penalty)
        work.penalty[i] = penalty
    return total


@nb.njit(**INTERNAL)
def shape_at(problem, value, start):
    rows, work = problem.rows, problem.work
    if rows.shape == rows.shape:
        return rows.shape
    if rows.family == NEGATIVE_BINOMIAL:
        means(rows, work.eta, work.moved)
    return profile_shape(
        rows.family, rows.constants, value, rows.mean, rows.total, work.moved, start
    )


@nb.njit(cache=True, nogil=True, inline="always")
def scale_of(problem, shape):
    """Factor of the likelihood beside the prior: gamma and Gaussian fits feel the dispersion."""
    rows = problem.rows
    felt = problem.prior != TABLE and (rows.family == GAMMA or rows.family == GAUSSIAN)
    return shape if felt else 1.0


def fit_newton(opaque, k, value, shape, near):
    """Maximise over coefficients and dispersion in turn, from where the work space stands.

    From the common starts where `value` is not a number. Returns the log likelihood's moving
    part, the shape and a status. The coefficients of a gamma or Gaussian response depend on
    the dispersion only through the prior.
    """
    problem = problem_of(opaque)
    rows, work = problem.rows, problem.work
    known = rows.shape == rows.shape
    felt = rows.family == NEGATIVE_BINOMIAL or (
        problem.prior != TABLE and (rows.family == GAMMA or rows.family == GAUSSIAN)
    )
    repeats = 1 if known or not felt else problem.max_iterations
    near = near if repeats == 1 else AT_MAXIMUM
    status = OK
    if value != value:
        value = begin(problem, k, shape, scale_of(problem, shape))
    for _ in range(repeats):
        value, status = newton(problem, k, value, shape, scale_of(problem, shape), near)
        previous = shape
        shape = shape_at(problem, value, previous)
        if repeats == 1:
            break
        if rows.family == NEGATIVE_BINOMIAL:
            value = linearise_at(rows, shape, work.eta, work)
        if abs(np.log(shape / previous)) < 1e-8:
            break
    return value, shape, status


def fit_plain(opaque, k, value, shape, near):  # noqa: ARG001
    """The same by undamped scoring, always from the common start."""
    problem = problem_of(opaque)
    value, status = plain_scoring(problem, k)
    return value, shape_at(problem, value, shape), status


# What Python calls, to prepare populations and to look into single models.


@nb.njit(cache=True, nogil=True)
def place(opaque, mask, precision):
    """Choose the columns of a mask and set their penalties.

    Returns their number and whether they are linearly independent.
    """
    problem = problem_of(opaque)
    k = choose(problem, mask)
    set_penalty(problem, k, precision)
    return k, independent(problem, k)


@nb.njit(cache=True, nogil=True)
def maximise(opaque, k, value, shape):
    """Fit the columns in place; see `fit_newton`. Also returns the whole log likelihood."""
    problem = problem_of(opaque)
    value, shape, status = problem.fit(opaque, k, value, shape, AT_MAXIMUM)
    rows = problem.rows
    return value, log_likelihood(rows.family, rows.constants, value, shape), shape, status


@nb.njit(cache=True, nogil=True)
def linearise_in(opaque, shape, eta):
    """Score and information at `eta` into the work space; returns the value there."""
    problem = problem_of(opaque)
    return linearise_at(problem.rows, shape, eta, problem.work)


@nb.njit(cache=True, nogil=True)
def solve_many(opaque, masks, precision, use_firth, coefficients, information):
    """Maxima of the models of `masks`: coefficients and information, one model after the other.

    Firth's coefficients where classes are separated, if asked for. Returns the number of columns
    of each model, its log likelihood and its shape.
    """
    problem = problem_of(opaque)
    rows, work = problem.rows, problem.work
    sizes = np.empty(masks.shape[0], dtype=np.int64)
    likelihoods, shapes = np.empty(masks.shape[0]), np.empty(masks.shape[0])
    for row in range(masks.shape[0]):
        k = choose(problem, masks[row])
        set_penalty(problem, k, precision)
        start = problem.start.numbers[1]
        value, shape, status = problem.fit(opaque, k, np.nan, start, AT_MAXIMUM)
        likelihoods[row] = log_likelihood(rows.family, rows.constants, value, shape)
        if use_firth and status == SEPARATED:
            _fit_firth(problem, k, shape)
        linearise_at(rows, shape, work.eta, work)
        expect(rows.family, rows.link, shape, rows.total, work.eta, work.weight)
        hessian_of(rows, work, k)
        scale = shape if rows.family == GAMMA or rows.family == GAUSSIAN else 1.0
        for i in range(k):
            coefficients[row, i] = work.beta[i]
            for j in range(i + 1):
                information[row, i, j] = information[row, j, i] = scale * work.hessian[i, j]
            information[row, i, i] += work.penalty[i]
        sizes[row], shapes[row] = k, shape
    return sizes, likelihoods, shapes


@nb.njit(**ONCE)
def _fit_firth(problem, k, shape):
    """Firth's coefficients of the chosen columns; returns the moving part and success."""
    load_null(problem.start, problem.rows, problem.work, k)
    value, success = firth(problem.rows, problem.work, k, shape)
    problem.work.step[:] = 0.0
    return value, success


@nb.njit(**INTERNAL, error_model="numpy")
def _wald(problem, shape):
    r"""Log total information and Wald statistic of the slopes, one step on from the work space.

    The Wald statistic :math:`\hat\beta'X_c'WX_c\hat\beta` of columns centred with the weights is
    :math:`\sum_i w_i(z_i-\bar z)^2` with :math:`z=X\hat\beta`: no matrix is needed.
    """
    rows, work = problem.rows, problem.work
    for r in range(work.eta.size):
        work.moved[r] = work.eta[r] + work.step[r]
    linearise_at(rows, shape, work.moved, work)
    expect(rows.family, rows.link, shape, rows.total, work.moved, work.weight)
    total = 0.0
    mean = 0.0
    for r in range(work.eta.size):
        work.moved[r] -= rows.offset[r]
        total += work.weight[r]
        mean += work.weight[r] * work.moved[r]
    mean /= total
    wald = 0.0
    for r in range(work.eta.size):
        distance = work.moved[r] - mean
        wald += work.weight[r] * distance * distance
    scale = shape if rows.family == GAMMA or rows.family == GAUSSIAN else 1.0
    return np.log(scale * total), scale * wald


@nb.njit(**ONCE)
def _score_normal(problem, k, likelihood, half_log_prior):
    """Laplace approximation around the penalised mode, flat intercept.

    Minus infinity where even the prior leaves a direction undetermined.
    """
    work = problem.work
    value = likelihood - penalty_of(work, k, work.beta) + half_log_prior + 0.5 * _LOG_TWO_PI
    for i in range(k):
        value -= np.log(work.factor[i, i])
    return value + problem.dispersion


@nb.njit(**ONCE)
def _integrate_precision(opaque, problem, k):
    r"""Evidence with an unknown common precision :math:`\tau`: trapezoids in :math:`\log\tau`.

    The closed-form marginal prior is a spike with heavy tails and the posterior under it
    often has two modes, so one Laplace approximation would do for neither. From tight to
    loose priors each fit starts at the last one.
    """
    start, rows, work = problem.start, problem.rows, problem.work
    slopes = k - 1
    top = np.log(max(problem.prior_shape, 1.0) / problem.prior_rate) + 5.0
    step = 0.25
    best = -np.inf
    total = 0.0
    worst = OK
    value = np.nan
    shape = start.numbers[1]
    for node in range(600):
        psi = top - step * node
        half = set_penalty(problem, k, np.exp(psi))
        value, shape, status = problem.fit(opaque, k, value, shape, AT_MAXIMUM)
        worst = max(worst, status)
        likelihood = log_likelihood(rows.family, rows.constants, value, shape)
        if 2.0 * (rows.constants.saturated - value) < rows.constants.floor:
            worst = PERFECT_FIT
        log_term = _score_normal(problem, k, likelihood, half)
        if slopes == 0:
            return log_term, worst
        if not abs(log_term) < np.inf:
            return -np.inf, DEPENDENT
        log_term += problem.prior_shape * (np.log(problem.prior_rate) + psi)
        log_term -= lgamma(problem.prior_shape) + problem.prior_rate * np.exp(psi)
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


@nb.njit(**ONCE)
def _likelihood(opaque, problem, k, near):
    """Maximised log likelihood of the chosen columns, the shape and a status."""
    rows = problem.rows
    value, shape, status = problem.fit(opaque, k, np.nan, problem.start.numbers[1], near)
    if 2.0 * (rows.constants.saturated - value) < rows.constants.floor:
        status = PERFECT_FIT
    return log_likelihood(rows.family, rows.constants, value, shape), shape, status


# One function for each kind of prior, so that none compiles what only others need.


def evaluate_likelihood(opaque, mask):
    """Log evidence and status of one mask, prior a function of the likelihood alone."""
    problem = problem_of(opaque)
    k = choose(problem, mask)
    row = k - problem.rows.n_fixed
    if problem.table[0][row] == -np.inf:
        return -np.inf, UNDEFINED
    if not independent(problem, k):
        return -np.inf, DEPENDENT
    set_penalty(problem, k, 0.0)
    likelihood, _, status = _likelihood(opaque, problem, k, NEAR)
    score = likelihood + problem.table[0][row] + problem.dispersion
    if not abs(score) < np.inf:
        return -np.inf, UNDEFINED
    return score, status


def evaluate_wald(opaque, mask):
    """Log evidence and status of one mask, prior a function of the Wald statistic too."""
    problem = problem_of(opaque)
    k = choose(problem, mask)
    row = k - problem.rows.n_fixed
    if problem.table[0][row] == -np.inf:
        return -np.inf, UNDEFINED
    if not independent(problem, k):
        return -np.inf, DEPENDENT
    set_penalty(problem, k, 0.0)
    near = ONE_STEP if problem.rows.quadratic else AT_MAXIMUM
    likelihood, shape, status = _likelihood(opaque, problem, k, near)
    if status == SEPARATED:
        # Infinite coefficients carry no information; Firth's are finite.
        _fit_firth(problem, k, shape)
    information, wald = _wald(problem, shape)
    score = glm_score_one(likelihood, information, wald, row, *problem.table) + problem.dispersion
    if not abs(score) < np.inf:
        return -np.inf, UNDEFINED
    return score, status


def evaluate_normal(opaque, mask):
    """Log evidence and status of one mask, normal prior with a known precision.

    A proper prior determines the coefficients of dependent columns too.
    """
    problem = problem_of(opaque)
    k = choose(problem, mask)
    half = set_penalty(problem, k, problem.prior_rate)
    likelihood, _, status = _likelihood(opaque, problem, k, AT_MAXIMUM)
    score = _score_normal(problem, k, likelihood, half)
    if not abs(score) < np.inf:
        return -np.inf, DEPENDENT
    return score, status


def evaluate_mixture(opaque, mask):
    """Log evidence and status of one mask, normal prior with an unknown precision."""
    problem = problem_of(opaque)
    return _integrate_precision(opaque, problem, choose(problem, mask))


def evaluate_plain(opaque, mask):
    """Log evidence and status of one mask by undamped scoring; tabulated priors."""
    problem = problem_of(opaque)
    rows = problem.rows
    k = choose(problem, mask)
    row = k - rows.n_fixed
    if problem.table[0][row] == -np.inf:
        return -np.inf, UNDEFINED
    if not independent(problem, k):
        return -np.inf, DEPENDENT
    set_penalty(problem, k, 0.0)
    value, shape, status = problem.fit(opaque, k, np.nan, problem.start.numbers[1], AT_MAXIMUM)
    likelihood = log_likelihood(rows.family, rows.constants, value, shape)
    information, wald = _wald(problem, shape) if problem.strict else (0.0, 0.0)
    score = glm_score_one(likelihood, information, wald, row, *problem.table) + problem.dispersion
    if not abs(score) < np.inf:
        return -np.inf, UNDEFINED
    return score, status


@nb.njit(cache=True, nogil=True)
def evaluate_glm(context, mask):
    """Log evidence and status of one mask; see `dbrm._kernels.glm_pointers`."""
    return context.call(context.problem, mask)


@nb.njit(cache=True, nogil=True)
def evaluate_many_glm(context, masks):
    """Evaluate the rows of a boolean matrix one after the other."""
    values = np.empty(masks.shape[0])
    statuses = np.empty(masks.shape[0], dtype=np.uint8)
    for row in range(masks.shape[0]):
        values[row], statuses[row] = context.call(context.problem, masks[row])
    return values, statuses
