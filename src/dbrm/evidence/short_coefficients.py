r"""May coefficients of a Gaussian model be short numbers, 2, 1/2 or :math:`\pi`?

A number is short or any with prior probabilities :math:`\pi` and :math:`1 - \pi`, whatever its sign
and size. Of any number the digits are unknown: its logarithm is uniform between one power of ten
and the next, with the density :math:`1 / (\lvert \beta \rvert \log 10)`. A short one is :math:`c`
with a probability :math:`p(c)` that falls with its digits. The likelihood of :math:`\beta` is
nearly :math:`t_\nu\{(\beta - \hat\beta) / s\} / s`, and the Bayes factor

.. math:: B = \sum_c p(c)\, \lvert \hat\beta \rvert \log 10\;
    t_\nu\{(c - \hat\beta) / s\} / s .

A coefficient known to a hundredth that is two to its error is twice as likely to be two, one known
to a thousandth twenty times.
"""

from dataclasses import dataclass
from math import log
from typing import final

import numpy as np
import scipy.special

from dbrm._typing import FloatArray

__all__ = ["ShortCoefficients"]

# Relative errors below this are rounding.
_ROUNDING = 1e-10


@final
@dataclass(frozen=True, eq=False)
class ShortCoefficients:
    r"""Prior of the digits of coefficients.

    Parameters
    ----------
    probability
        :math:`\pi`, that a coefficient is a short number.
    numbers, log_priors
        The short numbers from one to ten, and their log probabilities.
    """

    probability: float
    numbers: FloatArray
    log_priors: FloatArray

    def log_factors(
        self, log_sizes: FloatArray, relative: FloatArray, degrees: float
    ) -> FloatArray:
        r"""Log of what models of one size gain, or lose, by the digits of their coefficients.

        Coefficients follow one after the other, the surest first. One that is rather short than
        not is held at its most probable value, and the others follow by their conditional
        distribution, with the scale and degrees of freedom

        .. math:: \frac{\nu + d^2}{\nu + 1} \Bigl(V - \frac{v v^T}{v_j}\Bigr), \quad \nu + 1,
            \qquad d^2 = (\hat\beta_j - c)^2 / v_j .

        Parameters
        ----------
        log_sizes
            A model each row: decimal logarithms of the absolute estimates.
        relative
            The scale matrix :math:`V` of their t distribution, divided by the estimates of its
            row and column.
        degrees
            Its degrees of freedom :math:`\nu`.
        """
        n_models, size = log_sizes.shape
        means, scales = np.ones((n_models, size)), relative.copy()
        freedom = np.full(n_models, float(degrees))
        rows, total = np.arange(n_models), np.zeros(n_models)
        open_log, short_log = log(1.0 - self.probability), log(self.probability)
        with np.errstate(all="ignore"):
            order = np.argsort(np.diagonal(relative, axis1=1, axis2=2), axis=1, kind="stable")
            for places in order.T:
                mean, variance = means[rows, places], scales[rows, places, places]
                factor, value = self._one(log_sizes[rows, places], mean, variance, freedom)
                total += np.logaddexp(open_log, short_log + factor)
                held = short_log + factor > open_log
                column = np.where(held[:, None], scales[rows, :, places], 0.0)
                share = column / variance[:, None]
                distance = (mean - value) ** 2 / variance
                means += share * (value - mean)[:, None]
                growth = np.where(held, (freedom + distance) / (freedom + 1.0), 1.0)
                scales = growth[:, None, None] * (scales - share[:, :, None] * column[:, None, :])
                freedom += held
        # Columns that depend on each other, or numbers that overflow, have no digits.
        return np.where(np.isfinite(total), total, size * open_log)

    def _one(
        self, log_size: FloatArray, mean: FloatArray, variance: FloatArray, freedom: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Log Bayes factor of a short number for each model, and the most probable number.

        Means, variances and numbers are in units of the estimate.
        """
        error = np.maximum(np.sqrt(variance), _ROUNDING)[:, None]
        # The power of ten below the mean, as it is now; a number may be on its other side.
        power = np.floor(log_size + np.log10(np.abs(mean))) - log_size
        decades = np.array([0.1, 1.0, 10.0])[:, None] * self.numbers
        values = (np.sign(mean) * 10.0**power)[:, None] * decades.ravel()
        nu = freedom[:, None]
        log_density = (
            scipy.special.gammaln((nu + 1.0) / 2.0)
            - scipy.special.gammaln(nu / 2.0)
            - 0.5 * np.log(nu * np.pi)
            - 0.5 * (nu + 1.0) * np.log1p(((values - mean[:, None]) / error) ** 2 / nu)
        )
        scale = np.log(np.abs(mean)[:, None] * log(10.0) / error)
        terms = np.tile(self.log_priors, 3) + log_density + scale
        best = np.argmax(terms, axis=1)
        return scipy.special.logsumexp(terms, axis=1), values[np.arange(mean.size), best]
