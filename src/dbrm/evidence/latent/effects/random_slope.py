"""Slopes that differ between groups."""

from dataclasses import dataclass, field
from math import exp, log, tanh
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.latent.base import LATENT_EFFECTS, Latent, check_column
from dbrm.evidence.latent.hyperpriors import (
    ExponentialDeviation,
    LogGamma,
    NormalPrior,
    PrecisionPrior,
)

__all__ = ["RandomSlope"]


@final
@LATENT_EFFECTS.register("RandomSlope")
@dataclass(frozen=True)
class RandomSlope(Latent):
    r"""A slope of a covariate for each group, by default together with an intercept.

    With :math:`z` the covariate divided by its standard deviation, row :math:`i` of group
    :math:`j` has

    .. math:: \delta_i = a_j + b_j (z_i - \bar z), \qquad
        (a_j, b_j) \sim N(0, \Sigma), \quad
        \Sigma_{11} = 1/\tau_a, \; \Sigma_{22} = 1/\tau_b, \; \mathrm{Corr} = \rho .

    Without correlation it is the slope alone, :math:`\delta_i = b_j z_i` with
    :math:`b_j \sim N(0, 1/\tau_b)`: offer ``RandomIntercept(column)`` beside it for an
    intercept. Slopes are deviations from the coefficient of the covariate, which stays a
    covariate.

    Parameters
    ----------
    column
        The column of groups: numbers, text or categories.
    covariate
        The column of numbers whose slope differs between groups.
    correlated
        Whether every group has an intercept, too, correlated with its slope:
        ``(covariate | column)`` in a formula.
    precision_prior
        Prior of :math:`\log\tau_a`, as for `RandomIntercept`.
    slope_prior
        Prior of :math:`\log\tau_b`. The paper's prior for log precisions would charge about
        eight nats for slopes that differ at all.
    correlation_prior
        Prior of :math:`\log\frac{1+\rho}{1-\rho}`.
    """

    column: str
    covariate: str
    correlated: bool = True
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)
    slope_prior: PrecisionPrior = field(default_factory=ExponentialDeviation)
    correlation_prior: NormalPrior = field(default_factory=lambda: NormalPrior(0.0, 0.15))
    kind = "slopes"

    def __post_init__(self) -> None:
        check_column("RandomSlope", self.column)
        if not isinstance(self.covariate, str) or not self.covariate:
            msg = (
                "RandomSlope needs the column of groups and the covariate whose slope differs, "
                f"as in RandomSlope('site', 'dose'); got covariate={self.covariate!r}."
            )
            raise InvalidSettingError(msg)
        names = ["log_precision", "log_slope_precision", "logit_correlation"]
        start = [1.0, 1.0, 0.0]
        kept = slice(0, 3) if self.correlated else slice(1, 2)
        object.__setattr__(self, "hyperparameters", tuple(names[kept]))
        object.__setattr__(self, "start", tuple(start[kept]))
        object.__setattr__(self, "bandwidth", int(self.correlated))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.covariate)

    @property
    def name(self) -> str:
        """``RandomSlope(site, dose)``; the slope alone is ``RandomSlope(site, 0 + dose)``."""
        return f"RandomSlope({self.column}, {'' if self.correlated else '0 + '}{self.covariate})"

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        if not self.correlated:
            return np.full((positions.size, 1), exp(psi[0]))
        rho, rest = _correlation(psi)
        band = np.zeros((positions.size, 2))
        band[0::2, 0], band[1::2, 0] = exp(psi[0]) / rest, exp(psi[1]) / rest
        band[1::2, 1] = -rho * exp(0.5 * (psi[0] + psi[1])) / rest
        return band

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        if not self.correlated:
            return positions.size * float(psi[0])
        return positions.size // 2 * (float(psi[0] + psi[1]) - log(_correlation(psi)[1]))

    def log_hyperprior(self, psi: FloatArray) -> float:
        if not self.correlated:
            return self.slope_prior.log_density(float(psi[0]))
        total = self.precision_prior.log_density(float(psi[0]))
        total += self.slope_prior.log_density(float(psi[1]))
        return total + self.correlation_prior.log_density(float(psi[2]))

    def natural(self, psi: FloatArray) -> dict[str, float]:
        if not self.correlated:
            return {"slope_precision": exp(psi[0])}
        return {
            "precision": exp(psi[0]),
            "slope_precision": exp(psi[1]),
            "correlation": tanh(0.5 * psi[2]),
        }


def _correlation(psi: FloatArray) -> tuple[float, float]:
    r""":math:`\rho` and :math:`1 - \rho^2`, the latter without cancellation."""
    half = exp(-abs(psi[2]))
    return tanh(0.5 * psi[2]), 4.0 * half / (1.0 + half) ** 2
