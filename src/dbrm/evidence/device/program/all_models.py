"""All subsets of the columns, by leaving out one column after the other."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dbrm.evidence.device.program.likelihood import Likelihood
from dbrm.evidence.device.program.rows import Rows
from dbrm.evidence.device.program.session import in_64_bits
from dbrm.evidence.device.program.sums import add_up

__all__ = ["halve", "place_states"]

Array = Any


@in_64_bits
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


@in_64_bits
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

    _, score, hessian = add_up(likelihood, rows, beta, shapes, value=False, gram=True)
    hessian += jnp.diag(penalty)
    better = inverse
    for _ in range(2):
        better = 2.0 * better - better @ (hessian @ better)
    step = _times(better, score - penalty * beta)
    moved = beta + step
    value, score, _ = add_up(likelihood, rows, moved, shapes, value=True, gram=False)
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
