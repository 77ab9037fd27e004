"""Ornstein-Uhlenbeck process."""

from dataclasses import dataclass, field
from functools import partial
from math import exp
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.latent.base import LATENT_EFFECTS, Bridge, Latent, check_column
from dbrm.evidence.latent.bridges import krige
from dbrm.evidence.latent.hyperpriors import LogGamma, NormalPrior, PrecisionPrior

__all__ = ["OU"]


@final
@LATENT_EFFECTS.register("OU")
@dataclass(frozen=True, slots=True)
class OU(Latent):
    r"""Ornstein-Uhlenbeck process, the continuous version of `AR1`, for irregular positions.

    At distance :math:`z_i` from its neighbour, :math:`\delta_i` given :math:`\delta_{i-1}` has mean
    :math:`\delta_{i-1}e^{-\phi z_i}` and precision :math:`\tau/(1 - e^{-2\phi z_i})`;
    :math:`\psi = (\log\tau, \log\phi)` with :math:`\tau` the marginal precision.

    Parameters
    ----------
    column
        The column of positions. The prior of :math:`\phi` refers to their unit.
    precision_prior, rate_prior
        Priors of :math:`\log\tau` and :math:`\log\phi`.
    """

    column: str
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)
    rate_prior: NormalPrior = field(default_factory=lambda: NormalPrior(0.0, 0.2))
    hyperparameters = ("log_precision", "log_rate")
    start = (1.0, -1.0)

    def __post_init__(self) -> None:
        check_column("OU", self.column)

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        decay, rest = _steps(psi, positions)
        tau = exp(psi[0])
        band = np.full((positions.size, 2), tau)
        band[:-1, 0] += tau * decay**2 / rest
        band[1:, 0] += tau * decay**2 / rest
        band[1:, 1] = -tau * decay / rest
        band[0, 1] = 0.0
        return band

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        _, rest = _steps(psi, positions)
        return positions.size * float(psi[0]) - float(np.log(rest).sum())

    def log_hyperprior(self, psi: FloatArray) -> float:
        first = self.precision_prior.log_density(float(psi[0]))
        return first + self.rate_prior.log_density(float(psi[1]))

    def natural(self, psi: FloatArray) -> dict[str, float]:
        return {"precision": exp(psi[0]), "rate": exp(psi[1])}

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:
        return krige(positions, new, partial(_decay, exp(psi[1])), exp(-psi[0]))


def _steps(psi: FloatArray, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Correlation of neighbours and one minus its square."""
    distance = (positions[1:] - positions[:-1]) * exp(psi[1])
    return np.exp(-distance), -np.expm1(-2.0 * distance)


def _decay(rate: float, distance: FloatArray) -> FloatArray:
    return np.exp(-rate * np.abs(distance))
