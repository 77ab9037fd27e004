r"""Damped Newton iterations for one chosen set of columns.

Near a maximum :math:`\ell(\hat\beta) = \ell(\beta) + \frac12\lambda^2` up to third order,
with :math:`\lambda^2` the squared Newton decrement; with the observed information the remainder is
at most about :math:`\frac16\lambda^2\max|\Delta\eta|`, which is what the iteration stops on.
"""

import numba as nb
import numpy as np

from dbrm._kernels.compilation import INTERNAL, ONCE
from dbrm._kernels.glm_linalg import cholesky, combine, cross_products, solve
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, INVERSE, LOG, expect

__all__ = [
    "AT_MAXIMUM",
    "NEAR",
    "ONE_STEP",
    "begin",
    "linearise_at",
    "load_null",
    "means",
    "newton",
    "penalty_of",
    "plain_scoring",
    "submatrix",
]

# The values of `dbrm.status.Status`, which kernels must not import.
OK = np.uint8(0)
SEPARATED = np.uint8(12)
NOT_CONVERGED = np.uint8(13)

# Bound on the error of the log likelihood.
REMAINDER = 1e-10
# Largest move of a linear predictor at which information matrices count as converged:
# the next move is its square with observed information, a fraction of it otherwise.
SETTLED = 1e-5
SETTLED_LINEARLY = 1e-9
# A linear predictor that still moves this much while the likelihood stands still.
RUNAWAY = 0.05
# How near to the maximum Newton's method must come, as the largest move still to be made: near
# enough for the likelihood, which the decrement completes; one step away, so that the square
# of the move can be neglected; or no move left.
NEAR, ONE_STEP, AT_MAXIMUM = RUNAWAY, 1e-4, -1.0
# Share of a diagonal element below which a direction carries no information of its own.
SINGULAR = 1e-14


@nb.njit(**INTERNAL)
def linearise_at(rows, shape, eta, work):
    """Score and information at `eta` into the work space; returns the value there."""
    return rows.linearise(
        rows.family, rows.link, shape, rows.mean, rows.total, eta, work.score, work.weight
    )


@nb.njit(**INTERNAL, error_model="numpy")
def means(rows, eta, out):
    """Means under a log, inverse or identity link."""
    for r in range(eta.size):
        if rows.link == LOG:
            out[r] = np.exp(min(max(eta[r], -700.0), 700.0))
        elif rows.link == INVERSE:
            out[r] = 1.0 / eta[r]
        else:
            out[r] = eta[r]


@nb.njit(**ONCE)
def hessian_of(rows, work, k):
    """Cross products of the chosen columns, with the weights at hand."""
    shaped = work.weight.reshape((rows.columns.shape[1], rows.columns.shape[2]))
    rows.gram(rows.columns, work.chosen, k, shaped, work.scaled, work.hessian)


@nb.njit(**INTERNAL)
def submatrix(source, work, k):
    """Rows and columns of the chosen columns, into the work space."""
    for i in range(k):
        for j in range(i + 1):
            work.hessian[i, j] = source[work.chosen[i], work.chosen[j]]


@nb.njit(**INTERNAL)
def penalty_of(work, k, coefficients):
    """Half the squared length of the coefficients in the metric of the prior precision."""
    total = 0.0
    for i in range(k):
        total += work.penalty[i] * coefficients[i] * coefficients[i]
    return 0.5 * total


@nb.njit(**INTERNAL)
def factorise(work, k, scale):
    """Factor of ``scale * H + P``; returns the number of directions without information."""
    for i in range(k):
        for j in range(i + 1):
            work.hessian[i, j] *= scale
        work.hessian[i, i] += work.penalty[i]
    return cholesky(work.hessian, k, work.factor, SINGULAR)


@nb.njit(**INTERNAL)
def _accept(work, k):
    for r in range(work.eta.size):
        work.eta[r] = work.moved[r]
    for i in range(k):
        work.beta[i] = work.trial[i]


