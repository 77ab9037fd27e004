r"""Row by row: log likelihood, score and expected information as functions of :math:`\eta`.

Every family is written with unit dispersion, for grouped rows: ``total`` is the
number of observations behind a row (for binomial rows the number of trials) and
``mean`` their mean response. Terms that do not depend on :math:`\eta` are left to
`dbrm._kernels.glm_dispersion`.
"""

from math import erfc

import numba as nb
import numpy as np

from dbrm._kernels.glm_math import log1p_unit, safe_exp

__all__ = [
    "BINOMIAL",
    "CLOGLOG",
    "GAMMA",
    "GAUSSIAN",
    "IDENTITY",
    "INVERSE",
    "LOG",
    "LOGIT",
    "NEGATIVE_BINOMIAL",
    "POISSON",
    "PROBIT",
    "expect",
    "linearise",
    "weight_slopes",
]

GAUSSIAN, BINOMIAL, POISSON, GAMMA, NEGATIVE_BINOMIAL = 0, 1, 2, 3, 4
IDENTITY, LOGIT, PROBIT, CLOGLOG, LOG, INVERSE = 0, 1, 2, 3, 4, 5

# Smallest expected information of one observation: keeps the Hessian of a separated
# model invertible; the likelihood has long reached its supremum (to 1e-12) there.
SMALLEST_WEIGHT = 1e-15
_ROOT_HALF = 0.7071067811865476
_ROOT_TWO_PI = 2.5066282746310002


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _binomial_logit(mean, total, eta, score, weight):
    value = 0.0
    for r in range(eta.size):
        distance = abs(eta[r])
        e = safe_exp(-distance)
        larger = 1.0 / (1.0 + e)
        smaller = e * larger
        mu = larger if eta[r] > 0.0 else smaller
        nu = smaller if eta[r] > 0.0 else larger
        y = mean[r]
        n = total[r]
        weight[r] = n * max(larger * smaller, SMALLEST_WEIGHT)
        score[r] = n * (y * nu - (1.0 - y) * mu)
        wrong = (1.0 - y) * max(eta[r], 0.0) + y * max(-eta[r], 0.0)
        value -= n * (wrong + log1p_unit(e))
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _poisson_log(mean, total, eta, score, weight):
    value = 0.0
    for r in range(eta.size):
        mu = safe_exp(eta[r])
        n = total[r]
        weight[r] = n * max(mu, SMALLEST_WEIGHT)
        score[r] = n * (mean[r] - mu)
        value += n * (mean[r] * eta[r] - mu)
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _gamma_log(mean, total, eta, score, weight):
    value = 0.0
    for r in range(eta.size):
        ratio = mean[r] * safe_exp(-eta[r])
        n = total[r]
        weight[r] = n * max(ratio, SMALLEST_WEIGHT)
        score[r] = n * (ratio - 1.0)
        value -= n * (ratio + eta[r])
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _negative_binomial_log(shape, mean, total, eta, score, weight):
    value = 0.0
    for r in range(eta.size):
        mu = safe_exp(eta[r])
        share = 1.0 / (1.0 + mu / shape)
        n = total[r]
        y = mean[r]
        weight[r] = n * max(mu * share * share * (1.0 + y / shape), SMALLEST_WEIGHT)
        score[r] = n * (y - mu) * share
        value += n * (y * eta[r] - (y + shape) * np.log1p(mu / shape))
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _binomial_link(link, eta):
    r"""Logs of :math:`\mu, 1-\mu`, then :math:`\mu'/\mu, \mu'/(1-\mu), \mu''/\mu'`.

    In these five terms nothing cancels when :math:`\mu` approaches zero or one.
    """
    if link == PROBIT:
        eta = min(max(eta, -35.0), 35.0)
        below = 0.5 * erfc(-eta * _ROOT_HALF)
        above = 0.5 * erfc(eta * _ROOT_HALF)
        density = np.exp(-0.5 * eta * eta) / _ROOT_TWO_PI
        log_below = np.log1p(-above) if eta > 0.0 else np.log(below)
        log_above = np.log(above) if eta > 0.0 else np.log1p(-below)
        return log_below, log_above, density / below, density / above, -eta
    if link == CLOGLOG:
        eta = min(max(eta, -35.0), 6.0)
        hazard = np.exp(eta)
        below = -np.expm1(-hazard)
        slope = hazard * np.exp(-hazard) / below
        return np.log(below), -hazard, slope, hazard, 1.0 - hazard
    if link == LOGIT:
        e = np.exp(-abs(eta))
        near = np.log1p(e)
        mu = 1.0 / (1.0 + e) if eta > 0.0 else e / (1.0 + e)
        nu = e / (1.0 + e) if eta > 0.0 else 1.0 / (1.0 + e)
        return -near - max(-eta, 0.0), -near - max(eta, 0.0), nu, mu, nu - mu
    mu, slope, curvature = _mean_link(link, eta)
    if not 0.0 < mu < 1.0:
        return -np.inf, -np.inf, np.nan, np.nan, np.nan
    return np.log(mu), np.log1p(-mu), slope / mu, slope / (1.0 - mu), curvature


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _mean_link(link, eta):
    r"""Evaluate :math:`\mu, \mu', \mu''/\mu'` of the links whose mean is unbounded."""
    if link == LOG:
        mu = np.exp(min(max(eta, -700.0), 700.0))
        return mu, mu, 1.0
    if link == INVERSE:
        mu = 1.0 / eta
        return mu, -mu * mu, -2.0 * mu
    return eta, 1.0, 0.0


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _binomial_any(link, mean, total, eta, score, weight):
    value = 0.0
    for r in range(eta.size):
        log_mu, log_nu, a, b, _ = _binomial_link(link, eta[r])
        y = mean[r]
        n = total[r]
        if not (n == 0.0 or a * b < np.inf):
            return -np.inf
        weight[r] = n * max(a * b, SMALLEST_WEIGHT)
        score[r] = n * (y * a - (1.0 - y) * b)
        if n > 0.0 and y > 0.0:
            value += n * y * log_mu
        if n > 0.0 and y < 1.0:
            value += n * (1.0 - y) * log_nu
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _variance(family, shape, mu):
    """Variance function and its derivative."""
    if family == POISSON:
        return mu, 1.0
    if family == GAMMA:
        return mu * mu, 2.0 * mu
    if family == NEGATIVE_BINOMIAL:
        return mu * (1.0 + mu / shape), 1.0 + 2.0 * mu / shape
    return 1.0, 0.0


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _other_any(family, link, shape, mean, total, eta, score, weight):
    value = 0.0
    for r in range(eta.size):
        y = mean[r]
        n = total[r]
        mu, slope, _ = _mean_link(link, eta[r])
        if family != GAUSSIAN and not 0.0 < mu < np.inf:
            return -np.inf
        variance, _ = _variance(family, shape, mu)
        pull = slope / variance
        weight[r] = n * max(slope * pull, SMALLEST_WEIGHT)
        score[r] = n * (y - mu) * pull
        if family == GAUSSIAN:
            value -= 0.5 * n * (y - mu) * (y - mu)
        elif family == GAMMA:
            value -= n * (y / mu + np.log(mu))
        elif family == POISSON:
            value += n * ((y * np.log(mu) if y > 0.0 else 0.0) - mu)
        else:
            value += n * ((y * np.log(mu) if y > 0.0 else 0.0) - (y + shape) * np.log1p(mu / shape))
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy")
def linearise(family, link, shape, mean, total, eta, score, weight):
    r"""Fill score and curvature in :math:`\eta`; return the moving log likelihood.

    The curvature is the expected information, except for gamma and negative binomial
    responses with log link: there the observed information is positive too, and Newton's
    method converges quadratically with it.

    ``shape`` is :math:`\theta` of a negative binomial response and unused otherwise. The
    value is ``-inf`` where a mean leaves its domain.
    """
    if family == BINOMIAL:
        if link == LOGIT:
            value = _binomial_logit(mean, total, eta, score, weight)
        else:
            value = _binomial_any(link, mean, total, eta, score, weight)
    elif family == POISSON and link == LOG:
        value = _poisson_log(mean, total, eta, score, weight)
    elif family == GAMMA and link == LOG:
        value = _gamma_log(mean, total, eta, score, weight)
    elif family == NEGATIVE_BINOMIAL and link == LOG:
        value = _negative_binomial_log(shape, mean, total, eta, score, weight)
    else:
        value = _other_any(family, link, shape, mean, total, eta, score, weight)
    return value if value < np.inf else -np.inf


@nb.njit(cache=True, nogil=True, error_model="numpy")
def expect(family, link, shape, total, eta, weight):
    """Turn the curvatures of `linearise` into expected information."""
    if link != LOG:
        return
    for r in range(eta.size):
        if family == GAMMA:
            weight[r] = total[r]
        elif family == NEGATIVE_BINOMIAL:
            mu = safe_exp(eta[r])
            weight[r] = total[r] * max(mu / (1.0 + mu / shape), SMALLEST_WEIGHT)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def weight_slopes(family, link, shape, eta, out):
    r"""Log derivative :math:`w'(\eta)/w(\eta)` of the information, for Firth's correction."""
    for r in range(eta.size):
        if family == BINOMIAL:
            _, _, a, b, curvature = _binomial_link(link, eta[r])
            out[r] = 2.0 * curvature - a + b
        else:
            mu, slope, curvature = _mean_link(link, eta[r])
            variance, derivative = _variance(family, shape, mu)
            out[r] = 2.0 * curvature - derivative * slope / variance
