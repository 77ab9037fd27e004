r"""May coefficients of a Gaussian model be short numbers, 2, 1/2 or :math:`\pi`?

A number is short or any with prior probabilities :math:`\pi` and :math:`1 - \pi`, whatever its sign
and size. Of any number the digits are unknown: its logarithm is uniform between one power of ten
and the next, with the density :math:`1 / (\lvert \beta \rvert \log 10)`. A short one is :math:`c`
with a probability :math:`p(c)` that falls with its digits. The likelihood of :math:`\beta` is
nearly :math:`t_\nu\{(\beta - \hat\beta) / s\} / s`, and the Bayes factor

.. math:: B = \sum_c p(c)\, \lvert \hat\beta \rvert \log 10\;
    t_\nu\{(c - \hat\beta) / s\} / s .

A coefficient known to a hundredth that is two to its error is twice as likely to be two, one known
to a thousandth twenty times. Of one whose error is more than .3 of it nothing is known.
"""

from dataclasses import dataclass
from math import log
from typing import final

import numpy as np
import scipy.special

from dbrm._kernels.short_numbers import short_factors
from dbrm._typing import FloatArray

__all__ = ["ShortCoefficients"]

# Relative errors below this are rounding.
_ROUNDING = 1e-10
# With a larger one the data say nothing of digits.
_UNSURE = 0.3


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
        factors, _ = self._of_each(log_sizes, relative, degrees)
        mixtures = np.logaddexp(log(1.0 - self.probability), log(self.probability) + factors)
        return np.asarray(mixtures.sum(axis=1))

    def short_ones(
        self, log_sizes: FloatArray, relative: FloatArray, degrees: float
    ) -> tuple[FloatArray, FloatArray]:
        """Which number each coefficient of one model may be, and the probability that it is short.

        Parameters as for `log_factors`, without the axis of models; numbers are multiples of the
        estimates.
        """
        factors, values = self._of_each(log_sizes[None], relative[None], degrees)
        return values[0], np.asarray(scipy.special.expit(self._odds + factors[0]))

    @property
    def _odds(self) -> float:
        return log(self.probability) - log(1.0 - self.probability)

    def _of_each(
        self, log_sizes: FloatArray, relative: FloatArray, degrees: float
    ) -> tuple[FloatArray, FloatArray]:
        """Log Bayes factor of each coefficient, zero where nothing is known, and its number."""
        settings = np.array([_ROUNDING, _UNSURE])
        arrays = (np.ascontiguousarray(log_sizes), np.ascontiguousarray(relative))
        factors, values = short_factors(
            *arrays, float(degrees), self._odds, settings, self.numbers, self.log_priors
        )
        return factors, values
