r"""Newton's method for many models of one population at once, in JAX.

All models share the rows. For :math:`B` models over :math:`k` columns one step is three matrix
products: linear predictors :math:`\eta = \beta X` (B x n), scores :math:`s X'` (B x k), and all
weighted Gram matrices at once, :math:`w Z'`, where the rows of :math:`Z` are the
:math:`k(k+1)/2` products of two columns. Rows come in blocks, and everything of size
B x n exists for one block at a time.

`halve` evaluates all :math:`2^s` subsets by leaving out one column after the other, each model
starting from the expansion of one that has a column more; `newton` evaluates any models.
Sees arrays only.
"""

import os
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dbrm.evidence.device.likelihood import (
    Likelihood,
    expected,
    linearise,
    log_minus_digamma,
    mean_link,
    trigamma,
)

__all__ = [
    "Likelihood",
    "Rows",
    "find_devices",
    "finish",
    "halve",
    "keep_programs",
    "negative_binomial_shape",
    "newton",
    "place",
    "place_rows",
    "place_states",
    "stack_rows",
    "start_at",
    "sum_blocks",
    "to_host",
]

Array = Any
# Bound on the error of a log likelihood, as in `dbrm._kernels.glm_newton`.
_REMAINDER = 1e-10
# A linear predictor that still moves this much while the likelihood stands still.
_RUNAWAY = 0.05
_LARGEST_SHAPE, _SMALLEST_SHAPE = 1e10, 1e-8


class Rows(NamedTuple):
    """Rows on the device, in blocks.

    columns: block x column x row; mean, total, offset: block x row, total zero where padded;
    reach: largest absolute value of each column.
    """

    columns: Array
    mean: Array
    total: Array
    offset: Array
    reach: Array


