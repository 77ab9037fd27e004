r"""What does not move with :math:`\eta`: constants of the likelihood, and the dispersion.

``shape`` is :math:`\nu` of a gamma response (variance :math:`\mu^2/\nu`), :math:`\theta`
of a negative binomial one (variance :math:`\mu + \mu^2/\theta`) and :math:`1/\sigma^2`
of a Gaussian one; it is one for the families without dispersion.
"""

from collections import namedtuple
from math import lgamma

import numba as nb
import numpy as np

from dbrm._kernels.glm_math import log_rising, trigamma
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, NEGATIVE_BINOMIAL

__all__ = ["Constants", "gamma_shape", "log_likelihood", "negative_binomial_shape", "profile_shape"]

LARGEST_SHAPE = 1e10
SMALLEST_SHAPE = 1e-8
_LOG_TWO_PI = 1.8378770664093453

# n: observations; rest: terms of the log likelihood that never change; saturated: value
# of `linearise` with every mean equal to its response; floor: smallest deviance that is
# told from a perfect fit; squares: sum of squared responses; values, counts: how often
# each response occurs (negative binomial).
Constants = namedtuple("Constants", "n rest saturated floor squares values counts")


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _log_minus_digamma(x):
    r"""Evaluate :math:`\log x - \psi(x)` without cancellation."""
    value = 0.0
    shifted = x
    while shifted < 10.0:
        value += 1.0 / shifted
        shifted += 1.0
    q = 1.0 / (shifted * shifted)
    series = 1.0 / 12.0 - q * (1.0 / 120.0 - q * (1.0 / 252.0 - q * (1.0 / 240.0 - q / 132.0)))
    value += 0.5 / shifted + q * series
    return value - np.log(shifted / x)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def gamma_shape(half_mean_deviance):
    r"""Solve :math:`\log\nu - \psi(\nu) = D / (2n)` by Newton's method on :math:`\log\nu`."""
    a = half_mean_deviance
    shape = (3.0 - a + np.sqrt((a - 3.0) * (a - 3.0) + 24.0 * a)) / (12.0 * a)
    shape = min(max(shape, SMALLEST_SHAPE), 1e16)
    for _ in range(30):
        gap = _log_minus_digamma(shape) - a
        # 1 - x psi'(x) cancels for large shapes; its leading terms do not.
        if shape > 1e4:
            slope = -0.5 / shape - 1.0 / (6.0 * shape * shape)
        else:
            slope = 1.0 - shape * trigamma(shape)
        move = -gap / slope
        shape *= np.exp(min(max(move, -2.0), 2.0))
        if abs(move) < 1e-13:
            break
    return shape


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _digamma_rising(y, shape):
    r"""Evaluate :math:`\psi(y + \theta) - \psi(\theta)` without cancellation."""
    top = _log_minus_digamma(y + shape)
    bottom = _log_minus_digamma(shape)
    return np.log1p(y / shape) - (top - bottom)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def negative_binomial_shape(constants, mean, total, mu, start):
    r"""Maximise over :math:`\theta` for given means, by Newton's method on :math:`\log\theta`.

    The likelihood increases without end in :math:`\theta` (the Poisson limit) when its
    derivative in :math:`1/\theta` at zero, :math:`\frac12\sum\{(y-\mu)^2 - y\}`, is not
    positive.
    """
    excess = constants.squares
    for r in range(mu.size):
        excess += total[r] * (mu[r] * mu[r] - 2.0 * mean[r] * mu[r] - mean[r])
    if not abs(excess) < np.inf:
        return start
    if excess <= 0.0:
        return LARGEST_SHAPE
    shape = min(max(start, SMALLEST_SHAPE), 1e4)
    for _ in range(60):
        slope = 0.0
        curvature = 0.0
        for u in range(constants.values.size):
            y = constants.values[u]
            slope += constants.counts[u] * _digamma_rising(y, shape)
            curvature += constants.counts[u] * (trigamma(y + shape) - trigamma(shape))
        for r in range(mu.size):
            sum_ = mu[r] + shape
            gap = (mean[r] - mu[r]) / sum_
            slope -= total[r] * (np.log1p(mu[r] / shape) + gap)
            curvature += total[r] * (mu[r] / (shape * sum_) + gap / sum_)
        slope *= shape
        curvature = shape * shape * curvature + slope
        move = slope / -curvature if curvature < 0.0 else np.sign(slope)
        if move != move:
            return start
        move = min(max(move, -2.0), 2.0)
        shape *= np.exp(move)
        if shape >= LARGEST_SHAPE or shape <= SMALLEST_SHAPE:
            return min(max(shape, SMALLEST_SHAPE), LARGEST_SHAPE)
        if abs(move) < 1e-9:
            break
    return shape


@nb.njit(cache=True, nogil=True, error_model="numpy")
def profile_shape(family, constants, value, mean, total, mu, start):
    """Best shape for given means; ``value`` is what `linearise` returned for them."""
    if family == NEGATIVE_BINOMIAL:
        return negative_binomial_shape(constants, mean, total, mu, start)
    deviance = max(2.0 * (constants.saturated - value), constants.floor)
    if family == GAMMA:
        return gamma_shape(0.5 * deviance / constants.n)
    if family == GAUSSIAN:
        return constants.n / deviance
    return 1.0


@nb.njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood(family, constants, value, shape):
    """Full log likelihood from the moving part that `linearise` returned."""
    if family == NEGATIVE_BINOMIAL:
        total = value + constants.rest
        for u in range(constants.values.size):
            total += constants.counts[u] * log_rising(constants.values[u], shape)
        return total
    if family == GAMMA:
        deviance = max(2.0 * (constants.saturated - value), constants.floor)
        if shape > 100.0:
            q = 1.0 / (shape * shape)
            each = (
                0.5 * (np.log(shape) - _LOG_TWO_PI)
                - (1.0 / 12.0 - q * (1.0 / 360.0 - q / 1260.0)) / shape
            )
        else:
            each = shape * np.log(shape) - shape - lgamma(shape)
        return constants.n * each - 0.5 * shape * deviance + constants.rest
    if family == GAUSSIAN:
        deviance = max(2.0 * (constants.saturated - value), constants.floor)
        return 0.5 * constants.n * (np.log(shape) - _LOG_TWO_PI) - 0.5 * shape * deviance
    return value + constants.rest
