"""Newton's method for any models of a population, and what priors look at where it ends."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from dbrm.evidence.device.program.likelihood import Likelihood, expected, linearise
from dbrm.evidence.device.program.rows import Rows
from dbrm.evidence.device.program.session import in_64_bits
from dbrm.evidence.device.program.sums import add_up, over_blocks, packing

__all__ = ["finish", "newton", "start_at"]

Array = Any
# Bound on the error of a log likelihood, as in `dbrm._kernels.glm_newton`.
_REMAINDER = 1e-10
# A linear predictor that still moves this much while the likelihood stands still.
_RUNAWAY = 0.05


def _factor(hessian: Array, mask: Array, penalty: Array) -> Array:
    """Cholesky factors of the submatrices of the masks, with unit rows for what they leave out."""
    inside = mask[:, :, None] * mask[:, None, :]
    diagonal = penalty * mask + (1.0 - mask)
    return jnp.linalg.cholesky(hessian * inside + diagonal[:, :, None] * jnp.eye(mask.shape[1]))


def _solve(factor: Array, right: Array) -> Array:
    return jax.scipy.linalg.cho_solve((factor, True), right[..., None])[..., 0]


@in_64_bits
@partial(jax.jit, static_argnums=0)
def start_at(
    likelihood: Likelihood,
    rows: Rows,
    mask: Array,
    penalty: Array,
    starts: tuple[Array, ...],
    shape: Array,
    scale: Array,
) -> tuple[Array, Array, Array]:
    """Coefficients to start from, where they come from, and the objective there.

    One scoring step from the fit of all columns or, where there is none or that leads below the
    null model, from the null model; as the compiled `begin`.
    """
    null, value, hessian, gradient, is_second, second_hessian, second_right = starts
    before = scale * value - 0.5 * jnp.sum(penalty * null * null, axis=1)
    factor = _factor(scale[:, None, None] * hessian, mask, penalty)
    right = (scale[:, None] * gradient - penalty * null) * mask
    plain = null * mask + _solve(factor, right)
    factor = _factor(scale[:, None, None] * second_hessian, mask, penalty)
    second = _solve(factor, scale[:, None] * second_right * mask) * mask
    new, _, _ = add_up(likelihood, rows, second, shape, value=True, gram=False)
    objective = scale * new - 0.5 * jnp.sum(penalty * second * second, axis=1)
    better = is_second & (objective >= before)
    start = jnp.where(better[:, None], second, plain)
    return start, null * mask, jnp.where(better, -jnp.inf, before)


@in_64_bits
@partial(jax.jit, static_argnums=0)
def newton(
    likelihood: Likelihood,
    rows: Rows,
    mask: Array,
    penalty: Array,
    start: tuple[Array, Array, Array],
    shape: Array,
    scale: Array,
    limits: Array,
) -> tuple[Array, Array, Array, Array]:
    """Maximise ``scale * log likelihood - penalty`` by Newton steps, halved if that falls.

    `limits` are the most iterations, the largest move of a linear predictor still to be made, the
    value of a perfect fit, and the number of observations where the dispersion is profiled, else
    zero. Returns coefficients, values with what is left to gain, which models converged, and which
    are separated: predictors still move where there is nothing left to gain. Models that take more
    iterations are neither.
    """
    most, near, saturated, profiled = limits

    def go_on(state: Any) -> Array:
        iteration, *_, done, failed = state
        return (iteration < most) & ~jnp.all(done | failed)

    def improve(state: Any) -> Any:
        iteration, origin, steps, before, values, done, failed = state
        beta = origin + steps
        value, score, hessian = add_up(likelihood, rows, beta, shape, value=True, gram=True)
        objective = scale * value - 0.5 * jnp.sum(penalty * beta * beta, axis=1)
        gradient = (scale[:, None] * score - penalty * beta) * mask
        factor = _factor(scale[:, None, None] * hessian, mask, penalty)
        step = _solve(factor, gradient)
        decrement = jnp.sum(gradient * step, axis=1)
        move = jnp.abs(step) @ rows.reach
        share = jnp.clip(2.0 * (saturated - value) / jnp.maximum(profiled, 1.0), 1e-12, 1.0)
        tolerance = _REMAINDER * jnp.where((profiled > 0) & (scale == 1.0), share, 1.0)
        small = decrement * (jnp.minimum(move, 1.0) if likelihood.quadratic else 1.0) < tolerance
        active = ~(done | failed)
        fell = ~(objective >= before - 1e-12 * (1.0 + jnp.abs(before))) & (before > -jnp.inf)
        rose = active & ~fell
        failed |= rose & ~jnp.isfinite(decrement)
        rose &= ~failed
        done |= rose & ((small & (move <= near)) | ((decrement < tolerance) & (move > _RUNAWAY)))
        origin = jnp.where(rose[:, None], beta, origin)
        shorter = jnp.where((active & fell)[:, None], 0.5 * steps, steps)
        steps = jnp.where(rose[:, None], step, shorter)
        values = jnp.where(rose, value + 0.5 * decrement / scale, values)
        before = jnp.where(rose, objective, before)
        return iteration + 1, origin, steps, before, values, done, failed

    beta, origin, before = start
    nothing = jnp.zeros(beta.shape[0], dtype=bool)
    lowest = jnp.full(beta.shape[0], -jnp.inf)
    state = (jnp.zeros(()), origin, beta - origin, before, lowest, nothing, nothing)
    _, origin, steps, _, values, done, _ = jax.lax.while_loop(go_on, improve, state)
    beta = origin + steps
    running = done & (jnp.abs(steps) @ rows.reach > _RUNAWAY)
    moves = jax.lax.cond(
        jnp.any(running),
        lambda: _largest_moves(rows, steps),
        lambda: jnp.zeros(beta.shape[0]),
    )
    near_enough = jnp.abs(steps) @ rows.reach <= near
    return beta, values, done & near_enough, running & (moves > _RUNAWAY)


def _largest_moves(rows: Rows, steps: Array) -> Array:
    """Largest move of a linear predictor of each model."""
    largest = jnp.zeros(steps.shape[0])
    for number in range(rows.columns.shape[0]):
        moves = jnp.abs(steps @ rows.columns[number]) * (rows.total[number] > 0)
        largest = jnp.maximum(largest, jnp.max(moves, axis=1))
    return largest


@in_64_bits
@partial(jax.jit, static_argnums=0, static_argnames="determined")
def finish(
    likelihood: Likelihood,
    rows: Rows,
    mask: Array,
    penalty: Array,
    beta: Array,
    shape: Array,
    scale: Array,
    *,
    determined: bool,
) -> tuple[Array, Array, Array, Array]:
    """Numbers at the maximum that priors look at, from the expected information.

    Returns log likelihoods, total weights, Wald statistics of the slopes and, where `determined`,
    penalties and half the log determinants of the penalised information.
    """
    lower, fill = packing(beta.shape[1])
    centre = beta[:, :1]

    def part(columns: Array, mean: Array, total: Array, offset: Array) -> tuple[Array, ...]:
        z = beta @ columns
        value, _, weight = linearise(likelihood, shape[:, None], mean, total, z + offset)
        weight = expected(likelihood, shape[:, None], total, z + offset, weight)
        z -= centre
        moments = [jnp.sum(weight * z**power, axis=1) for power in range(3)]
        products = columns[lower[0]] * columns[lower[1]]
        packed = weight @ products.T if determined else jnp.zeros(())
        return (jnp.sum(value, axis=1), *moments, packed)

    value, total, first, second, packed = over_blocks(rows, part)
    wald = second - first * first / total
    if not determined:
        return value, total, wald, jnp.zeros_like(value)
    factor = _factor(scale[:, None, None] * packed[:, fill], mask, penalty)
    lost = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    return value, total, wald, lost + 0.5 * jnp.sum(penalty * beta * beta, axis=1)