def _in_64_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run with 64-bit numbers, whatever the setting of JAX in this process."""

    @wraps(function)
    def wide(*args: Any, **kwargs: Any) -> Any:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wide


def find_devices(platform: str) -> list[Any]:
    """Devices of JAX of a platform, ``"gpu"`` or ``"cpu"``; none where there is no such."""
    try:
        return list(jax.devices(platform))
    except RuntimeError:
        return []


def keep_programs() -> None:
    """Keep compiled programs in a folder of the user, unless JAX has been told where."""
    if jax.config.jax_compilation_cache_dir is None:
        folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dbrm" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@_in_64_bits
def place_rows(
    device: Any, columns: Array, mean: Array, total: Array, offset: Array, *, block: int
) -> Rows:
    """Copy rows to the device, padded to whole blocks with copies of the first row."""
    k, n = columns.shape
    n_blocks = -(-n // block)

    def padded(values: Array, filler: Array) -> Array:
        wide = np.empty((len(values), n_blocks * block))
        wide[:, :n] = values
        wide[:, n:] = filler
        return wide

    flat = padded(columns, columns[:, :1]).reshape(k, n_blocks, block).swapaxes(0, 1)
    rest = [
        padded(values[None], filler).reshape(n_blocks, block)
        for values, filler in ((mean, mean[0]), (total, 0.0), (offset, offset[0]))
    ]
    reach = np.max(np.abs(columns), axis=1)
    put = partial(jax.device_put, device=device)
    mean, total, offset = map(put, rest)
    return Rows(put(np.ascontiguousarray(flat)), mean, total, offset, put(reach))


@_in_64_bits
def to_host(values: Array) -> Any:
    """The numbers of one array of the device, or of several."""
    return jax.tree.map(np.asarray, values)


@_in_64_bits
def place_states(device: Any, n_states: int, width: int, beta: Array, inverse: Array) -> Any:
    """Coefficients and inverse informations of models, for `halve`; the first one is given."""
    k = beta.size
    first, first_inverse = np.zeros(width), np.zeros((width, width))
    first[:k], first_inverse[:k, :k] = beta, inverse
    return _place_states(
        n_states, *(jax.device_put(part, device) for part in (first, first_inverse))
    )


@partial(jax.jit, static_argnums=0)
def _place_states(n_states: int, beta: Array, inverse: Array) -> tuple[Array, Array]:
    coefficients, inverses = (jnp.zeros((n_states, *part.shape)) for part in (beta, inverse))
    return coefficients.at[0].set(beta), inverses.at[0].set(inverse)


@_in_64_bits
def place(device: Any, values: Array) -> Array:
    """Copy numbers to the device."""
    return jax.device_put(values, device)


@_in_64_bits
def stack_rows(columns: list[Array], width: int, mean: Array, total: Array, offset: Array) -> Any:
    """One block of rows from columns on the device; those that are missing are zero."""
    nothing = jnp.zeros_like(mean)
    return _stack_rows([*columns, *[nothing] * (width - len(columns))], mean, total, offset)


@partial(jax.jit)
def _stack_rows(columns: list[Array], mean: Array, total: Array, offset: Array) -> Rows:
    reach = jnp.zeros(len(columns))
    return Rows(jnp.stack(columns)[None], mean[None], total[None], offset[None], reach)


# Sums over the rows.


def _over_blocks(rows: Rows, part: Callable[..., Any]) -> Any:
    """Sum of ``part(columns, mean, total, offset)`` over all blocks."""
    blocks = rows.columns, rows.mean, rows.total, rows.offset
    first = part(*(values[0] for values in blocks))
    if rows.columns.shape[0] == 1:
        return first

    def add(total: Any, block: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, part(*block)), None

    return jax.lax.scan(add, first, tuple(values[1:] for values in blocks))[0]


def _sums(
    likelihood: Likelihood, rows: Rows, beta: Array, shape: Array, *, value: bool, gram: bool
) -> tuple[Array, Array, Array]:
    """Log likelihood, score and Gram matrix of each model; zeros for what is not wanted."""
    k = beta.shape[1]
    lower, fill = _packing(k)

    def part(columns: Array, mean: Array, total: Array, offset: Array) -> tuple[Array, ...]:
        eta = beta @ columns + offset
        values, score, weight = linearise(likelihood, shape[:, None], mean, total, eta)
        products = columns[lower[0]] * columns[lower[1]]
        return (
            values.sum(axis=1) if value else jnp.zeros(()),
            score @ columns.T,
            weight @ products.T if gram else jnp.zeros(()),
        )

    values, score, packed = _over_blocks(rows, part)
    if value:
        values = jnp.where(values < jnp.inf, values, -jnp.inf)
    return values, score, packed[:, fill] if gram else packed


@_in_64_bits
def sum_blocks(likelihood: Likelihood, blocks: list[Rows], beta: Array) -> Any:
    """Log likelihood, score and information of each model, one row of `beta` each."""
    size, k = beta.shape
    shapes = (size,), (size, k), (size, k, k)
    total: Any = tuple(jnp.zeros(shape, device=blocks[0].mean.device) for shape in shapes)
    for rows in blocks:
        total = _add_block(likelihood, rows, beta, total)
    return total


@partial(jax.jit, static_argnums=0)
def _add_block(likelihood: Likelihood, rows: Rows, beta: Array, total: Any) -> Any:
    ones = jnp.ones(beta.shape[0])
    part = _sums(likelihood, rows, beta, ones, value=True, gram=True)
    return jax.tree.map(jnp.add, total, part)


def _packing(k: int) -> tuple[tuple[Any, Any], Any]:
    """Places of the lower triangle of a matrix, and the entry of each place of the matrix."""
    i, j = np.tril_indices(k)
    fill = np.zeros((k, k), dtype=np.int64)
    fill[i, j] = fill[j, i] = np.arange(i.size)
    return (i, j), fill


# All subsets.


@_in_64_bits
@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(4, 5))
def halve(
    likelihood: Likelihood,
    size: int,
    rows: Rows,
    penalty: Array,
    coefficients: Array,
    inverses: Array,
    shape: Array,
    places: Array,
) -> tuple[Array, Array, Array, Array]:
    r"""Leave one column out of `size` models and maximise what remains.

    With :math:`A` the inverse information of the larger model, zero for what it leaves out, the
    maximum of its expansion without column :math:`j` is

    .. math:: \beta - A_j \beta_j / A_{jj}, \qquad A - A_j A_j' / A_{jj} .

    There :math:`A` is corrected by two steps of Newton and Schulz, :math:`A \leftarrow 2A - AHA`,
    which need no masks, and takes the coefficients one Newton step on. What is left of the way
    follows from the score at the new place. `places` are that of the first of the larger models,
    that of the first of the smaller ones, and the column.

    Returns the updated arrays; the coefficients of the models; and in rows the value
    (without penalty) with what is left to gain, a bound on its error and the last move of a
    linear predictor.
    """
    k = coefficients.shape[1]
    place, target, column = places
    beta = jax.lax.dynamic_slice(coefficients, (place, 0), (size, k))
    inverse = jax.lax.dynamic_slice(inverses, (place, 0, 0), (size, k, k))
    kept = jnp.arange(k) != column
    leaving = jnp.take(inverse, column, axis=2)
    pivot = jnp.take(leaving, column, axis=1)[:, None]
    beta -= leaving * (jnp.take(beta, column, axis=1)[:, None] / pivot)
    beta = jnp.where(kept, beta, 0.0)
    inverse -= leaving[:, :, None] * (leaving / pivot)[:, None, :]
    inverse = jnp.where(kept[:, None] & kept, inverse, 0.0)
    shapes = jnp.broadcast_to(shape, (size,))

    _, score, hessian = _sums(likelihood, rows, beta, shapes, value=False, gram=True)
    hessian += jnp.diag(penalty)
    better = inverse
    for _ in range(2):
        better = 2.0 * better - better @ (hessian @ better)
    step = _times(better, score - penalty * beta)
    moved = beta + step
    value, score, _ = _sums(likelihood, rows, moved, shapes, value=True, gram=False)
    gradient = score - penalty * moved
    rest = _times(better, gradient)
    decrement = jnp.sum(gradient * rest, axis=1)
    first, last = jnp.abs(step) @ rows.reach, jnp.abs(rest) @ rows.reach
    usable = (jnp.isfinite(decrement) & (decrement < 1.0))[:, None]
    found = jnp.where(usable, moved + rest, beta)
    coefficients = jax.lax.dynamic_update_slice(coefficients, found, (target, 0))
    inverse = jnp.where(usable[:, :, None], better, inverse)
    inverses = jax.lax.dynamic_update_slice(inverses, inverse, (target, 0, 0))
    # The decrement is that of a nearby information matrix; the value, of a quadratic.
    error = jnp.abs(decrement) * (jnp.minimum(first, 1.0) + jnp.minimum(last, 1.0))
    numbers = jnp.stack([value + 0.5 * decrement, error, last])
    return coefficients, inverses, found, numbers


def _times(matrices: Array, vectors: Array) -> Array:
    return jnp.einsum("bij,bj->bi", matrices, vectors)


# Any models.


def _factor(hessian: Array, mask: Array, penalty: Array) -> Array:
    """Cholesky factors of the submatrices of the masks, with unit rows for what they leave out."""
    inside = mask[:, :, None] * mask[:, None, :]
    diagonal = penalty * mask + (1.0 - mask)
    return jnp.linalg.cholesky(hessian * inside + diagonal[:, :, None] * jnp.eye(mask.shape[1]))


def _solve(factor: Array, right: Array) -> Array:
    return jax.scipy.linalg.cho_solve((factor, True), right[..., None])[..., 0]


@_in_64_bits
@partial(jax.jit, static_argnums=0)
def start_at(
    likelihood: Likelihood,
    rows: Rows,
    mask: Array,
    penalty: Array,
    starts: tuple[Array, ...],
    shape: Array,
    scale: Array,
) -> tuple[Array, Array]:
    """Coefficients to start from, and the objective that they must not fall behind.

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
    new, _, _ = _sums(likelihood, rows, second, shape, value=True, gram=False)
    objective = scale * new - 0.5 * jnp.sum(penalty * second * second, axis=1)
    better = is_second & (objective >= before)
    return jnp.where(better[:, None], second, plain), jnp.where(better, -jnp.inf, before)


