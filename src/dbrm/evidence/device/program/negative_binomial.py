"""The dispersion of a negative binomial response."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from dbrm.evidence.device.program.likelihood import (
    Likelihood,
    log_minus_digamma,
    mean_link,
    trigamma,
)
from dbrm.evidence.device.program.rows import Rows
from dbrm.evidence.device.program.session import in_64_bits
from dbrm.evidence.device.program.sums import over_blocks

__all__ = ["negative_binomial_shape"]

Array = Any
_LARGEST_SHAPE, _SMALLEST_SHAPE = 1e10, 1e-8


@in_64_bits
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

    over = squares + over_blocks(rows, excess)
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

        slope, curvature = over_blocks(rows, part)
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
