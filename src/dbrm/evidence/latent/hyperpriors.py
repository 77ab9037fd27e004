r"""Priors of hyperparameters, on the scale on which they are estimated.

With the paper's defaults (Appendix C.2, as in R-INLA): :math:`\psi = \log\tau` has the
logGamma(1, 5e-5) distribution, other transformed parameters are normal.
"""

from dataclasses import dataclass
from math import exp, inf, lgamma, log, pi
from typing import Any, final

from dbrm._choices import Choices
from dbrm.errors import InvalidSettingError

__all__ = ["HYPERPRIORS", "ExponentialDeviation", "LogGamma", "NormalPrior", "PrecisionPrior"]

#: The priors, by the name of their class, under which files keep them.
HYPERPRIORS: Choices[type[Any]] = Choices("hyperprior")


@final
@HYPERPRIORS.register("LogGamma")
@dataclass(frozen=True, slots=True)
class LogGamma:
    r""":math:`\psi = \log\tau` with :math:`\tau \sim \mathrm{Gamma}(a, b)`.

    .. math:: \log\pi(\psi) = a\log b - \log\Gamma(a) + a\psi - b e^\psi .

    Parameters
    ----------
    shape, rate
        :math:`a` and :math:`b`.
    """

    shape: float = 1.0
    rate: float = 5e-5

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < inf and 0.0 < self.rate < inf):
            msg = (
                "LogGamma needs a positive finite shape and rate; got "
                f"shape={self.shape!r}, rate={self.rate!r}."
            )
            raise InvalidSettingError(msg)

    def log_density(self, value: float) -> float:
        """Log density at a log precision."""
        scaled = value + log(self.rate)
        if scaled > 700.0:
            return -inf
        return self.shape * scaled - lgamma(self.shape) - exp(scaled)


@final
@HYPERPRIORS.register("ExponentialDeviation")
@dataclass(frozen=True, slots=True)
class ExponentialDeviation:
    r""":math:`\psi = \log\tau` with an exponential standard deviation :math:`\tau^{-1/2}`.

    .. math:: \log\pi(\psi) = \log\tfrac\lambda2 - \tfrac\psi2 - \lambda e^{-\psi/2} .

    The prior that penalises complexity of Simpson et al. (2017): of all values, an effect of
    size zero is the most plausible, and large ones are rare.

    Parameters
    ----------
    rate
        :math:`\lambda`; the standard deviation exceeds :math:`3/\lambda` with probability 0.05.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < inf:
            msg = f"ExponentialDeviation needs a positive finite rate; got rate={self.rate!r}."
            raise InvalidSettingError(msg)

    def log_density(self, value: float) -> float:
        """Log density at a log precision."""
        if value < -1400.0:
            return -inf
        return log(0.5 * self.rate) - 0.5 * value - self.rate * exp(-0.5 * value)


PrecisionPrior = LogGamma | ExponentialDeviation


@final
@HYPERPRIORS.register("NormalPrior")
@dataclass(frozen=True, slots=True)
class NormalPrior:
    """A normal distribution given by its mean and its precision.

    Parameters
    ----------
    mean, precision
        Its parameters.
    """

    mean: float = 0.0
    precision: float = 0.15

    def __post_init__(self) -> None:
        if not (abs(self.mean) < inf and 0.0 < self.precision < inf):
            msg = (
                "NormalPrior needs a finite mean and a positive precision; got "
                f"mean={self.mean!r}, precision={self.precision!r}."
            )
            raise InvalidSettingError(msg)

    def log_density(self, value: float) -> float:
        """Log density."""
        return (
            0.5 * log(self.precision / (2 * pi)) - 0.5 * self.precision * (value - self.mean) ** 2
        )
