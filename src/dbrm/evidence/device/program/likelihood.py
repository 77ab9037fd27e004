r"""Row by row in JAX: log likelihood, score and curvature as functions of :math:`\eta`.

The formulas of `dbrm._kernels.glm_rows` and `dbrm._kernels.glm_dispersion`, for arrays; tests
compare the two.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dbrm._kernels.glm_rows import (
    BINOMIAL,
    CLOGLOG,
    GAMMA,
    GAUSSIAN,
    INVERSE,
    LOG,
    LOGIT,
    NEGATIVE_BINOMIAL,
    POISSON,
    PROBIT,
    SMALLEST_WEIGHT,
)

__all__ = ["Likelihood", "expected", "linearise", "log_minus_digamma", "mean_link", "trigamma"]

Array = Any
_ROOT_TWO_PI = 2.5066282746310002


class Likelihood(NamedTuple):
    """Numbers of family and link, and whether their curvature is the observed information."""

    family: int
    link: int
    quadratic: bool


def linearise(
    likelihood: Likelihood, shape: Array, mean: Array, total: Array, eta: Array
) -> tuple[Array, Array, Array]:
    """Log likelihood, score and curvature of each row, as `dbrm._kernels.glm_rows.linearise`."""
    family, link, _ = likelihood
    if family == BINOMIAL:
        log_mu, log_nu, a, b = _binomial_link(link, eta)
        value = jnp.where(mean > 0, mean * log_mu, 0.0)
        value += jnp.where(mean < 1, (1.0 - mean) * log_nu, 0.0)
        score, weight = mean * a - (1.0 - mean) * b, a * b
    elif family == GAMMA and link == LOG:
        ratio = mean * _exp(-eta)
        value, score, weight = -(ratio + eta), ratio - 1.0, ratio
    elif family == NEGATIVE_BINOMIAL and link == LOG:
        mu = _exp(eta)
        share = 1.0 / (1.0 + mu / shape)
        value = mean * eta - (mean + shape) * jnp.log1p(mu / shape)
        score, weight = (mean - mu) * share, mu * share * share * (1.0 + mean / shape)
    else:
        value, score, weight = _other(family, link, shape, mean, eta)
    return total * value, total * score, total * jnp.maximum(weight, SMALLEST_WEIGHT)


def expected(
    likelihood: Likelihood, shape: Array, total: Array, eta: Array, weight: Array
) -> Array:
    """Expected information in place of the curvature, as `dbrm._kernels.glm_rows.expect`."""
    if likelihood.link == LOG and likelihood.family == GAMMA:
        return jnp.broadcast_to(total, eta.shape)
    if likelihood.link == LOG and likelihood.family == NEGATIVE_BINOMIAL:
        mu = _exp(eta)
        return total * jnp.maximum(mu / (1.0 + mu / shape), SMALLEST_WEIGHT)
    return weight


def _exp(eta: Array) -> Array:
    return jnp.exp(jnp.clip(eta, -700.0, 700.0))


def _binomial_link(link: int, eta: Array) -> tuple[Array, Array, Array, Array]:
    r"""Logs of :math:`\mu, 1-\mu`, then :math:`\mu'/\mu, \mu'/(1-\mu)`."""
    if link == LOGIT:
        e = jnp.exp(-jnp.abs(eta))
        near, larger = jnp.log1p(e), 1.0 / (1.0 + e)
        smaller = e * larger
        mu, nu = jnp.where(eta > 0, larger, smaller), jnp.where(eta > 0, smaller, larger)
        return -near - jnp.maximum(-eta, 0.0), -near - jnp.maximum(eta, 0.0), nu, mu
    if link == PROBIT:
        eta = jnp.clip(eta, -35.0, 35.0)
        below = 0.5 * jax.scipy.special.erfc(-eta * np.sqrt(0.5))
        above = 0.5 * jax.scipy.special.erfc(eta * np.sqrt(0.5))
        density = jnp.exp(-0.5 * eta * eta) / _ROOT_TWO_PI
        log_below = jnp.where(eta > 0, jnp.log1p(-above), jnp.log(below))
        log_above = jnp.where(eta > 0, jnp.log(above), jnp.log1p(-below))
        return log_below, log_above, density / below, density / above
    if link == CLOGLOG:
        hazard = jnp.exp(jnp.clip(eta, -35.0, 6.0))
        below = -jnp.expm1(-hazard)
        return jnp.log(below), -hazard, hazard * jnp.exp(-hazard) / below, hazard
    mu, slope = mean_link(link, eta)
    inside = (mu > 0) & (mu < 1)
    log_mu = jnp.where(inside, jnp.log(mu), -jnp.inf)
    return log_mu, jnp.where(inside, jnp.log1p(-mu), -jnp.inf), slope / mu, slope / (1.0 - mu)


def mean_link(link: int, eta: Array) -> tuple[Array, Array]:
    r"""Mean and slope :math:`\mu'(\eta)` under links whose mean is unbounded."""
    if link == LOG:
        mu = _exp(eta)
        return mu, mu
    if link == INVERSE:
        mu = 1.0 / eta
        return mu, -mu * mu
    return eta, jnp.ones_like(eta)


def _other(
    family: int, link: int, shape: Array, mean: Array, eta: Array
) -> tuple[Array, Array, Array]:
    mu, slope = mean_link(link, eta)
    if family == GAUSSIAN:
        gap = mean - mu
        return -0.5 * gap * gap, gap * slope, slope * slope
    logs = jnp.where(mean > 0, mean * jnp.log(mu), 0.0)
    if family == GAMMA:
        variance, value = mu * mu, -(mean / mu + jnp.log(mu))
    elif family == POISSON:
        variance, value = mu, logs - mu
    else:
        variance = mu * (1.0 + mu / shape)
        value = logs - (mean + shape) * jnp.log1p(mu / shape)
    value = jnp.where((mu > 0) & (mu < jnp.inf), value, -jnp.inf)
    pull = slope / variance
    return value, (mean - mu) * pull, slope * pull


def log_minus_digamma(x: Array) -> Array:
    r"""Evaluate :math:`\log x - \psi(x)` without cancellation."""
    value, shifted = jnp.zeros_like(x), x
    for _ in range(10):
        low = shifted < 10.0
        value += jnp.where(low, 1.0 / shifted, 0.0)
        shifted = jnp.where(low, shifted + 1.0, shifted)
    q = 1.0 / (shifted * shifted)
    series = 1.0 / 12.0 - q * (1.0 / 120.0 - q * (1.0 / 252.0 - q * (1.0 / 240.0 - q / 132.0)))
    return value + 0.5 / shifted + q * series - jnp.log(shifted / x)


def trigamma(x: Array) -> Array:
    r"""Evaluate :math:`\psi'(x)`."""
    value = jnp.zeros_like(x)
    for _ in range(10):
        low = x < 10.0
        value += jnp.where(low, 1.0 / (x * x), 0.0)
        x = jnp.where(low, x + 1.0, x)
    q = 1.0 / (x * x)
    series = 1.0 / 6.0 - q * (
        1.0 / 30.0 - q * (1.0 / 42.0 - q * (1.0 / 30.0 - q * (5.0 / 66.0 - q * 691.0 / 2730.0)))
    )
    return value + 1.0 / x + 0.5 * q + q * series / x
