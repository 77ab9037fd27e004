"""What families of survival times have in common: the times, who was censored, who entered late."""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, IntArray, Mask
from dbrm.errors import InvalidDataError
from dbrm.evidence.families.base import JointFamily
from dbrm.evidence.observations import Observations

__all__ = ["SurvivalFamily", "SurvivalTimes"]


class SurvivalFamily(JointFamily):
    """A family of times until an event, which may be censored or truncated from the left."""

    default_link = "identity"
    mean_interval = (-np.inf, np.inf)
    support = (0.0, np.inf)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SurvivalTimes:
    """Checked times: each row is observed from `entry` to `time`, where `event` is seen or not.

    `stratum` numbers the strata from zero.
    """

    time: Column
    event: Mask
    entry: Column
    stratum: IntArray
    weights: Column

    @property
    def n_events(self) -> float:
        """Number of events, weights counted."""
        return float(self.weights @ self.event)

    @classmethod
    def of(cls, observations: Observations, family: str) -> "SurvivalTimes":
        """Read the times; raise `InvalidDataError` where they are none."""
        time = np.asarray(observations.response, dtype=np.float64)
        n = time.size
        _refuse(time, ~(time > 0.0), "times must be positive", "y")
        event = np.ones(n) if observations.event is None else np.asarray(observations.event)
        coded = " (are 1 and 2 its codes, as in R? pass event=event - 1)"
        what = "event must be 0 (censored) or 1 (seen)"
        what += coded if set(np.unique(event)) == {1.0, 2.0} else ""
        _refuse(event, (event != 0) & (event != 1), what)
        entry = np.zeros(n) if observations.entry is None else np.asarray(observations.entry)
        _refuse(entry, entry < 0, "entry must not be negative", "entry")
        _refuse(entry, entry >= time, "entry must be before the time", "entry")
        weights = np.ones(n) if observations.weights is None else observations.weights
        strata = np.zeros(n) if observations.strata is None else observations.strata
        stratum = np.unique(strata, return_inverse=True)[1].astype(np.int64)
        if not np.any((event == 1) & (weights > 0)):
            msg = (
                f"family={family!r} needs at least one event; event is 0 (censored) in every row "
                "that counts. Is 1 the code for censored rows? Then pass event=1 - event."
            )
            raise InvalidDataError(msg)
        return cls(time, event == 1, entry, stratum, np.asarray(weights, dtype=np.float64))


def _refuse(values: Column, bad: Mask, what: str, name: str = "event") -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        msg = (
            f"Survival {what}; got {name}[{rows[0]}]={float(values[rows[0]])!r}"
            f"{f' and {rows.size - 1} more such rows' if rows.size > 1 else ''} "
            "(rows count from 0)."
        )
        raise InvalidDataError(msg)
