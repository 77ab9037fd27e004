"""Where predictions extrapolate: new rows outside the training range of features or columns.

It sees the averaged models, the range of each of their features in training, and new rows.
"""

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from dbrm._typing import Column, Mask, Masks
from dbrm.data import Table
from dbrm.errors import DBRMWarning
from dbrm.features import covariate, evaluate
from dbrm.posterior.limits import FAR, outside_by
from dbrm.posterior.prediction import AveragedModels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Guard", "RangeCheck"]

# Share of the training range by which a value may exceed its ends, for rounding.
_SLACK = 1e-9


@final
class Guard:
    """Compares features at new rows with their training ranges."""

    def __init__(self, averaged: AveragedModels, training: Table) -> None:
        self._averaged = averaged
        self._features = (*averaged.always, *averaged.features)
        columns = evaluate(self._features, training)[0]
        lowest, highest = columns.min(axis=0), columns.max(axis=0)
        slack = _SLACK * (highest - lowest)
        self._low, self._high = lowest - slack, highest + slack

    def report(self, table: Table) -> "pd.DataFrame":
        """One row per row of the table: `dbrm.Posterior.extrapolation`."""
        import pandas as pd

        columns = evaluate(self._features, table)[0]
        undefined = ~np.isfinite(columns)
        outside = undefined | (columns < self._low) | (columns > self._high)
        return pd.DataFrame(
            {
                "dropped_mass": self._averaged.dropped_mass(table),
                "outside_mass": self._share(outside),
                "features": self._names(outside),
            }
        )

    def _share(self, hit: Masks) -> Column:
        """Posterior share of the models with a feature that is hit, by row."""
        averaged = self._averaged
        n_always = len(averaged.always)
        everywhere: Mask = np.asarray(hit[:, :n_always].any(axis=1))
        # Added up in the same order, so that all of the mass is one to the last bit.
        total, everything = np.zeros(len(hit)), 0.0
        for members, probability in zip(averaged.models, averaged.probability, strict=True):
            total += probability * (everywhere | hit[:, n_always + members].any(axis=1))
            everything += float(probability)
        return total / everything

    def _names(self, outside: Masks) -> list[tuple[str, ...]]:
        """Features that leave their range, by row, those that carry most mass first."""
        order = self._by_mass()
        names = [str(self._features[j]) for j in order]
        return [tuple(names[place] for place in np.flatnonzero(row)) for row in outside[:, order]]

    def _by_mass(self) -> Sequence[int]:
        averaged = self._averaged
        n_always = len(averaged.always)
        mass = np.full(len(self._features), 1.0)
        mass[n_always:] = 0.0
        for members, probability in zip(averaged.models, averaged.probability, strict=True):
            mass[n_always + members] += probability
        return [int(j) for j in np.argsort(-mass, kind="stable")]


@final
class RangeCheck:
    """Collects columns of new rows that are far outside their training range, and warns once.

    They count where most of the posterior probability is on models that use them.
    """

    def __init__(self, averaged: AveragedModels) -> None:
        self._averaged = averaged
        self._columns: dict[str, None] = {}
        self._n_outside = 0
        self._n_rows = 0

    def look(self, table: Table) -> None:
        """Compare the next rows."""
        if not self._averaged.hold:
            return
        self._n_rows += table.n_rows
        found = [(name, out) for name in self._used if (out := self._outside(name, table)).any()]
        if not found:
            return
        names = [name for name, _ in found]
        # Few different patterns of columns among many rows.
        patterns, which = np.unique(
            np.column_stack([out for _, out in found]), axis=0, return_inverse=True
        )
        uses = np.array([[name in model for name in names] for model in self._models])
        probability = self._averaged.probability
        for number, pattern in enumerate(patterns):
            if probability @ uses[:, pattern].any(axis=1) > 0.5 * probability.sum():
                self._n_outside += int(np.sum(which == number))
                self._columns |= dict.fromkeys(np.array(names)[pattern].tolist())

    def warn(self) -> None:
        """Warn if there is a reason."""
        if not self._columns:
            return
        listed = ", ".join(repr(name) for name in self._columns)
        msg = (
            f"{self._n_outside} of {self._n_rows} rows are far outside the training range of "
            f"{listed}, and most of the posterior probability is on models with them. They are "
            "predicted as rows at the edge of that range, but by linear models linearly. "
            "See Posterior.extrapolation(X); extrapolate='follow' follows the formulas."
        )
        # Through the generator of blocks and the method that was called.
        warnings.warn(msg, DBRMWarning, stacklevel=4)

    def _outside(self, name: str, table: Table) -> Mask:
        limits = self._averaged.ranges[covariate(name).text]
        return np.asarray(outside_by(limits, table.column(name)) > FAR)

    @cached_property
    def _models(self) -> list[set[str]]:
        """Columns that each model uses."""
        averaged = self._averaged
        always = {name for feature in averaged.always for name in feature.covariates}
        parts = [feature.covariates for feature in averaged.features]
        return [always.union(*(parts[j] for j in members)) for members in averaged.models]

    @property
    def _used(self) -> list[str]:
        return sorted(set().union(*self._models))
