r"""The cumulative hazard of new rows within each model of survival times.

Within a model :math:`\log\Lambda(t | x)` is about normal. Under Cox's model it is
:math:`\log\Lambda_0(t) + x'\beta` with Efron's baseline; its variance (Tsiatis 1981) has a part
of the coefficients and one of the baseline itself:

.. math:: (x - z(t))' V (x - z(t)) + \Lambda_0(t)^{-2} \sum_{g: t_g \le t} v_g, \qquad
    z(t) = -\frac{\partial \log\Lambda_0(t)}{\partial\beta} .

Under a Weibull model it is :math:`u = (\log t - x'\beta)/\sigma`, with the variance of a linear
function of :math:`(\beta, \log\sigma)`. Sees fitted models; not the rows to be predicted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import ModelFit
from dbrm.evidence.families.cox import CoxLikelihood

__all__ = ["AbstractHazards", "CoxHazards", "WeibullHazards", "cox_hazards"]

# Numbers of all baselines together, and the fewest event times that are kept if these are many.
_MOST_NUMBERS, _FEWEST_TIMES = 1_000_000, 100


class AbstractHazards(ABC):
    """Cumulative hazards of all averaged models."""

    @abstractmethod
    def at(
        self, model: int, log_time: Column, predictor: "Predictor"
    ) -> tuple[FloatArray, FloatArray]:
        """Location and variance of the log cumulative hazard of each row at its own time."""

    @abstractmethod
    def of_all(self, log_time: Column, predictors: "Predictors") -> tuple[Matrix, Matrix]:
        """The same of all models: models by rows."""

    @abstractmethod
    def take(self, models: Sequence[int]) -> "AbstractHazards":
        """Those of some models."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """The linear predictor of some rows within one model.

    `design` holds the columns of the model, the constant first.
    """

    location: Column
    variance: Column
    design: Matrix
    stratum: IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Predictors:
    """The linear predictors of rows within all models; see `Predictor`."""

    locations: Matrix
    variances: Matrix
    designs: Sequence[Matrix]
    stratum: IntArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class WeibullHazards(AbstractHazards):
    """Hazards by the joint fits of the models."""

    fits: Sequence[ModelFit]

    def at(
        self, model: int, log_time: Column, predictor: Predictor
    ) -> tuple[FloatArray, FloatArray]:
        joint = self.fits[model].joint
        assert joint is not None
        inverse = float(np.exp(-joint.ancillary[1]))
        u = (log_time - predictor.location) * inverse
        # Covariances of the log scale with the intercept and the coefficients.
        across = predictor.design @ np.delete(joint.covariance[1], 1)
        variance = inverse**2 * predictor.variance + 2.0 * u * inverse * across
        return u, np.maximum(variance + u**2 * joint.covariance[1, 1], 0.0)

    def of_all(self, log_time: Column, predictors: Predictors) -> tuple[Matrix, Matrix]:
        log_scale, spread, pulls = self._scales
        inverse = np.exp(-log_scale)[:, None]
        u = (log_time - predictors.locations) * inverse
        across = np.array([d @ p for d, p in zip(predictors.designs, pulls, strict=True)])
        variance = inverse**2 * predictors.variances + 2.0 * u * inverse * across
        return u, np.maximum(variance + u**2 * spread[:, None], 0.0)

    @property
    def _scales(self) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Log scale of each model, its variance, its covariances with the coefficients."""
        joints = [fit.joint for fit in self.fits if fit.joint is not None]
        return (
            np.array([joint.ancillary[1] for joint in joints]),
            np.array([joint.covariance[1, 1] for joint in joints]),
            [np.delete(joint.covariance[1], 1) for joint in joints],
        )

    def take(self, models: Sequence[int]) -> "WeibullHazards":
        return WeibullHazards([self.fits[model] for model in models])

    def invert(
        self, model: int, predictor: Predictor, waiting: Column, normal: Column, other: Column
    ) -> Column:
        """Times whose log cumulative hazard is `waiting`, of parameters drawn by these normals."""
        joint = self.fits[model].joint
        assert joint is not None
        # The log scale given the linear predictor.
        across = predictor.design @ np.delete(joint.covariance[1], 1)
        spread = np.sqrt(np.maximum(predictor.variance, np.finfo(float).tiny))
        slope = across / spread
        rest = np.sqrt(np.maximum(joint.covariance[1, 1] - slope**2, 0.0))
        log_scale = joint.ancillary[1] + slope * normal + rest * other
        log_time = predictor.location + spread * normal + np.exp(log_scale) * waiting
        return np.asarray(np.exp(log_time))


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoxHazards(AbstractHazards):
    """Baseline hazards at the event times.

    Parameters
    ----------
    times, strata
        Event times, in order within each stratum, and their strata.
    log_hazard, spread
        Log cumulative baseline hazard, and the part of its variance that is the same for all rows:
        models by times.
    pulls
        Covariances of the log baseline hazard (times) with the coefficients, intercept first, of
        each model.
    """

    times: FloatArray
    strata: IntArray
    log_hazard: Matrix
    spread: Matrix
    pulls: Sequence[Matrix]

    def at(
        self, model: int, log_time: Column, predictor: Predictor
    ) -> tuple[FloatArray, FloatArray]:
        place = self._last_before(np.exp(log_time), predictor.stratum)
        known = place >= 0
        place = np.where(known, place, 0)
        across = np.einsum("ni,ni->n", predictor.design, self.pulls[model][place])
        variance = predictor.variance + 2.0 * across + self.spread[model, place]
        location = np.where(known, self.log_hazard[model, place] + predictor.location, -np.inf)
        return location, np.where(known, np.maximum(variance, 0.0), 0.0)

    def of_all(self, log_time: Column, predictors: Predictors) -> tuple[Matrix, Matrix]:
        place = self._last_before(np.exp(log_time), predictors.stratum)
        known = place >= 0
        place = np.where(known, place, 0)
        pairs = zip(predictors.designs, self.pulls, strict=True)
        across = np.array([np.einsum("ni,ni->n", own, pull[place]) for own, pull in pairs])
        variance = predictors.variances + 2.0 * across + self.spread[:, place]
        locations = np.where(known, self.log_hazard[:, place] + predictors.locations, -np.inf)
        return locations, np.where(known, np.maximum(variance, 0.0), 0.0)

    def take(self, models: Sequence[int]) -> "CoxHazards":
        own = list(models)
        pulls = [self.pulls[model] for model in own]
        return CoxHazards(self.times, self.strata, self.log_hazard[own], self.spread[own], pulls)

    def candidates(self, stratum: int) -> FloatArray:
        """The only times at which the hazard of a stratum grows."""
        return np.asarray(self.times[self.strata == stratum])

    def _last_before(self, time: Column, stratum: IntArray) -> IntArray:
        """Position of the last event time of each row's stratum up to its time; -1 if none."""
        out = np.full(time.size, -1, dtype=np.int64)
        for number in np.unique(stratum):
            rows = stratum == number
            begin = int(np.searchsorted(self.strata, number))
            own = self.candidates(int(number))
            # A time may have been through a logarithm.
            found = np.searchsorted(own, time[rows] * (1.0 + 1e-12), side="right")
            out[rows] = np.where(found > 0, begin + found - 1, -1)
        return out


