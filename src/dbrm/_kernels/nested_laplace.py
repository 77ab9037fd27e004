r"""The mode of latent variables and coefficients together, by damped Newton steps.

The linear predictor is :math:`\eta = o + B\beta + Z\delta`: a dense part with precision
:math:`P` and a sparse one with banded precision :math:`Q`, where row :math:`i` of :math:`Z` has
the numbers ``loadings[i]`` at ``slots[i]``. Linear constraints :math:`A'\delta = 0` make
intrinsic effects proper.
With :math:`H = Q + Z'WZ = LL'`, :math:`Y = L^{-1}Z'WB`, :math:`U = L^{-1}A` and
:math:`C = U'U`, the coefficients have the Schur complement

.. math:: S = B'WB + P - Y'Y + Y'U C^{-1} U'Y,

and the integral over the latent variables has the log determinant
:math:`\log|H| + \log|C| - \log|A'A|` (conditioning by kriging, Rue and Held 2005). All of it
is linear in rows and latent variables.
"""

from collections import namedtuple

import numba as nb
import numpy as np

from dbrm._kernels.banded import (
    factorise,
    log_determinant,
    multiply,
    solve_lower,
    solve_upper,
)
from dbrm._kernels.compilation import INTERNAL, ONCE
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, linearise

__all__ = ["OK", "SINGULAR", "STUCK", "Mode", "expand", "find_mode", "posterior_parts"]

OK, SINGULAR, STUCK = 0, 1, 2
# A Schur complement with a smaller pivot, relative to its diagonal before elimination, counts
# as singular: the columns depend on each other.
_SMALLEST_PIVOT = 1e-9
_HALVINGS = 30

# value: moving part of the log likelihood; quadratic: half of delta'Q delta + beta'P beta;
# log_determinant: of the latent part given the coefficients, constraints included;
# schur: S; factor, dense, constraint: L, Y, U; status and the number of Newton steps.
Mode = namedtuple(
    "Mode", "value quadratic log_determinant schur factor dense constraint status steps"
)
# Of one Newton step: H and L; the columns Z'WB, latent gradient and A, which become L^-1 times
# these; B'WB + P and the gradient of the coefficients; S.
_Equations = namedtuple("_Equations", "hessian factor work dense right schur")


@nb.njit(**INTERNAL, error_model="numpy")
def _small_factor(matrix, scale):
    """Cholesky factor of a small dense matrix; the flag is ``False`` if it is singular."""
    n = matrix.shape[0]
    factor = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                if not total > _SMALLEST_PIVOT * scale[i] or not total < np.inf:
                    return factor, False
                factor[i, i] = np.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    return factor, True