@nb.njit(**INTERNAL)
def _advance(rows, work, k, value, shape, scale):
    """Take the step, halved until the objective does not fall.

    Returns the new value and the fraction taken (zero: nowhere). ``work.step`` is the
    change of the linear predictor, ``work.direction`` that of the coefficients; score
    and information become those of the new place.
    """
    before = scale * value - penalty_of(work, k, work.beta)
    slack = 1e-13 * (1.0 + abs(before))
    fraction = 1.0
    for _ in range(40):
        for r in range(work.eta.size):
            work.moved[r] = work.eta[r] + fraction * work.step[r]
        for i in range(k):
            work.trial[i] = work.beta[i] + fraction * work.direction[i]
        new = linearise_at(rows, shape, work.moved, work)
        if scale * new - penalty_of(work, k, work.trial) >= before - slack:
            _accept(work, k)
            return new, fraction
        fraction *= 0.5
    return linearise_at(rows, shape, work.eta, work), 0.0


@nb.njit(**ONCE)
def _stride(rows, work, k, value, shape, scale):
    """Try seven more steps in the same direction at once; stay where that is no better."""
    before = scale * value - penalty_of(work, k, work.beta)
    for r in range(work.eta.size):
        work.moved[r] = work.eta[r] + 7.0 * work.step[r]
    for i in range(k):
        work.trial[i] = work.beta[i] + 7.0 * work.direction[i]
    new = linearise_at(rows, shape, work.moved, work)
    if scale * new - penalty_of(work, k, work.trial) > before:
        _accept(work, k)
        return new
    return linearise_at(rows, shape, work.eta, work)


@nb.njit(**INTERNAL)
def _direct(rows, work, k, scale):
    """Newton direction from the factor and the score; returns decrement and largest move."""
    cross_products(rows.flat, work.chosen, k, work.score, work.gradient)
    for i in range(k):
        work.gradient[i] = scale * work.gradient[i] - work.penalty[i] * work.beta[i]
    decrement = solve(work.factor, k, work.gradient, work.direction)
    combine(rows.flat, work.chosen, k, work.direction, work.step)
    jump = 0.0
    for r in range(work.step.size):
        jump = max(jump, abs(work.step[r]))
    return decrement, jump


@nb.njit(**ONCE)
def load_null(start, rows, work, k):
    """Put the fitted null model into the work space, as a member of the chosen model."""
    for i in range(k):
        work.beta[i] = start.beta[i] if i < rows.n_fixed else 0.0
    for r in range(work.eta.size):
        work.eta[r] = start.eta[r]


@nb.njit(**ONCE)
def begin(problem, k, shape, scale):
    """One scoring step from the second starting place, or from the null model. Returns the value.

    The null model is where to start if there is no second place, or if the step from there leads
    to a worse one than the null model.
    """
    rows, start, work = problem.rows, problem.start, problem.work
    load_null(start, rows, work, k)
    if start.numbers[2] > 0.0:
        _second_start(rows, start, work, k, scale)
        new = linearise_at(rows, shape, work.moved, work)
        before = scale * start.numbers[0] - penalty_of(work, k, work.beta)
        if scale * new - penalty_of(work, k, work.trial) >= before:
            _accept(work, k)
            return new
    submatrix(start.hessian, work, k)
    factorise(work, k, scale)
    for i in range(k):
        work.gradient[i] = scale * start.gradient[work.chosen[i]] - work.penalty[i] * work.beta[i]
    solve(work.factor, k, work.gradient, work.direction)
    combine(rows.flat, work.chosen, k, work.direction, work.step)
    value, _ = _advance(rows, work, k, start.numbers[0], shape, scale)
    return value


