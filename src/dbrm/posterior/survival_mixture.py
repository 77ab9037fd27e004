r"""The predictive distribution of survival times, mixed over models.

Within a model the log cumulative hazard :math:`\log\Lambda(t | x)` of a new row is normal
(`dbrm.posterior.hazard`), so that

.. math:: S(t | x) = \sum_M p(M | y) \int e^{-e^z} N(z; \mu_M(t), s_M^2(t))\, dz .
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.posterior.hazard import (
    AbstractHazards,
    CoxHazards,
    Predictor,
    Predictors,
    WeibullHazards,
)
from dbrm.posterior.mixture import StudentMixture

__all__ = ["NORMAL_NODES", "NORMAL_WEIGHTS", "SurvivalMixture"]

# Nodes and weights of a rule for normal integrals.
NORMAL_NODES, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
NORMAL_WEIGHTS = NORMAL_WEIGHTS / NORMAL_WEIGHTS.sum()
# Halvings that find a quantile of log time; where it is looked for, in units of log time.
_HALVINGS, _REACH = 45, 40.0


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

    @property
    def predicts_time(self) -> bool:
        """Whether the linear predictor is a log time; otherwise it is a log hazard ratio."""
        return isinstance(self.hazards, WeibullHazards)

    def point(self) -> Column:
        """What is predicted: the log hazard ratio under Cox's model, else the median time."""
        return self.quantile(0.5) if self.predicts_time else self.mean()

    def mean(self) -> Column:
        """Averaged linear predictor: a log hazard ratio under Cox's model, else a log time."""
        return np.asarray(np.einsum("mn,mn->n", self.weights, self.locations))

    def risk(self) -> Column:
        """Averaged linear predictor, signed so that higher is earlier."""
        return -self.mean() if self.predicts_time else self.mean()

    def standard_deviation(self) -> Column:
        """Standard deviation of the linear predictor, over models and coefficients."""
        mean = self.mean()
        second = np.einsum("mn,mn->n", self.weights, self.variances + self.locations**2)
        return np.asarray(np.sqrt(np.maximum(second - mean**2, 0.0)))

    @property
    def _known_stratum(self) -> IntArray:
        if self.stratum is None:
            msg = (
                "The model has strata, each with a baseline hazard of its own: pass strata=, one "
                "label for each row."
            )
            raise InvalidSettingError(msg)
        return self.stratum

    def _log_hazards(self, log_time: Column) -> tuple[Matrix, Matrix]:
        """Location and standard deviation of the log cumulative hazard, models by rows."""
        every = Predictors(self.locations, self.variances, self.designs, self._known_stratum)
        locations, variances = self.hazards.of_all(log_time, every)
        return locations, np.sqrt(variances) if self.integrate else np.zeros_like(variances)

    def _survival(self, log_time: Column) -> Column:
        """Probability of each row to survive its own time."""
        return self._average(*self._log_hazards(log_time))

    def _average(self, locations: Matrix, scales: Matrix) -> Column:
        """Probability to survive, by the log cumulative hazards: models by rows."""
        total = np.zeros(locations.shape[1])
        with np.errstate(over="ignore"):
            for node, weight in zip(NORMAL_NODES, NORMAL_WEIGHTS, strict=True):
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
        return self._average(locations, scales), lower, upper

    def cdf(self, value: Column) -> Column:
        """Probability that the time of each row is at most its `value`."""
        late = np.asarray(value) > 0
        log_time = np.log(np.where(late, value, 1.0))
        return np.where(late, 1.0 - self._survival(log_time), 0.0)

    def quantile(self, level: float) -> Column:
        """Time that each row survives with probability ``1 - level``; infinite beyond the data."""
        steps = self._steps
        if steps is None:
            found = self._smooth_quantile(level)
        else:
            found = steps.search(lambda times: self._survival(np.log(times)) <= 1.0 - level)
        return np.where(np.isnan(self.weights[0]), np.nan, found)

    @cached_property
    def _steps(self) -> "_Steps | None":
        """The times at which survival falls; ``None`` if it always does."""
        if not isinstance(self.hazards, CoxHazards):
            return None
        return _Steps(self.hazards.times, self.hazards.strata, self._known_stratum)

    def _smooth_quantile(self, level: float) -> Column:
        middle = np.einsum("mn,mn->n", self.weights, self.locations)
        low, high = middle - _REACH, middle + _REACH
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            late = self._survival(middle) <= 1.0 - level
            low, high = np.where(late, low, middle), np.where(late, middle, high)
        return np.asarray(np.exp(0.5 * (low + high)))

    def sample(self, rng: np.random.Generator, draws: int) -> Matrix:
        """Draws of the time, one row per draw; infinite beyond the data."""
        n = self.weights.shape[1]
        edges = np.cumsum(self.weights, axis=0)
        out = np.full((draws, n), np.nan)
        # The same numbers whatever the models: one set of them for each draw and row.
        uniform, waiting = rng.random((draws, n)), np.log(rng.exponential(size=(draws, n)))
        normal, other = rng.standard_normal((2, draws, n))
        chosen = np.sum(uniform[None] > edges[:, None, :] / edges[-1], axis=0)
        for model in np.unique(chosen):
            draw, row = np.nonzero((chosen == model) & ~np.isnan(edges[-1]))
            if not row.size:
                continue
            own = self._predictor(int(model), row)
            noise = [values[draw, row] * self.integrate for values in (normal, other)]
            out[draw, row] = self._draw(int(model), own, waiting[draw, row], *noise)
        return out

    def _draw(
        self, model: int, own: Predictor, waiting: Column, normal: Column, other: Column
    ) -> Column:
        """Times at which log cumulative hazards with these deviations reach `waiting`."""
        if self._steps is None:
            assert isinstance(self.hazards, WeibullHazards)
            return self.hazards.invert(model, own, waiting, normal, other)

        def reached(times: Column) -> Mask:
            location, variance = self.hazards.at(model, np.log(times), own)
            return np.asarray(location + normal * np.sqrt(variance) >= waiting)

        return self._steps.of_rows(own.stratum).search(reached)

    def _predictor(self, model: int, rows: IntArray) -> Predictor:
        """The linear predictor of some rows within a model."""
        return Predictor(
            self.locations[model, rows],
            self.variances[model, rows],
            self.designs[model][rows],
            self._known_stratum[rows],
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """Event times of all strata, one after the other; their strata, and that of each row."""

    times: FloatArray
    strata: IntArray
    stratum: IntArray

    def of_rows(self, stratum: IntArray) -> "_Steps":
        """The same for other rows."""
        return _Steps(self.times, self.strata, stratum)

    def search(self, reached: Callable[[Column], Mask]) -> Column:
        """First time of each row from which on `reached` holds; infinite if there is none."""
        begin = np.searchsorted(self.strata, self.stratum, side="left")
        end = np.searchsorted(self.strata, self.stratum, side="right")
        low, high, last = begin - 1, end, self.times.size - 1
        while np.any(high - low > 1):
            middle = np.clip((low + high) // 2, begin, np.maximum(end - 1, begin))
            is_open, late = high - low > 1, reached(self.times[np.minimum(middle, last)])
            high = np.where(is_open & late, middle, high)
            low = np.where(is_open & ~late, middle, low)
        return np.where(high < end, self.times[np.minimum(high, last)], np.inf)
