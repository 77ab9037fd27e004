r"""The columns of a remainder: every covariate, straight and bent.

A covariate bends at a few quantiles: :math:`\max(0, x - c)` for each knot :math:`c`, so that its
effect is a broken line, with changes of slope that are alike before the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.data import Recipe, Table
from dbrm.features import Feature, covariate, get_transform, modify

__all__ = ["RemainderColumns"]

# Knots of a covariate, and values that it must have.
_KNOTS, _FEWEST_VALUES = 6, 5


@final
@dataclass(frozen=True, slots=True, eq=False)
class RemainderColumns:
    """Columns, and units in which every covariate of the user's table varies alike.

    Parameters
    ----------
    features, values, units
        Of the covariates, then of the bends.
    bent
        Which of them are bends.
    long_tailed
        Which of them belong to a column that is there on the log scale, too.
    """

    features: tuple[Feature, ...]
    values: Matrix
    units: FloatArray
    bent: Mask
    long_tailed: Mask

    @classmethod
    def of(cls, table: Table, recipe: Recipe) -> "RemainderColumns":
        """The covariates of the table and their bends."""
        hinge = get_transform("hinge")
        units = table.values.std(axis=0)
        place: Mapping[str, int] = {name: j for j, name in enumerate(table.names)}
        features: list[Feature] = [*map(covariate, table.names)]
        columns, own_units = [table.values], [units]
        owner = list(range(table.n_columns))
        doubled = {
            place[rule.name]
            for rule in recipe.columns
            if rule.log_scale is not None and {rule.name, rule.log_column} <= place.keys()
        }
        for rule in recipe.columns:
            own = [place[name] for name in rule.outputs if name in place]
            if rule.kind == "categorical":
                # The effects of all levels are alike before the data.
                units[own] = np.sqrt(np.sum(units[own] ** 2))
                continue
            units[own] *= np.sqrt(len(own))
            for j in own:
                column = table.values[:, j]
                knots = _knots(column)
                if not knots.size:
                    continue
                bends = np.maximum(column[:, None] - knots, 0.0)
                unit = np.sqrt(len(own) * np.sum(bends.var(axis=0)))
                features += [modify(hinge, features[j], knot) for knot in knots.tolist()]
                columns.append(bends)
                owner += [j] * knots.size
                own_units.append(np.full(knots.size, unit))
        values = np.hstack(columns)
        bent = np.arange(values.shape[1]) >= table.n_columns
        long_tailed = np.isin(owner, list(doubled))
        return cls(tuple(features), values, np.concatenate(own_units), bent, long_tailed)

    def kinds(self, shares: Sequence[float]) -> list["RemainderColumns"]:
        """With bends that have these shares of the variance, where there are any.

        Each with all columns, and with logarithms in place of long-tailed ones, if there are any.
        """
        found = [self._with_share(share) for share in shares if share == 0.0 or self.bent.any()]
        if not self.long_tailed.any():
            return found
        return [*found, *(columns.take(~columns.long_tailed) for columns in found)]

    def take(self, kept: Mask) -> "RemainderColumns":
        """Some of the columns."""
        return RemainderColumns(
            tuple(self.features[j] for j in np.flatnonzero(kept)),
            self.values[:, kept],
            self.units[kept],
            self.bent[kept],
            self.long_tailed[kept],
        )

    def _with_share(self, share: float) -> "RemainderColumns":
        if share == 0.0:
            return self.take(~self.bent)
        scale = np.where(self.bent, np.sqrt(share), np.sqrt(1.0 - share))
        return replace(self, units=self.units / scale)


def _knots(column: Column) -> FloatArray:
    """Values at equally spaced quantiles, inside the range; none for a column of few values."""
    values = np.unique(column)
    if values.size < _FEWEST_VALUES:
        return np.empty(0)
    levels = np.arange(1, _KNOTS + 1) / (_KNOTS + 1)
    knots = np.unique(np.quantile(column, levels, method="closest_observation"))
    return np.asarray(knots[(knots > values[0]) & (knots < values[-1])])
