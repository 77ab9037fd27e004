r"""Objectives of projection weights: the log likelihood of a column, with its derivative by row.

`PlainObjective` is the paper's: the linear predictor *is* the feature, :math:`\eta = F`.
`AffineObjective` is what a model does with a feature, :math:`\eta = b_0 + b_1 F` with the best
:math:`b_0, b_1` (variable projection). Objectives see columns, never weights or expressions.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column
from dbrm.evidence import AbstractPredictorLikelihood

__all__ = ["AbstractObjective", "AffineObjective", "PlainObjective"]

_MOST_STEPS = 50
# A Newton step with an expected gain below this (nats, relative to the value) is the last.
_REMAINDER = 1e-17
# A column that varies less than this, relative to its size, is constant for every engine.
_FLAT = 1e-7
# Penalty on the linear predictor's variance, in units of the information of one observation.
_RIDGE = 0.01
# Penalty, in nats, on a column whose variance equals the square of its size.
_FLATNESS = 1e-6


class AbstractObjective(ABC):
    """The log likelihood of a feature's column."""

    @abstractmethod
    def value(self, column: Column) -> tuple[float, Column]:
        """Log likelihood, ``-inf`` where there is none, and its derivative in the column."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlainObjective(AbstractObjective):
    r""":math:`\ell(\eta = F)`, literally strategy 2 of the paper (Appendix A).

    A bounded :math:`g` cannot reach the range of :math:`\eta` then: with
    :math:`g(z) = e^{-z^2}` and a logistic response the probabilities stay between 0.5
    and 0.73.
    """

    likelihood: AbstractPredictorLikelihood

    def value(self, column: Column) -> tuple[float, Column]:
        if not np.all(np.isfinite(column)):
            return -np.inf, column
        slope = self.likelihood.at(column)
        return slope.value, slope.score


@final
class AffineObjective(AbstractObjective):
    r""":math:`\max_{b_0, b_1} \ell(b_0 + b_1 F)`, by Newton's method.

    For a Gaussian response one step is exact. The derivative follows from the envelope
    theorem: :math:`b_1` times the score.

    Two suprema are not attained, and weak penalties keep away from them. Where means are
    bounded, separated data drive :math:`b_1` to infinity: the variance of :math:`b_1 F` is
    penalised. And a :math:`g` used on ever smaller a range becomes a straight line or a
    parabola, with a column that is constant to rounding: its flatness
    :math:`\overline{F^2} / \mathrm{var}\, F` is penalised.

    Parameters
    ----------
    likelihood
        Of the response.
    intercept
        Best :math:`b_0` without the feature.
    penalised
        Whether to add the penalties, as is right during maximisation.
    """

    def __init__(
        self, likelihood: AbstractPredictorLikelihood, intercept: float, *, penalised: bool = True
    ) -> None:
        self._likelihood = likelihood
        self._share = likelihood.total / np.sum(likelihood.total)
        self._null = (float(intercept), 0.0)
        start = likelihood.at(np.full(likelihood.total.size, float(intercept)))
        self.null_value = start.value
        unbounded = likelihood.family.mean_interval == (-np.inf, np.inf)
        information = float(np.sum(start.information)) / float(np.sum(likelihood.total))
        self._ridge = 0.0 if unbounded or not penalised else _RIDGE * information
        self._flatness = _FLATNESS if penalised else 0.0
        self._last = self._null

    def value(self, column: Column) -> tuple[float, Column]:
        with np.errstate(all="ignore"):
            standard, scale = self._standardise(column)
            if not scale > 0.0:
                return (-np.inf if scale != 0.0 else self.null_value), np.zeros_like(column)
            # Start where the last column ended, unless that is worse than the null model.
            known = self._at(self._last, standard)
            start = self._null if not known[0] > self.null_value else self._last
            value, b, score = self._maximize(start, standard)
            self._last = b
            bar = (b[1] / scale) * (score - self._ridge * b[1] * self._share * standard)
            ratio = column / scale
            flatness = float(np.sum(self._share * ratio * ratio))
            pull = 2.0 * self._flatness * self._share / scale
            bar -= pull * (ratio - flatness * standard)
        return value - self._flatness * flatness, bar

    def _standardise(self, column: Column) -> tuple[Column, float]:
        """The column about its mean in units of its spread; spread 0 if constant, NaN if unfit."""
        largest = float(np.max(np.abs(column)))
        if not largest < np.inf:
            return column, np.nan
        centred = column - float(np.sum(self._share * column))
        spread = largest * float(np.sqrt(np.sum(self._share * (centred / largest) ** 2)))
        if not spread > _FLAT * largest:
            return column, 0.0
        return centred / spread, spread

    def _at(self, b: tuple[float, float], standard: Column) -> tuple[float, Column, Column]:
        slope = self._likelihood.at(b[0] + b[1] * standard)
        penalty = 0.5 * self._ridge * b[1] * b[1]
        return slope.value - penalty, slope.score, slope.information

    def _maximize(
        self, b: tuple[float, float], standard: Column
    ) -> tuple[float, tuple[float, float], Column]:
        value, score, information = self._at(b, standard)
        for _ in range(_MOST_STEPS):
            g0 = float(np.sum(score))
            g1 = float(np.sum(score * standard)) - self._ridge * b[1]
            step = self._newton_step(g0, g1, standard, information)
            expected_gain = step[0] * g0 + step[1] * g1
            fraction = 1.0
            while fraction > 1e-9:
                moved = b[0] + fraction * step[0], b[1] + fraction * step[1]
                new = self._at(moved, standard)
                if new[0] >= value - 1e-13 * (1.0 + abs(value)):
                    break
                fraction *= 0.5
            else:
                break
            b, (value, score, information) = moved, new
            if not expected_gain > _REMAINDER * (1.0 + abs(value)):
                break
        return value, b, score

    def _newton_step(
        self, g0: float, g1: float, standard: Column, information: Column
    ) -> tuple[float, float]:
        weighted = information * standard
        h00, h01 = float(np.sum(information)), float(np.sum(weighted))
        h11 = float(np.sum(weighted * standard)) + self._ridge
        determinant = h00 * h11 - h01 * h01
        if not determinant > 1e-14 * h00 * h11:
            return g0 / h00, 0.0
        return (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
