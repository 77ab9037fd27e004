"""Random walk of order two."""

from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import exp
from typing import Literal, final

import numpy as np
import scipy.linalg

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.latent.base import (
    LATENT_EFFECTS,
    Bridge,
    Latent,
    bridge_by_precision,
    check_column,
)
from dbrm.evidence.latent.effects.rw1 import check_normalisation
from dbrm.evidence.latent.hyperpriors import LogGamma, PrecisionPrior

__all__ = ["RW2"]


@final
@LATENT_EFFECTS.register("RW2")
@dataclass(frozen=True, slots=True)
class RW2(Latent):
    r"""Smooth curve: independent changes of slope, :math:`N(0, \bar d_i/\tau)`.

    With :math:`d_i` the distances between neighbouring positions, in units of their mean, and
    :math:`\bar d_i` the mean on both sides of an inner position,

    .. math:: \frac{\delta_{i+1} - \delta_i}{d_{i+1}} - \frac{\delta_i - \delta_{i-1}}{d_i}
        \sim N(0, \bar d_i / \tau) .

    Straight lines cost nothing. The effect is constrained to be orthogonal to them: a linear
    trend is the business of a covariate.

    Parameters
    ----------
    column
        The column of positions, at least four different ones.
    precision_prior
        Prior of :math:`\psi = \log\tau`.
    normalisation
        As for `RW1`.
    """

    column: str
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)
    normalisation: Literal["proper", "inla"] = "proper"
    hyperparameters = ("log_precision",)
    start = (1.0,)
    bandwidth = 2
    nullity = 2

    def __post_init__(self) -> None:
        check_column("RW2", self.column)
        check_normalisation("RW2", self.normalisation)

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        return self._precision(psi, _unit(positions), positions)

    def _precision(self, psi: FloatArray, unit: float, positions: FloatArray) -> Matrix:
        scaled = positions / unit
        first, middle, last = _differences(scaled)
        weights = exp(psi[0]) / _spans(scaled)
        band = np.zeros((positions.size, 3))
        band[:-2, 0] += weights * first**2
        band[1:-1, 0] += weights * middle**2
        band[2:, 0] += weights * last**2
        band[1:-1, 1] += weights * first * middle
        band[2:, 1] += weights * middle * last
        band[2:, 2] = weights * first * last
        return band

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        value = float(psi[0]) * (positions.size - 2)
        if self.normalisation == "inla":
            return value
        return value + _log_pseudo_determinant((positions / _unit(positions)).tobytes())

    def log_hyperprior(self, psi: FloatArray) -> float:
        return self.precision_prior.log_density(float(psi[0]))

    def natural(self, psi: FloatArray) -> dict[str, float]:
        return {"precision": exp(psi[0])}

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:
        precision = partial(self._precision, psi, _unit(positions))
        return bridge_by_precision(precision, positions, new)


def _unit(positions: FloatArray) -> float:
    """Mean distance of neighbours."""
    return float(positions[-1] - positions[0]) / (positions.size - 1)


def _differences(positions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    gaps = np.diff(positions)
    return 1.0 / gaps[:-1], -(1.0 / gaps[:-1] + 1.0 / gaps[1:]), 1.0 / gaps[1:]


def _spans(positions: FloatArray) -> FloatArray:
    gaps = np.diff(positions)
    return np.asarray(0.5 * (gaps[:-1] + gaps[1:]))


@lru_cache(maxsize=32)
def _log_pseudo_determinant(content: bytes) -> float:
    r"""Log of :math:`|D'KD|^* = |K||DD'|` for the second differences :math:`D`."""
    positions = np.frombuffer(content)
    first, middle, last = _differences(positions)
    gram = np.zeros((3, first.size))
    gram[0] = first**2 + middle**2 + last**2
    gram[1, :-1] = middle[:-1] * first[1:] + last[:-1] * middle[1:]
    gram[2, :-2] = last[:-2] * first[2:]
    factor = scipy.linalg.cholesky_banded(gram, lower=True)
    return 2.0 * float(np.log(factor[0]).sum()) - float(np.log(_spans(positions)).sum())