@_in_64_bits
@partial(jax.jit, static_argnums=0)
def newton(
    likelihood: Likelihood,
    rows: Rows,
    mask: Array,
    penalty: Array,
    start: tuple[Array, Array],
    shape: Array,
    scale: Array,
    limits: Array,
) -> tuple[Array, Array, Array, Array]:
    """Maximise ``scale * log likelihood - penalty`` of models by undamped Newton steps.

    `limits` are the most iterations, the largest move of a linear predictor still to be made, the
    value of a perfect fit, and the number of observations where the dispersion is profiled, else
    zero. Returns coefficients, values with what is left to gain, which models converged, and which
    are separated: predictors still move where there is nothing left to gain. A model whose
    objective falls is neither: it needs damping.
    """
    most, near, saturated, profiled = limits

    def go_on(state: Any) -> Array:
        iteration, *_, done, failed = state
        return (iteration < most) & ~jnp.all(done | failed)

    def improve(state: Any) -> Any:
        iteration, beta, steps, before, values, done, failed = state
        value, score, hessian = _sums(likelihood, rows, beta, shape, value=True, gram=True)
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
        fell = ~(objective >= before - 1e-12 * (1.0 + jnp.abs(before)))
        failed |= active & ((fell & (before > -jnp.inf)) | ~jnp.isfinite(decrement))
        active &= ~failed
        done |= active & ((small & (move <= near)) | ((decrement < tolerance) & (move > _RUNAWAY)))
        beta = jnp.where(active[:, None], beta + step, beta)
        steps = jnp.where(active[:, None], step, steps)
        values = jnp.where(active, value + 0.5 * decrement / scale, values)
        before = jnp.where(active, objective, before)
        return iteration + 1, beta, steps, before, values, done, failed

    beta, before = start
    nothing = jnp.zeros(beta.shape[0], dtype=bool)
    lowest = jnp.full(beta.shape[0], -jnp.inf)
    state = (jnp.zeros(()), beta, jnp.zeros_like(beta), before, lowest, nothing, nothing)
    _, beta, steps, _, values, done, _ = jax.lax.while_loop(go_on, improve, state)
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