@nb.njit(**INTERNAL)
def _second_start(rows, start, work, k, scale):
    """Coefficients and linear predictor one scoring step from the second place."""
    submatrix(start.second_hessian, work, k)
    factorise(work, k, scale)
    for i in range(k):
        work.gradient[i] = scale * start.second_right[work.chosen[i]]
    solve(work.factor, k, work.gradient, work.trial)
    combine(rows.flat, work.chosen, k, work.trial, work.moved)
    for r in range(work.moved.size):
        work.moved[r] += rows.offset[r]


@nb.njit(**ONCE)
def newton(problem, k, value, shape, scale, near):
    """Maximise over the coefficients from where the work space is linearised.

    Returns the value at the maximum (or the supremum) and a status. On exit the work space
    is as near to the maximum as asked, and ``work.step`` is what is left of the way, added to
    the value; ``AT_MAXIMUM`` leaves expected information as well.
    """
    rows, work = problem.rows, problem.work
    settled = SETTLED if rows.quadratic else SETTLED_LINEARLY
    profiled = rows.family == GAMMA or rows.family == GAUSSIAN
    for iteration in range(problem.max_iterations):
        hessian_of(rows, work, k)
        failed = factorise(work, k, scale)
        decrement, jump = _direct(rows, work, k, scale)
        tolerance = REMAINDER
        if profiled and scale == 1.0:
            deviance = 2.0 * (rows.constants.saturated - value)
            tolerance *= max(min(deviance / rows.constants.n, 1.0), 1e-12)
        # A runaway predictor with nothing left to gain: the supremum is at infinity.
        if decrement < tolerance and (jump > RUNAWAY or failed > 0):
            return value + 0.5 * decrement / scale, SEPARATED
        small = decrement * (min(jump, 1.0) if rows.quadratic else 1.0) < tolerance
        if small and jump <= near:
            return value + 0.5 * decrement / scale, OK
        if small and jump < settled:
            value, _ = _advance(rows, work, k, value, shape, scale)
            expect(rows.family, rows.link, shape, rows.total, work.eta, work.weight)
            hessian_of(rows, work, k)
            factorise(work, k, scale)
            work.step[:] = 0.0
            return value, OK
        value, taken = _advance(rows, work, k, value, shape, scale)
        if taken == 0.0:
            work.step[:] = 0.0
            return value, OK if decrement < 1e-6 else NOT_CONVERGED
        if taken == 1.0 and jump > 0.5 and (iteration >= 5 or decrement < 0.5):
            # Under separation every step gains one unit of eta, without end.
            value = _stride(rows, work, k, value, shape, scale)
    work.step[:] = 0.0
    return value, NOT_CONVERGED


@nb.njit(**ONCE)
def plain_scoring(problem, k):
    """Iteratively reweighted least squares as R's ``glm`` does it: undamped, at most 25 times.

    Starts at ``start.second_*`` (R's initial means), stops when the deviance changes by
    less than 1e-8 of itself.
    """
    rows, start, work = problem.rows, problem.start, problem.work
    _second_start(rows, start, work, k, 1.0)
    value = linearise_at(rows, start.numbers[1], work.moved, work)
    _accept(work, k)
    previous = 2.0 * (rows.constants.saturated - start.numbers[0])
    jump = 0.0
    for _ in range(problem.max_iterations - 1):
        deviance = 2.0 * (rows.constants.saturated - value)
        if abs(deviance - previous) < 1e-8 * (abs(deviance) + 0.1):
            work.step[:] = 0.0
            return value, SEPARATED if jump > RUNAWAY else OK
        previous = deviance
        hessian_of(rows, work, k)
        factorise(work, k, 1.0)
        _, jump = _direct(rows, work, k, 1.0)
        for r in range(work.eta.size):
            work.moved[r] = work.eta[r] + work.step[r]
        for i in range(k):
            work.trial[i] = work.beta[i] + work.direction[i]
        new = linearise_at(rows, start.numbers[1], work.moved, work)
        if not new > -np.inf:
            break
        _accept(work, k)
        value = new
    work.step[:] = 0.0
    return value, SEPARATED if jump > RUNAWAY else NOT_CONVERGED
