r"""The predictive distribution of survival times, mixed over models.

Within a model the log cumulative hazard :math:`\log\Lambda(t | x)` of a new row is normal
(`dbrm.posterior.hazard`), so that

.. math:: S(t | x) = \sum_M p(M | y) \int e^{-e^z} N(z; \mu_M(t), s_M^2(t))\, dz .
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.posterior.hazard import AbstractHazards, Predictor
from dbrm.posterior.mixture import StudentMixture

__all__ = ["SurvivalMixture"]

# Nodes and weights of a rule for normal integrals.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Halvings that find a quantile of log time; where it is looked for, in units of log time.
_HALVINGS, _REACH = 60, 40.0


@final
@dataclass(frozen=True, eq=False)
class SurvivalMixture:
    """Models by rows: weights, locations and variances of the linear predictor.

    Parameters
    ----------
    designs
        Columns of each model at the rows.
    stratum
        Number of the stratum of each row; ``None`` if they are not known.
    integrate
        Whether to integrate over the parameters or to use their mode.
    """

    hazards: AbstractHazards
    weights: Matrix
    locations: Matrix
    variances: Matrix
    designs: Sequence[Matrix]
    stratum: IntArray | None
    integrate: bool
    predicts_time: bool

    def point(self) -> Column:
        """What is predicted: the log hazard ratio under Cox's model, else the median time."""
        return self.quantile(0.5) if self.predicts_time else self.mean()

    def mean(self) -> Column:
        """Averaged linear predictor: a log hazard ratio under Cox's model, else a log time."""
        return np.asarray(np.einsum("mn,mn->n", self.weights, self.locations))

    def standard_deviation(self) -> Column:
        """Standard deviation of the linear predictor, over models and coefficients."""
        mean = self.mean()
        second = np.einsum("mn,mn->n", self.weights, self.variances + self.locations**2)
        return np.asarray(np.sqrt(np.maximum(second - mean**2, 0.0)))

    def _log_hazards(self, log_time: Column) -> tuple[Matrix, Matrix]:
        """Location and standard deviation of the log cumulative hazard, models by rows."""
        if self.stratum is None:
            msg = (
                "The model has strata, each with a baseline hazard of its own: pass strata=, one "
                "label for each row."
            )
            raise InvalidSettingError(msg)
        locations, variances = np.empty((2, *self.weights.shape))
        for model, design in enumerate(self.designs):
            own = Predictor(self.locations[model], self.variances[model], design, self.stratum)
            locations[model], variances[model] = self.hazards.at(model, log_time, own)
        return locations, np.sqrt(variances) if self.integrate else np.zeros_like(variances)

    def _survival(self, log_time: Column) -> Column:
        """Probability of each row to survive its own time."""
        locations, scales = self._log_hazards(log_time)
        total = np.zeros(log_time.size)
        with np.errstate(over="ignore"):
            for node, weight in zip(_NODES, _WEIGHTS, strict=True):
                chance = np.exp(-np.exp(locations + node * scales))
                total += weight * np.einsum("mn,mn->n", self.weights, chance)
        return np.clip(total, 0.0, 1.0)

    def curve(self, time: float, level: float) -> tuple[Column, Column, Column]:
        """Survival of all rows at one time, with the ends of a credible interval."""
        n = self.weights.shape[1]
        if time <= 0.0:
            return np.ones(n), np.ones(n), np.ones(n)
        log_time = np.full(n, np.log(time))
        locations, scales = self._log_hazards(log_time)
        finite = np.maximum(locations, -700.0)
        mixture = StudentMixture(
            self.weights, finite, np.maximum(scales, 1e-12), np.full(len(finite), np.inf)
        )
        ends = [mixture.quantile(end) for end in (0.5 + level / 2, 0.5 - level / 2)]
        with np.errstate(over="ignore"):
            lower, upper = (np.exp(-np.exp(end)) for end in ends)
        return self._survival(log_time), lower, upper

    def cdf(self, value: Column) -> Column:
        """Probability that the time of each row is at most its `value`."""
        late = np.asarray(value) > 0
        log_time = np.log(np.where(late, value, 1.0))
        return np.where(late, 1.0 - self._survival(log_time), 0.0)

    def quantile(self, level: float) -> Column:
        """Time that each row survives with probability ``1 - level``; infinite beyond the data."""
        times = None if self.stratum is None else self.hazards.candidates(0)
        return self._smooth_quantile(level) if times is None else self._step_quantile(level)

    def _smooth_quantile(self, level: float) -> Column:
        middle = np.einsum("mn,mn->n", self.weights, self.locations)
        low, high = middle - _REACH, middle + _REACH
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            late = self._survival(middle) <= 1.0 - level
            low, high = np.where(late, low, middle), np.where(late, middle, high)
        return np.where(np.isnan(self.weights[0]), np.nan, np.exp(0.5 * (low + high)))

    def _step_quantile(self, level: float) -> Column:
        """The first event time at which survival is no larger."""
        assert self.stratum is not None
        out = np.full(self.stratum.size, np.inf)
        times = [self.hazards.candidates(int(s)) for s in range(int(self.stratum.max()) + 1)]
        last = np.array([own.size if own is not None else 0 for own in times])[self.stratum]
        low, high = np.full(out.size, -1), last
        while np.any(high - low > 1):
            middle = np.minimum((low + high) // 2, last - 1)
            own = np.array([times[s][k] for s, k in zip(self.stratum, middle, strict=True)])
            late = self._survival(np.log(own)) <= 1.0 - level
            active = high - low > 1
            high = np.where(active & late, middle, high)
            low = np.where(active & ~late, middle, low)
        for row in np.flatnonzero(high < last):
            out[row] = times[self.stratum[row]][high[row]]
        return np.where(np.isnan(self.weights[0]), np.nan, out)

    def sample(self, rng: np.random.Generator, draws: int) -> Matrix:
        """Draws of the time, one row per draw; infinite beyond the data."""
        levels = np.linspace(0.0, 1.0, 202)[1:-1]
        grid = np.array([self.quantile(float(level)) for level in levels])
        return _interpolate(levels, grid, rng.random((draws, self.weights.shape[1])))


def _interpolate(levels: FloatArray, grid: Matrix, uniform: Matrix) -> Matrix:
    """Quantiles between those on a grid; steps between infinite ones."""
    place = np.clip(np.searchsorted(levels, uniform) - 1, 0, levels.size - 2)
    share = np.clip((uniform - levels[place]) / (levels[1] - levels[0]), 0.0, 1.0)
    rows = np.arange(grid.shape[1])
    low, high = grid[place, rows], grid[place + 1, rows]
    with np.errstate(invalid="ignore"):
        between = low + share * (high - low)
    return np.where(np.isfinite(low) & np.isfinite(high), between, high)
