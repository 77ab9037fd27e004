r"""The columns of a remainder: every covariate, straight and bent.

A covariate bends at a few quantiles: :math:`\max(0, x - c)` for each knot :math:`c`, so that its
effect is a broken line, with changes of slope that are alike before the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
    """

    features: tuple[Feature, ...]
    values: Matrix
    units: FloatArray
    bent: Mask

    @classmethod
    def of(cls, table: Table, recipe: Recipe) -> "RemainderColumns":
        """The covariates of the table and their bends."""
        hinge = get_transform("hinge")
        units = table.values.std(axis=0)
        place: Mapping[str, int] = {name: j for j, name in enumerate(table.names)}
        features: list[Feature] = [*map(covariate, table.names)]
        columns, own_units = [table.values], [units]
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
                own_units.append(np.full(knots.size, unit))
        values = np.hstack(columns)
        bent = np.arange(values.shape[1]) >= table.n_columns
        return cls(tuple(features), values, np.concatenate(own_units), bent)

    @property
    def has_bends(self) -> bool:
        return bool(self.bent.any())

    def straight(self) -> "RemainderColumns":
        """Without bends."""
        kept = np.flatnonzero(~self.bent)
        features = tuple(self.features[j] for j in kept)
        return RemainderColumns(features, self.values[:, kept], self.units[kept], self.bent[kept])

    def with_share(self, share: float) -> "RemainderColumns":
        """With units in which bends have this share of the variance of a covariate."""
        if share == 0.0:
            return self.straight()
        scale = np.where(self.bent, np.sqrt(share), np.sqrt(1.0 - share))
        return RemainderColumns(self.features, self.values, self.units / scale, self.bent)


def _knots(column: Column) -> FloatArray:
    """Values at equally spaced quantiles, inside the range; none for a column of few values."""
    values = np.unique(column)
    if values.size < _FEWEST_VALUES:
        return np.empty(0)
    levels = np.arange(1, _KNOTS + 1) / (_KNOTS + 1)
    knots = np.unique(np.quantile(column, levels, method="closest_observation"))
    return np.asarray(knots[(knots > values[0]) & (knots < values[-1])])
