"""Bayes factors of short numbers for the coefficients of many models, one after the other."""

from math import exp, floor, inf, isfinite, lgamma, log, log1p, log10, pi, sqrt

import numba as nb
import numpy as np

from dbrm._kernels.compilation import INTERNAL

__all__ = ["short_factors"]

# Nats below the largest density at which a number no longer counts.
_FAR = 60.0
_LOG10 = log(10.0)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def short_factors(log_sizes, relative, degrees, odds, settings, numbers, log_priors):
    """Log Bayes factor of a short number for each coefficient, and the most probable number.

    Models are rows. Coefficients follow one after the other, the surest first; one that is rather
    short than not is held, and the means, scales and degrees of freedom of the others follow.

    Parameters
    ----------
    log_sizes, relative
        Decimal logarithms of the estimates, and their scale matrices in units of these.
    odds
        Log prior odds of a short number.
    settings
        Relative error of rounding, and the one from which on nothing is known of digits.
    """
    n_models, size = log_sizes.shape
    factors, values = np.zeros((n_models, size)), np.ones((n_models, size))
    mean, column = np.empty(size), np.empty(size)
    scale, done = np.empty((size, size)), np.empty(size, dtype=np.bool_)
    for row in range(n_models):
        mean[:], done[:] = 1.0, False
        scale[:, :] = relative[row]
        nu = degrees
        for _ in range(size):
            place = -1
            for j in range(size):
                if not done[j] and (place < 0 or relative[row, j, j] < relative[row, place, place]):
                    place = j
            done[place] = True
            variance, at = scale[place, place], mean[place]
            error = sqrt(variance) if variance > 0.0 else 0.0
            error = max(error, settings[0])
            known = isfinite(variance) and isfinite(log_sizes[row, place]) and at != 0.0
            if not (known and error < settings[1] * abs(at)):
                continue
            factor, value = _of_one(log_sizes[row, place], at, error, nu, numbers, log_priors)
            factors[row, place], values[row, place] = factor, value
            if not (odds + factor > 0.0 and variance > 0.0):
                continue
            distance = (at - value) ** 2 / variance
            growth = (nu + distance) / (nu + 1.0)
            column[:] = scale[:, place]
            for i in range(size):
                mean[i] += column[i] / variance * (value - at)
            for i in range(size):
                for j in range(size):
                    scale[i, j] = growth * (scale[i, j] - column[i] * column[j] / variance)
            nu += 1.0
    return factors, values


@nb.njit(**INTERNAL)
def _of_one(log_size, mean, error, nu, numbers, log_priors):
    """The same of one coefficient, its mean, error and number in units of the estimate."""
    # The power of ten below the mean, as it is now; a number may be on its other side.
    power = floor(log_size + log10(abs(mean))) - log_size
    sign = 1.0 if mean > 0.0 else -1.0
    half = 0.5 * (nu + 1.0)
    # Where the density is that far below its largest value.
    far = error * sqrt(nu * (exp(min(_FAR / half, 500.0)) - 1.0))
    total, best, value = 0.0, -inf, mean
    for decade in range(-1, 2):
        unit = 10.0 ** (power + decade)
        for k in range(numbers.size):
            at = unit * numbers[k]
            distance = at - abs(mean)
            if distance < -far:
                continue
            if distance > far:
                break
            term = log_priors[k] - half * log1p((distance / error) ** 2 / nu)
            total += exp(term)
            if term > best:
                best, value = term, sign * at
    if total == 0.0:
        return -inf, mean
    constant = lgamma(half) - lgamma(0.5 * nu) - 0.5 * log(nu * pi)
    return log(total) + constant + log(abs(mean) * _LOG10 / error), value
