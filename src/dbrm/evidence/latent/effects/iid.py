"""Independent effects: one for each row, position or group."""

from dataclasses import dataclass, field
from math import exp
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.latent.base import LATENT_EFFECTS, Bridge, Latent, check_column
from dbrm.evidence.latent.hyperpriors import LogGamma, PrecisionPrior

__all__ = ["IID", "RandomIntercept"]


class _Independent(Latent):
    r""":math:`\delta_j \sim N(0, 1/\tau)`, :math:`\psi = \log\tau`."""

    precision_prior: PrecisionPrior
    hyperparameters = ("log_precision",)
    start = (1.0,)
    bandwidth = 0
    kind = "grouped"

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        return np.full((positions.size, 1), exp(psi[0]))

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        return float(psi[0]) * positions.size

    def log_hyperprior(self, psi: FloatArray) -> float:
        return self.precision_prior.log_density(float(psi[0]))

    def natural(self, psi: FloatArray) -> dict[str, float]:
        return {"precision": exp(psi[0])}

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:  # noqa: ARG002
        """New effects are independent of the known ones."""
        shape = (new.size, 1)
        return Bridge(np.zeros(shape, np.int64), np.zeros(shape), np.full(new.size, exp(-psi[0])))


@final
@LATENT_EFFECTS.register("IID")
@dataclass(frozen=True)
class IID(_Independent):
    r"""The paper's independent Gaussian process: :math:`\delta_j \sim N(0, 1/\tau)`.

    Parameters
    ----------
    column
        One effect for each different value of this column; ``None`` for one in every row,
        which takes up over-dispersion.
    precision_prior
        Prior of :math:`\psi = \log\tau`.
    """

    column: str | None = None
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)

    def __post_init__(self) -> None:
        if self.column is not None:
            check_column("IID", self.column)


@final
@LATENT_EFFECTS.register("RandomIntercept")
@dataclass(frozen=True)
class RandomIntercept(_Independent):
    r"""An intercept for each group, :math:`\delta_j \sim N(0, 1/\tau)`; groups may be names.

    Parameters
    ----------
    column
        The column of groups: numbers, text or categories.
    precision_prior
        Prior of :math:`\psi = \log\tau`.
    """

    column: str
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)

    def __post_init__(self) -> None:
        check_column("RandomIntercept", self.column)