def cox_hazards(
    likelihood: CoxLikelihood,
    designs: tuple[Matrix, Matrix],
    models: Sequence[IntArray],
    fits: Sequence[ModelFit],
    offset: Column,
) -> CoxHazards:
    """Baselines of fitted models; `designs` are the constant and always-in columns, and others."""
    always, columns = designs
    n_groups = likelihood.groups.size
    sizes = sum(members.size + always.shape[1] + 2 for members in models)
    kept = _thin(likelihood.groups, max(_MOST_NUMBERS // max(sizes, 1), _FEWEST_TIMES))
    log_hazard = np.empty((len(models), kept.size))
    spread, pulls = np.empty_like(log_hazard), []
    for row, (members, fit) in enumerate(zip(models, fits, strict=True)):
        design = np.hstack([always, columns[:, members]])
        eta = design @ fit.coefficients + offset
        jumps, variances, slopes, log_unit = likelihood.at(np.zeros(0), eta[None]).baseline(
            np.ascontiguousarray(design.T)
        )
        first = np.searchsorted(likelihood.groups, likelihood.groups)
        hazard, variance, slope = (
            _cumulate(values.reshape(n_groups, -1), first)[kept]
            for values in (jumps, variances, slopes)
        )
        # The derivative of the log baseline hazard.
        slope = -slope / hazard
        covariance = fit.covariance * fit.dispersion
        log_hazard[row] = np.log(hazard[:, 0]) + log_unit[kept]
        pulls.append(slope @ covariance)
        own = np.einsum("gi,gi->g", pulls[-1], slope)
        spread[row] = variance[:, 0] / hazard[:, 0] ** 2 + own
    times = likelihood.group_times[kept]
    return CoxHazards(times, likelihood.groups[kept], log_hazard, spread, pulls)


def _thin(strata: IntArray, most: int) -> IntArray:
    """Positions of at most about so many event times, evenly from each stratum, ends included."""
    if strata.size <= most:
        return np.arange(strata.size)
    parts = []
    for number in np.unique(strata):
        own = np.flatnonzero(strata == number)
        count = max(2, int(most * own.size / strata.size))
        picked = np.linspace(0, own.size - 1, min(count, own.size)).astype(np.int64)
        parts.append(own[np.unique(picked)])
    return np.concatenate(parts)


def _cumulate(values: Matrix, first: IntArray) -> Matrix:
    """Cumulative sums within each stratum, whose first position is given for each row."""
    total = np.cumsum(values, axis=0)
    before = np.where(first[:, None] > 0, total[np.maximum(first - 1, 0)], 0.0)
    return np.asarray(total - before)
