"""The response and everything else that is known of its rows, beside the covariates."""

from dataclasses import dataclass, fields
from typing import final

import numpy as np

from dbrm._typing import Column

__all__ = ["Observations"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """The response and what belongs to its rows; ``None`` where there is nothing special.

    Parameters
    ----------
    response
        One value per row; for binomial counts the number of successes.
    weights
        Frequency weights: a weight of two is the row twice.
    offset
        Known part of the linear predictor.
    trials
        Numbers of trials of a binomial response.
    exposure
        Observation times or areas; an offset of their logarithm under the log link.
    event
        Of survival times: one where the event was seen, zero where the time is censored.
    entry
        Of survival times: when each row came under observation.
    strata
        Of survival times: number of the group with a baseline hazard of its own.
    """

    response: Column
    weights: Column | None = None
    offset: Column | None = None
    trials: Column | None = None
    exposure: Column | None = None
    event: Column | None = None
    entry: Column | None = None
    strata: Column | None = None

    @property
    def given(self) -> dict[str, Column]:
        """What there is, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def n(self) -> float:
        """Number of observations, weights and trials counted: k trials are k rows.

        Of survival times the events count, which carry the information (Volinsky and Raftery
        2000).
        """
        each = (self.weights, self.trials, self.event)
        counts = [column for column in each if column is not None]
        return float(np.prod(counts, axis=0).sum()) if counts else float(self.response.size)
