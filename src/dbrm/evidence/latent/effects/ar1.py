"""Autoregressive process of order one."""

from dataclasses import dataclass, field
from functools import partial
from math import exp, log, tanh
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.latent.base import LATENT_EFFECTS, Bridge, Latent, check_column
from dbrm.evidence.latent.bridges import krige
from dbrm.evidence.latent.hyperpriors import LogGamma, NormalPrior, PrecisionPrior

__all__ = ["AR1"]


@final
@LATENT_EFFECTS.register("AR1")
@dataclass(frozen=True, slots=True)
class AR1(Latent):
    r"""Stationary process :math:`\delta_i = \rho\delta_{i-1} + \epsilon_i` over ordered positions.

    Positions only give the order: each different one is one step, whatever the distance.
    `OU` is the process that looks at distances. With :math:`\kappa` the marginal precision,

    .. math:: \psi_1 = \log\kappa = \log\frac{1-\rho^2}{\sigma_\epsilon^2}, \qquad
        \psi_2 = \log\frac{1+\rho}{1-\rho} .

    Parameters
    ----------
    column
        The column of positions.
    precision_prior, correlation_prior
        Priors of :math:`\psi_1` and :math:`\psi_2`.
    """

    column: str
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)
    correlation_prior: NormalPrior = field(default_factory=lambda: NormalPrior(0.0, 0.15))
    hyperparameters = ("log_precision", "logit_correlation")
    start = (1.0, 1.0)

    def __post_init__(self) -> None:
        check_column("AR1", self.column)

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        rho, rest = _correlation(psi)
        step = exp(psi[0]) / rest
        band = np.empty((positions.size, 2))
        band[:, 0] = step * (1.0 + rho * rho)
        band[0, 0] = band[-1, 0] = step
        band[:, 1] = -rho * step
        band[0, 1] = 0.0
        if positions.size == 1:
            band[0, 0] = exp(psi[0])
        return band

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        _, rest = _correlation(psi)
        return positions.size * float(psi[0]) - (positions.size - 1) * log(rest)

    def log_hyperprior(self, psi: FloatArray) -> float:
        first = self.precision_prior.log_density(float(psi[0]))
        return first + self.correlation_prior.log_density(float(psi[1]))

    def natural(self, psi: FloatArray) -> dict[str, float]:
        return {"precision": exp(psi[0]), "correlation": tanh(0.5 * psi[1])}

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:
        """Between and beyond known positions, steps are counted in typical distances."""
        rho, _ = _correlation(psi)
        steps = np.arange(positions.size, dtype=np.float64)
        typical = float(np.median(np.diff(positions))) if positions.size > 1 else 1.0
        places = np.interp(new, positions, steps)
        places = np.where(new < positions[0], (new - positions[0]) / typical, places)
        beyond = steps[-1] + (new - positions[-1]) / typical
        places = np.where(new > positions[-1], beyond, places)
        return krige(steps, places, partial(_decay, rho), exp(-psi[0]))


def _correlation(psi: FloatArray) -> tuple[float, float]:
    r""":math:`\rho` and :math:`1 - \rho^2`, the latter without cancellation."""
    half = exp(-abs(psi[1]))
    return tanh(0.5 * psi[1]), 4.0 * half / (1.0 + half) ** 2


def _decay(rho: float, distance: FloatArray) -> FloatArray:
    """Correlation over a number of steps; between whole numbers a negative one oscillates."""
    away = np.abs(distance)
    decay = abs(rho) ** away
    return np.asarray(decay if rho >= 0.0 else decay * np.cos(np.pi * away))