@_in_64_bits
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
    lower, fill = _packing(beta.shape[1])
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

    value, total, first, second, packed = _over_blocks(rows, part)
    wald = second - first * first / total
    if not determined:
        return value, total, wald, jnp.zeros_like(value)
    factor = _factor(scale[:, None, None] * packed[:, fill], mask, penalty)
    lost = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    return value, total, wald, lost + 0.5 * jnp.sum(penalty * beta * beta, axis=1)


# The dispersion of a negative binomial response.


@_in_64_bits
@partial(jax.jit, static_argnums=0)
def negative_binomial_shape(
    likelihood: Likelihood,
    rows: Rows,
    beta: Array,
    shape: Array,
    squares: Array,
    values: Array,
    counts: Array,
) -> Array:
    """The shape that maximises the likelihood of each model, as the compiled function."""

    def means(columns: Array, offset: Array) -> Array:
        return mean_link(likelihood.link, beta @ columns + offset)[0]

    def excess(columns: Array, mean: Array, total: Array, offset: Array) -> Array:
        mu = means(columns, offset)
        return jnp.sum(total * (mu * mu - 2.0 * mean * mu - mean), axis=1)

    over = squares + _over_blocks(rows, excess)
    start = jnp.clip(shape, _SMALLEST_SHAPE, 1e4)

    def derivatives(theta: Array) -> tuple[Array, Array]:
        def part(columns: Array, mean: Array, total: Array, offset: Array) -> tuple[Array, Array]:
            mu, each = means(columns, offset), theta[:, None]
            sum_ = mu + each
            gap = (mean - mu) / sum_
            return (
                -jnp.sum(total * (jnp.log1p(mu / each) + gap), axis=1),
                jnp.sum(total * (mu / (each * sum_) + gap / sum_), axis=1),
            )

        slope, curvature = _over_blocks(rows, part)
        each, y = theta[:, None], values[None]
        rising = jnp.log1p(y / each) - (log_minus_digamma(y + each) - log_minus_digamma(each))
        slope += jnp.sum(counts * rising, axis=1)
        curvature += jnp.sum(counts * (trigamma(y + each) - trigamma(each)), axis=1)
        slope *= theta
        return slope, theta * theta * curvature + slope

    def go_on(state: Any) -> Array:
        iteration, _, done = state
        return (iteration < 60) & ~jnp.all(done)

    def improve(state: Any) -> Any:
        iteration, theta, done = state
        slope, curvature = derivatives(theta)
        move = jnp.where(curvature < 0.0, slope / -curvature, jnp.sign(slope))
        move = jnp.where(done, 0.0, jnp.clip(move, -2.0, 2.0))
        theta = jnp.clip(theta * jnp.exp(move), _SMALLEST_SHAPE, _LARGEST_SHAPE)
        outside = (theta >= _LARGEST_SHAPE) | (theta <= _SMALLEST_SHAPE)
        done |= (jnp.abs(move) < 1e-9) | outside | jnp.isnan(move)
        return iteration + 1, theta, done

    theta = jax.lax.while_loop(go_on, improve, (0, start, ~(over > 0.0)))[1]
    theta = jnp.where(over > 0.0, theta, _LARGEST_SHAPE)
    return jnp.where(jnp.isfinite(over) & jnp.isfinite(theta), theta, shape)
