"""Random walk of order one."""

from dataclasses import dataclass, field
from math import exp, log
from typing import Literal, final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.latent.base import LATENT_EFFECTS, Bridge, Latent, check_column
from dbrm.evidence.latent.bridges import interpolate
from dbrm.evidence.latent.hyperpriors import LogGamma, PrecisionPrior

__all__ = ["RW1"]


@final
@LATENT_EFFECTS.register("RW1")
@dataclass(frozen=True, slots=True)
class RW1(Latent):
    r"""Random walk with :math:`\delta_i - \delta_{i-1} \sim N(0, d_i/\tau)`, summing to zero.

    :math:`d_i` is the distance between neighbouring positions; on a grid with step one this
    is the RW(1) process of the paper. The effect is intrinsic: its precision
    :math:`\tau R` has the pseudo-determinant

    .. math:: |\tau R|^* = m \prod_{i=2}^m \tau/d_i .

    Parameters
    ----------
    column
        The column of positions.
    precision_prior
        Prior of :math:`\psi = \log\tau`.
    normalisation
        ``"proper"`` includes :math:`\frac12\log|R|^*`, which models with different positions or
        effects need to be compared. ``"inla"`` leaves it out, as R-INLA does.
    """

    column: str
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)
    normalisation: Literal["proper", "inla"] = "proper"
    hyperparameters = ("log_precision",)
    start = (1.0,)
    nullity = 1

    def __post_init__(self) -> None:
        check_column("RW1", self.column)
        check_normalisation("RW1", self.normalisation)

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        weights = exp(psi[0]) / (positions[1:] - positions[:-1])
        band = np.zeros((positions.size, 2))
        band[:-1, 0] += weights
        band[1:, 0] += weights
        band[1:, 1] = -weights
        return band

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        value = float(psi[0]) * (positions.size - 1)
        if self.normalisation == "inla":
            return value
        return value - float(np.log(np.diff(positions)).sum()) + log(positions.size)

    def log_hyperprior(self, psi: FloatArray) -> float:
        return self.precision_prior.log_density(float(psi[0]))

    def natural(self, psi: FloatArray) -> dict[str, float]:
        return {"precision": exp(psi[0])}

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:
        return interpolate(positions, new, exp(-psi[0]))


def check_normalisation(owner: str, value: object) -> None:
    """Two conventions exist for the constant of an intrinsic effect."""
    if value not in ("proper", "inla"):
        msg = f"{owner} needs normalisation 'proper' or 'inla'; got {value!r}."
        raise InvalidSettingError(msg)
