"""Sums over all rows of many models: log likelihoods, scores, weighted Gram matrices."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dbrm.evidence.device.program.likelihood import Likelihood, linearise
from dbrm.evidence.device.program.rows import Rows
from dbrm.evidence.device.program.session import QUICK, in_64_bits

__all__ = ["add_up", "over_blocks", "packing", "sum_blocks"]

Array = Any


def over_blocks(rows: Rows, part: Callable[..., Any]) -> Any:
    """Sum of ``part(columns, mean, total, offset)`` over all blocks."""
    blocks = rows.columns, rows.mean, rows.total, rows.offset
    first = part(*(values[0] for values in blocks))
    if rows.columns.shape[0] == 1:
        return first

    def add(total: Any, block: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, part(*block)), None

    return jax.lax.scan(add, first, tuple(values[1:] for values in blocks))[0]


def add_up(
    likelihood: Likelihood, rows: Rows, beta: Array, shape: Array, *, value: bool, gram: bool
) -> tuple[Array, Array, Array]:
    """Log likelihood, score and Gram matrix of each model; zeros for what is not wanted."""
    k = beta.shape[1]
    lower, fill = packing(k)

    def part(columns: Array, mean: Array, total: Array, offset: Array) -> tuple[Array, ...]:
        eta = beta @ columns + offset
        values, score, weight = linearise(likelihood, shape[:, None], mean, total, eta)
        products = columns[lower[0]] * columns[lower[1]]
        return (
            values.sum(axis=1) if value else jnp.zeros(()),
            score @ columns.T,
            weight @ products.T if gram else jnp.zeros(()),
        )

    values, score, packed = over_blocks(rows, part)
    if value:
        values = jnp.where(values < jnp.inf, values, -jnp.inf)
    return values, score, packed[:, fill] if gram else packed


@in_64_bits
def sum_blocks(likelihood: Likelihood, blocks: list[Rows], beta: Array) -> Any:
    """Log likelihood, score and information of each model, one row of `beta` each."""
    size, k = beta.shape
    shapes = (size,), (size, k), (size, k, k)
    # Copied rather than made there, which would take a program for each shape.
    total: Any = tuple(jax.device_put(np.zeros(shape), blocks[0].mean.device) for shape in shapes)
    for rows in blocks:
        total = _add_block(likelihood, rows, beta, total)
    return total


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _add_block(likelihood: Likelihood, rows: Rows, beta: Array, total: Any) -> Any:
    ones = jnp.ones(beta.shape[0])
    part = add_up(likelihood, rows, beta, ones, value=True, gram=True)
    return jax.tree.map(jnp.add, total, part)


def packing(k: int) -> tuple[tuple[Any, Any], Any]:
    """Places of the lower triangle of a matrix, and the entry of each place of the matrix."""
    i, j = np.tril_indices(k)
    fill = np.zeros((k, k), dtype=np.int64)
    fill[i, j] = fill[j, i] = np.arange(i.size)
    return (i, j), fill
