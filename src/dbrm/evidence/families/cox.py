"""Cox's proportional hazards: survival times whose baseline hazard is left open."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._kernels.cox import FIRST, SQUARE, TOTAL, cox_at, cox_hazard_slopes, cox_information
from dbrm._kernels.joint import weighted_products
from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.evidence.families.base import register
from dbrm.evidence.joint.likelihood import JointLikelihood, JointPoint
from dbrm.evidence.joint.survival import SurvivalFamily, SurvivalTimes
from dbrm.evidence.observations import Observations

__all__ = ["Cox", "CoxLikelihood", "CoxPoint"]

# Most terms of Efron's approximation at one time; so many equal event times are as good as more.
_MOST_TERMS = 10_000


@register
@final
@dataclass(frozen=True, slots=True)
class Cox(SurvivalFamily):
    r"""Hazards :math:`\lambda(t | x) = \lambda_0(t) e^{x'\beta}`, by the partial likelihood.

    Efron's approximation where event times are equal (Efron 1977). Each stratum has its own
    :math:`\lambda_0`. There is no intercept. A weight of two is the row twice, also among ties,
    where R's ``coxph`` averages weights instead.
    """

    name = "cox"

    @property
    def label(self) -> str:
        return "Cox survival"

    def bind(self, observations: Observations) -> "CoxLikelihood":
        return CoxLikelihood(SurvivalTimes.of(observations, self.name))

    def predictor_label(self, response: str, classes: Sequence[object] = ()) -> str:  # noqa: ARG002
        return f"log hazard ratio of {response}"


@final
class CoxLikelihood(JointLikelihood):
    """The log partial likelihood of survival times."""

    shift = np.zeros((0, 1))

    def __init__(self, times: SurvivalTimes) -> None:
        self.times = times
        self.n_rows = times.time.size
        self.n = times.n_events
        self._weights = np.ascontiguousarray(times.weights)
        live = times.weights > 0
        event = times.event & live
        self._event, self._stratum = event, times.stratum
        self._first, self._last, self.groups, self.group_times = _find_groups(times, event)
        at_risk = live & (self._last >= self._first)
        self._risk_weights: Column = np.where(at_risk, self._weights, 0.0)
        self._order, self._begins = _sort_rows(self._last, at_risk, self.groups.size)
        starts = np.searchsorted(self.groups, times.stratum)
        self._late, self._enters = _sort_rows(
            self._first, at_risk & (self._first > starts), self.groups.size
        )
        totals = np.bincount(
            self._last[event], weights=self._weights[event], minlength=self.groups.size
        )
        self._terms = np.clip(np.ceil(totals - 1e-9), 1, _MOST_TERMS).astype(np.int64)

    def start(self) -> FloatArray:
        return np.zeros(0)

    @property
    def layout(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Rows by their last group and rows that enter late by their first one."""
        return self._order, self._begins, self._late, self._enters

    def at(self, ancillary: FloatArray, eta: Matrix) -> "CoxPoint":  # noqa: ARG002
        value, risk, sums, expected, shift = cox_at(
            eta[0],
            self._risk_weights,
            self._event,
            self._stratum,
            self.groups,
            self._first,
            self._last,
            self._terms,
            *self.layout,
        )
        value = float(value) if value < np.inf else -np.inf
        score = np.where(self._event, self._weights, 0.0) - expected
        return CoxPoint(self, value, score[None], risk, sums, expected, shift)

    @property
    def event(self) -> Mask:
        """Whether the event of each row was seen."""
        return self._event


@final
@dataclass(frozen=True, eq=False)
class CoxPoint(JointPoint):
    """The log partial likelihood at one linear predictor; see `dbrm._kernels.cox`."""

    likelihood: CoxLikelihood
    value: float
    score: Matrix
    risk: Column
    sums: Matrix
    expected: Column
    log_unit: FloatArray

    @property
    def ancillary_score(self) -> FloatArray:  # type: ignore[override]
        return np.zeros(0)

    @cached_property
    def row_information(self) -> Matrix:
        return np.maximum(self.expected, np.finfo(np.float64).tiny)[None]

    def information(self, columns: Matrix) -> Matrix:
        gram = weighted_products(columns, self.expected, columns)
        seen = self.likelihood
        cox_information(columns, gram, self.risk, self.sums, seen.event, seen.groups, *seen.layout)
        return np.asarray(gram)

    def baseline(self, columns: Matrix) -> tuple[FloatArray, FloatArray, Matrix, FloatArray]:
        """Jumps of the baseline hazard at the groups, variances, slopes and the log of its unit.

        Efron's estimate; the variances are those given the coefficients, the slopes minus its
        derivatives in the coefficients of `columns`. A unit is that of each group's stratum: the
        hazard itself may be too small for a number.
        """
        seen = self.likelihood
        slopes = cox_hazard_slopes(
            columns, self.risk, self.sums, seen.event, seen.groups, *seen.layout
        )
        totals = self.sums[:, TOTAL]
        jumps, variances = self.sums[:, FIRST] / totals, self.sums[:, SQUARE] / totals**2
        return jumps, variances, slopes, -self.log_unit[seen.groups]


def _find_groups(
    times: SurvivalTimes, event: Mask
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """First and last group of each row, and stratum and time of each group."""
    first, last = np.zeros(times.time.size, dtype=np.int64), np.zeros(times.time.size, np.int64)
    strata, group_times, begin = [], [], 0
    for number in range(int(times.stratum.max()) + 1):
        rows = times.stratum == number
        found = np.unique(times.time[rows & event])
        last[rows] = begin + np.searchsorted(found, times.time[rows], side="right") - 1
        first[rows] = begin + np.searchsorted(found, times.entry[rows], side="right")
        strata.append(np.full(found.size, number, dtype=np.int64))
        group_times.append(found)
        begin += found.size
    return first, last, np.concatenate(strata), np.concatenate(group_times)


def _sort_rows(group: IntArray, wanted: Mask, n_groups: int) -> tuple[IntArray, IntArray]:
    """Rows by group, and where those of each group begin; one more beginning than needed."""
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(group[rows], kind="stable")]
    begins = np.searchsorted(group[rows], np.arange(n_groups + 2))
    return rows.astype(np.int64), begins.astype(np.int64)
