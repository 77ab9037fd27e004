r"""Gaussian slopes with a fixed or an unknown common variance.

Their evidence needs the penalised fit itself, not only its Wald statistic. A radial
prior therefore offers its log density as a function of :math:`q = \beta'\beta` with two
derivatives, from which an engine builds gradient :math:`2\phi'(q)\beta` and Hessian
:math:`2\phi'(q) I + 4\phi''(q)\beta\beta'`. The intercept is flat.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import exp, inf, lgamma, log, pi
from typing import NoReturn, final

from dbrm._typing import IntArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import (
    COEFFICIENT_PRIORS,
    CoefficientPrior,
    GaussianShape,
)

__all__ = ["Normal", "NormalLogGamma", "Radial", "RadialPrior"]


@final
@dataclass(frozen=True, slots=True)
class Radial:
    r"""Log density :math:`\phi(q)` at :math:`q = \beta'\beta` and its derivatives in :math:`q`."""

    value: float
    first: float
    second: float


class RadialPrior(CoefficientPrior):
    """Exchangeable slopes whose density depends on their length only."""

    @abstractmethod
    def radial(self, square: float, size: int) -> Radial:
        r"""Log density of `size` slopes with :math:`\beta'\beta` equal to `square`."""

    @property
    @abstractmethod
    def ridge(self) -> float | None:
        """Prior precision of each slope, or ``None`` where it is unknown."""

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def glm_table(self, sizes: IntArray, n: float) -> NoReturn:  # noqa: ARG002
        self._refuse()

    def _refuse(self) -> NoReturn:
        msg = (
            f"The evidence under prior={self.name!r} is no function of the residual sum of "
            "squares or the Wald statistic: this engine cannot use it. Engines that fit the "
            "penalised model take it from `radial`; for a Gaussian response try "
            "prior='zellner-siow'."
        )
        raise InvalidSettingError(msg)


@final
@COEFFICIENT_PRIORS.register("normal")
@dataclass(frozen=True, slots=True)
class Normal(RadialPrior):
    r"""Independent slopes :math:`\beta_j \sim N(0, v)`, flat intercept.

    For a Gaussian response the conjugate version :math:`\beta_j \sim N(0, v\sigma^2)`.
    ``Normal(variance=1000)`` is the default of R-INLA and what the published script of
    Example 7 ran.

    Parameters
    ----------
    variance
        The prior variance :math:`v`.
    standardised
        Whether it is that of columns divided by their standard deviation: ridge regression.
        Otherwise the prior depends on the units of the columns.
    """

    variance: float = 1000.0
    standardised: bool = False
    name = "normal"

    def __post_init__(self) -> None:
        if not 0.0 < self.variance < inf:
            msg = f"Normal needs a positive finite variance; got variance={self.variance!r}."
            raise InvalidSettingError(msg)

    @property
    def ridge(self) -> float:
        return 1.0 / self.variance

    def radial(self, square: float, size: int) -> Radial:
        value = -0.5 * size * log(2 * pi * self.variance) - 0.5 * square / self.variance
        return Radial(value, -0.5 / self.variance, 0.0)


@final
@COEFFICIENT_PRIORS.register("normal-loggamma")
@dataclass(frozen=True, slots=True)
class NormalLogGamma(RadialPrior):
    r"""Slopes :math:`N(0, 1/\tau)` with :math:`\tau \sim \mathrm{Gamma}(a, b)` (Example 7).

    :math:`\psi = \log\tau` has the logGamma prior of R-INLA. Integrated over
    :math:`\tau` the slopes are multivariate t with :math:`2a` degrees of freedom,

    .. math:: p(\beta) = \frac{b^a\,\Gamma(p/2 + a)}{\Gamma(a)(2\pi)^{p/2}}
        \Bigl(b + \frac{\beta'\beta}{2}\Bigr)^{-(p/2 + a)} .

    Parameters
    ----------
    shape, rate
        :math:`a` and :math:`b` of the Gamma prior of the precision.

    Notes
    -----
    With the paper's :math:`a = 1, b = 5 \cdot 10^{-5}` the precision has mean 20000: an
    extremely concentrated prior, with polynomial tails.
    """

    shape: float = 1.0
    rate: float = 5e-5
    name = "normal-loggamma"

    def __post_init__(self) -> None:
        for label, value in (("shape", self.shape), ("rate", self.rate)):
            if not 0.0 < value < inf:
                msg = f"NormalLogGamma needs a positive finite {label}; got {label}={value!r}."
                raise InvalidSettingError(msg)

    @property
    def ridge(self) -> None:
        return None

    def radial(self, square: float, size: int) -> Radial:
        power = 0.5 * size + self.shape
        base = self.rate + 0.5 * square
        value = self.shape * log(self.rate) + lgamma(power) - lgamma(self.shape)
        value -= 0.5 * size * log(2 * pi) + power * log(base)
        return Radial(value, -0.5 * power / base, 0.25 * power / base**2)

    def log_density_of_log_precision(self, psi: float) -> float:
        r"""Log density of :math:`\psi = \log\tau`, for engines that put it on a grid."""
        scaled = log(self.rate) + psi
        return self.shape * scaled - lgamma(self.shape) - (inf if scaled > 700 else exp(scaled))
