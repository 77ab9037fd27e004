"""Where predictions extrapolate: new rows at which features leave what they were trained on.

It sees the averaged models, the range of each of their features in training, and new rows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from dbrm._typing import Column, Mask, Masks
from dbrm.data import Table
from dbrm.features import evaluate
from dbrm.posterior.prediction import AveragedModels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Guard"]

# Share of the training range by which a value may pass its ends: rounding, no more.
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
        for chosen, probability in zip(averaged.models, averaged.probability, strict=True):
            total += probability * (everywhere | hit[:, n_always + chosen].any(axis=1))
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
        for chosen, probability in zip(averaged.models, averaged.probability, strict=True):
            mass[n_always + chosen] += probability
        return [int(j) for j in np.argsort(-mass, kind="stable")]