@nb.njit(**INTERNAL, error_model="numpy")
def _small_solve(factor, vector):
    """Solve with a small Cholesky factor, in place."""
    n = vector.size
    for i in range(n):
        for k in range(i):
            vector[i] -= factor[i, k] * vector[k]
        vector[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            vector[i] -= factor[k, i] * vector[k]
        vector[i] /= factor[i, i]


@nb.njit(**INTERNAL, error_model="numpy")
def _predict(offset, columns, slots, loadings, delta, beta, eta):
    for i in range(offset.size):
        total = offset[i]
        for c in range(beta.size):
            total += columns[i, c] * beta[c]
        for k in range(slots.shape[1]):
            total += loadings[i, k] * delta[slots[i, k]]
        eta[i] = total


@nb.njit(**INTERNAL, error_model="numpy")
def _quadratic(precision, ridge, delta, beta, product):
    multiply(precision, delta, product)
    total = 0.0
    for i in range(delta.size):
        total += delta[i] * product[i]
    for i in range(beta.size):
        for j in range(beta.size):
            total += beta[i] * ridge[i, j] * beta[j]
    return 0.5 * total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def find_mode(
    family,
    link,
    shape,
    mean,
    total,
    offset,
    columns,
    slots,
    loadings,
    precision,
    ridge,
    constraints,
    delta,
    beta,
    max_steps,
    tolerance,
):
    """Maximise over `delta` and `beta`, in place, from where they stand; return a `Mode`.

    The steps end when the squared Newton decrement, twice what is left to gain, is below
    `tolerance`.
    """
    scale = shape if family in (GAMMA, GAUSSIAN) else 1.0
    n, size, q = offset.size, delta.size, beta.size
    eta, score, weight = np.empty(n), np.empty(n), np.empty(n)
    product, new_delta, new_beta = np.empty(size), np.empty(size), np.empty(q)
    equations = _new_equations(precision, q, constraints.shape[1])
    status, half_log, steps = STUCK, 0.0, 0
    _predict(offset, columns, slots, loadings, delta, beta, eta)
    value = linearise(family, link, shape, mean, total, eta, score, weight)
    quadratic = _quadratic(precision, ridge, delta, beta, product)
    while steps < max_steps:
        steps += 1
        _write_priors(precision, ridge, constraints, delta, beta, product, equations)
        _add_rows(columns, slots, loadings, score, weight, scale, equations)
        step, move, half_log, decrement = _solve(equations)
        if not (value > -np.inf and decrement < np.inf):
            status = SINGULAR
            break
        if decrement < tolerance:
            status = OK
            break
        objective = scale * value - quadratic
        length = 1.0
        for _ in range(_HALVINGS):
            for i in range(size):
                new_delta[i] = delta[i] + length * move[i, 0]
            for i in range(q):
                new_beta[i] = beta[i] + length * step[i]
            _predict(offset, columns, slots, loadings, new_delta, new_beta, eta)
            value = linearise(family, link, shape, mean, total, eta, score, weight)
            quadratic = _quadratic(precision, ridge, new_delta, new_beta, product)
            enough = 1e-4 * length * decrement - 1e-11 * abs(objective)
            if scale * value - quadratic >= objective + enough:
                break
            length *= 0.5
        delta[:] = new_delta
        beta[:] = new_beta
    return Mode(
        value,
        quadratic,
        2.0 * half_log,
        equations.schur,
        equations.factor,
        np.ascontiguousarray(equations.work[:, :q]),
        np.ascontiguousarray(equations.work[:, q + 1 :]),
        status,
        steps,
    )


@nb.njit(cache=True, nogil=True, error_model="numpy")
def expand(
    family,
    link,
    shape,
    mean,
    total,
    offset,
    columns,
    slots,
    loadings,
    precision,
    ridge,
    constraints,
    delta,
    beta,
):
    """The Schur complement S at given variables, and the gradient that belongs to it.

    The flag is ``False`` where the latent variables have no distribution.
    """
    scale = shape if family in (GAMMA, GAUSSIAN) else 1.0
    q = beta.size
    eta, score, weight = np.empty_like(offset), np.empty_like(offset), np.empty_like(offset)
    equations = _new_equations(precision, q, constraints.shape[1])
    _predict(offset, columns, slots, loadings, delta, beta, eta)
    value = linearise(family, link, shape, mean, total, eta, score, weight)
    _write_priors(precision, ridge, constraints, delta, beta, np.empty_like(delta), equations)
    _add_rows(columns, slots, loadings, score, weight, scale, equations)
    right = equations.right.copy()
    if not (value > -np.inf and factorise(equations.hessian, equations.factor)):
        return equations.schur, right, False
    solve_lower(equations.factor, equations.work)
    cross = _cross_products(equations.work)
    inner, sound = _small_factor(cross[q + 1 :, q + 1 :], np.zeros(constraints.shape[1]))
    _eliminate(cross, inner, equations.dense, equations.schur, right)
    return equations.schur, right, sound


@nb.njit(**ONCE, error_model="numpy")
def _new_equations(precision, q, c):
    return _Equations(
        np.empty_like(precision),
        np.zeros_like(precision),
        np.empty((precision.shape[0], q + 1 + c)),
        np.empty((q, q)),
        np.empty(q),
        np.empty((q, q)),
    )


@nb.njit(**ONCE, error_model="numpy")
def _write_priors(precision, ridge, constraints, delta, beta, product, equations):
    """Write what does not come from the rows: Q, P, their gradients, and the constraints."""
    q = beta.size
    equations.hessian[:] = precision
    equations.dense[:] = ridge
    equations.work[:] = 0.0
    equations.right[:] = 0.0
    for i in range(q):
        for j in range(q):
            equations.right[i] -= ridge[i, j] * beta[j]
    multiply(precision, delta, product)
    for i in range(delta.size):
        equations.work[i, q] = -product[i]
        for j in range(constraints.shape[1]):
            equations.work[i, q + 1 + j] = constraints[i, j]


@nb.njit(**ONCE, error_model="numpy")
def _add_rows(columns, slots, loadings, score, weight, scale, equations):
    """Add the rows: to H, to Z'WB and the latent gradient, to B'WB and its gradient."""
    hessian, work = equations.hessian, equations.work
    q = columns.shape[1]
    _add_products(columns, score, weight, scale, equations)
    for i in range(score.size):
        w = weight[i] * scale
        for k in range(slots.shape[1]):
            a, load = slots[i, k], loadings[i, k]
            work[a, q] += load * score[i] * scale
            for c in range(q):
                work[a, c] += load * w * columns[i, c]
            for m in range(k + 1):
                b = slots[i, m]
                both = load * loadings[i, m] * w
                if a >= b:
                    hessian[a, a - b] += both
                else:
                    hessian[b, b - a] += both


@nb.njit(**ONCE, error_model="numpy")
def _add_products(columns, score, weight, scale, equations):
    """Add B'WB, its lower triangle, and the gradient of the coefficients."""
    dense, right = equations.dense, equations.right
    across = np.ascontiguousarray(columns.T)
    weighted = np.empty(score.size)
    for c in range(right.size):
        for i in range(score.size):
            weighted[i] = weight[i] * across[c, i]
        right[c] += scale * _dot(across[c], score)
        for e in range(c + 1):
            dense[c, e] += scale * _dot(weighted, across[e])


@nb.njit(**ONCE, error_model="numpy")
def _solve(equations):
    """Solve for the steps of the coefficients and of the latent variables.

    Returned with them: half the log determinant, and the squared Newton decrement, which is
    infinite where the equations are singular.
    """
    factor, work, right = equations.factor, equations.work, equations.right
    size, q = work.shape[0], right.size
    c = work.shape[1] - q - 1
    gradient = work[:, q].copy()
    step, move = right.copy(), np.empty((size, 1))
    if not factorise(equations.hessian, factor):
        return step, move, 0.0, np.inf
    solve_lower(factor, work)
    cross = _cross_products(work)
    inner, sound = _small_factor(cross[q + 1 :, q + 1 :], np.zeros(c))
    _eliminate(cross, inner, equations.dense, equations.schur, step)
    outer, positive = _small_factor(equations.schur, np.diag(equations.dense))
    if not (sound and positive):
        return step, move, 0.0, np.inf
    _small_solve(outer, step)
    multiplier = np.empty(c)
    for j in range(c):
        multiplier[j] = cross[q + 1 + j, q]
        for i in range(q):
            multiplier[j] -= cross[q + 1 + j, i] * step[i]
    _small_solve(inner, multiplier)
    for i in range(size):
        move[i, 0] = work[i, q]
        for e in range(q):
            move[i, 0] -= work[i, e] * step[e]
        for j in range(c):
            move[i, 0] -= work[i, q + 1 + j] * multiplier[j]
    solve_upper(factor, move)
    half_log = 0.5 * log_determinant(factor)
    for j in range(c):
        half_log += np.log(inner[j, j])
    decrement = 0.0
    for i in range(size):
        decrement += gradient[i] * move[i, 0]
    for i in range(q):
        decrement += right[i] * step[i]
    return step, move, half_log, decrement


@nb.njit(**ONCE, error_model="numpy")
def _eliminate(cross, inner, dense, schur, right):
    """Take the latent variables out: write S, and change the right side of the coefficients."""
    q, c = right.size, inner.shape[0]
    for i in range(q):
        right[i] -= cross[i, q]
        for j in range(i + 1):
            schur[i, j] = dense[i, j] - cross[i, j]
            schur[j, i] = schur[i, j]
    # Project on the constraints: what the kriging step takes out comes back here.
    for i in range(q):
        pulled = cross[q + 1 :, i].copy()
        _small_solve(inner, pulled)
        for j in range(c):
            right[i] += pulled[j] * cross[q + 1 + j, q]
        for e in range(q):
            for j in range(c):
                schur[e, i] += cross[e, q + 1 + j] * pulled[j]


@nb.njit(**ONCE, error_model="numpy")
def _cross_products(work):
    """All inner products of the columns, both triangles."""
    columns = np.ascontiguousarray(work.T)
    cross = np.empty((len(columns), len(columns)))
    for a in range(len(columns)):
        for b in range(a + 1):
            cross[a, b] = cross[b, a] = _dot(columns[a], columns[b])
    return cross


@nb.njit(**INTERNAL, error_model="numpy", fastmath={"reassoc", "contract"})
def _dot(first, second):
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def posterior_parts(factor, dense, constraint):
    """Return ``H^-1 Z'WB`` and ``H^-1 A`` from what `find_mode` left behind."""
    pull, kriging = dense.copy(), constraint.copy()
    solve_upper(factor, pull)
    solve_upper(factor, kriging)
    return pull, kriging
