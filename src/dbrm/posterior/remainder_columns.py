r"""The columns of a remainder: every covariate, straight and bent, and products of them.

A covariate bends at a few quantiles: :math:`\max(0, x - c)` for each knot :math:`c`, so that its
effect is a broken line, with changes of slope that are alike before the data. Products are those of
columns about their means, :math:`(x - \bar x)(z - \bar z)`, so that they are free of the straight
effects of both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import log
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.data import ColumnRule, Recipe, Table
from dbrm.features import Feature, covariate, get_transform, modify, multiply

__all__ = ["Covariates", "RemainderColumns"]

# Knots of a covariate, and values that it must have.
_KNOTS, _FEWEST_VALUES = 6, 5
# Prior means of the log variances of bends and products, those of straight effects being zero.
_BENDS, _PRODUCTS = -1.2, -1.7
# A column further from zero than this, in its standard deviations, is in no product.
_FARTHEST = 1_000.0
# Fewest effective rows of a product of two columns of numbers; of few rows this share of them. A
# product of two normal columns has a ninth.
_HANDFUL, _SHARE = 16.0, 1 / 16


@final
@dataclass(frozen=True, slots=True, eq=False)
class RemainderColumns:
    """Columns in groups of effects that are alike before the data.

    Parameters
    ----------
    features
        In terms of which predictions are spelt.
    values
        The columns, :math:`Z = F C + c` with the values :math:`F` of the features.
    change, constants
        :math:`C` and :math:`c`.
    units
        Of the columns. To begin with the squares of a group's columns, in these units, add up to
        a variance of one.
    groups, centre
        Group of each column, and the prior mean of the log variance of each group.
    owner
        Covariate of the user's table that each column belongs to; -1 for products.
    levels
        Positions of the columns of levels of which every row has one, for each such covariate.
    """

    features: tuple[Feature, ...]
    values: Matrix
    change: Matrix
    constants: FloatArray
    units: FloatArray
    groups: IntArray
    centre: FloatArray
    owner: IntArray
    levels: tuple[IntArray, ...] = ()

    def with_variances(self, log_variances: FloatArray) -> "RemainderColumns":
        """In units in which all effects have the same variance, given those of the groups."""
        return replace(self, units=self.units / np.exp(0.5 * log_variances)[self.groups])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Covariate:
    """The columns of one covariate of the user's table.

    Parameters
    ----------
    straight
        Positions of its columns.
    alike
        Whether their effects are alike as they are, those of levels; otherwise in units of their
        standard deviations.
    doubled
        Position of a long-tailed column that is there on the log scale, too; otherwise -1.
    complete
        Positions of columns of levels of which every row has one; empty if there are none.
    """

    straight: IntArray
    alike: bool
    doubled: int
    complete: IntArray

    def columns(self, *, logs: bool) -> IntArray:
        """Its columns, with the logarithm alone where it is there on both scales."""
        return self.straight[self.straight != self.doubled] if logs else self.straight


@final
@dataclass(frozen=True, eq=False)
class Covariates:
    """The covariates of the user's table, with what a remainder can contain of each."""

    table: Table
    parts: tuple[_Covariate, ...]

    @classmethod
    def of(cls, table: Table, recipe: Recipe) -> "Covariates":
        """Those of which the table has columns."""
        place = {name: j for j, name in enumerate(table.names)}
        parts = []
        for rule in recipe.columns:
            own = np.array([place[name] for name in rule.outputs if name in place], dtype=np.int64)
            both = rule.log_scale is not None and {rule.name, rule.log_column} <= place.keys()
            doubled = place[rule.name] if both else -1
            if own.size:
                is_levels = rule.kind == "categorical"
                complete = _complete(table, rule, place) if is_levels else own[:0]
                parts.append(_Covariate(own, is_levels, doubled, complete))
        return cls(table, tuple(parts))

    @cached_property
    def has_logs(self) -> bool:
        """Whether some column is there on the log scale, too."""
        return any(part.doubled >= 0 for part in self.parts)

    @cached_property
    def _centred(self) -> tuple[FloatArray, FloatArray]:
        values = self.table.values
        return values.mean(axis=0), values.std(axis=0)

    @cached_property
    def _knots(self) -> list[FloatArray]:
        return [_knots(column) for column in self.table.values.T]

    def columns(
        self, *, bends: bool, logs: bool, pairs: Sequence[tuple[int, int]] = ()
    ) -> RemainderColumns:
        """Straight effects, perhaps with bends, with logarithms alone, with products of pairs."""
        straight = [part.columns(logs=logs) for part in self.parts]
        used = np.concatenate(straight)
        names = self.table.names
        features: list[Feature] = [covariate(names[j]) for j in used]
        groups = [_Group(self.table.values[:, own], owner) for owner, own in enumerate(straight)]
        groups = [
            group if part.alike else group.standardised()
            for group, part in zip(groups, self.parts, strict=True)
        ]
        if bends:
            for owner, own in enumerate(straight):
                found = [(j, self._knots[j]) for j in own if self._knots[j].size]
                if found:
                    features += list(_bent_features(names, found))
                    groups.append(_bent(self.table.values, found, owner))
        n_own = len(features)
        products = [self._product_columns(i, j) for i, j in pairs]
        left, right = (np.concatenate([[], *side]).astype(np.int64) for side in _sides(products))
        features += [
            multiply(covariate(names[j]), covariate(names[k]))
            for j, k in zip(left, right, strict=True)
        ]
        change = np.eye(len(features))
        constants = np.zeros(len(features))
        if left.size:
            means, _ = self._centred
            position = np.zeros(len(names), dtype=np.int64)
            position[used] = np.arange(used.size)
            places = n_own + np.arange(left.size)
            change[position[left], places] -= means[right]
            change[position[right], places] -= means[left]
            constants[places] = means[left] * means[right]
            groups.append(self._products(products))
        count = len(self.parts)
        place_of = {int(j): place for place, j in enumerate(used)}
        levels = [[place_of[int(j)] for j in part.complete] for part in self.parts]
        return RemainderColumns(
            features=tuple(features),
            values=np.hstack([group.values for group in groups]),
            change=change,
            constants=constants,
            units=np.concatenate([group.units for group in groups]),
            groups=np.repeat(np.arange(len(groups)), [group.units.size for group in groups]),
            centre=np.array(
                [group.centre - (0.0 if group.owner < 0 else log(count)) for group in groups]
            ),
            owner=np.repeat(
                [group.owner for group in groups], [group.units.size for group in groups]
            ),
            levels=tuple(np.array(own) for own in levels if own),
        )

    def strongest_pairs(self, strength: FloatArray, most: int) -> list[tuple[int, int]]:
        """Pairs of covariates with the largest products of these strengths.

        As many as have, together, no more than so many products of columns.
        """
        sizes = [self._for_products(part).size for part in self.parts]
        pairs = [(i, j) for i, j in combinations(range(len(self.parts)), 2) if sizes[i] * sizes[j]]
        pairs.sort(key=lambda pair: -strength[pair[0]] * strength[pair[1]])
        found, left = [], most
        for i, j in pairs:
            if sizes[i] * sizes[j] <= left:
                found.append((i, j))
                left -= sizes[i] * sizes[j]
        return found

    def _for_products(self, part: _Covariate) -> IntArray:
        means, sds = self._centred
        own = part.columns(logs=True)
        return own[np.abs(means[own]) <= _FARTHEST * sds[own]]

    def _product_columns(self, i: int, j: int) -> tuple[IntArray, IntArray]:
        """Pairs of columns of two covariates whose products vary, and not in a few rows only."""
        left, right = (self._for_products(self.parts[k]) for k in (i, j))
        left, right = np.repeat(left, right.size), np.tile(right, left.size)
        means, sds = self._centred
        values = (self.table.values - means) / sds
        products = values[:, left] * values[:, right]
        kept = np.ptp(self.table.values[:, left] * self.table.values[:, right], axis=0) > 0.0
        if not (self.parts[i].alike or self.parts[j].alike):
            squares = (products - products.mean(axis=0)) ** 2
            least = min(_HANDFUL, _SHARE * len(squares))
            kept &= squares.sum(axis=0) ** 2 >= least * (squares**2).sum(axis=0)
        return left[kept], right[kept]

    def _products(self, products: Sequence[tuple[IntArray, IntArray]]) -> "_Group":
        """Products of columns about their means; those of each two covariates vary alike.

        Among these, products of levels are alike as they are, others in units of their factors.
        """
        means, sds = self._centred
        unit = sds.copy()
        for part in self.parts:
            if part.alike:
                unit[part.straight] = 1.0
        values = (self.table.values - means) / unit
        columns, scales = [], []
        for left, right in products:
            own = values[:, left] * values[:, right]
            size = np.sqrt(own.var(axis=0).sum())
            columns.append(own * unit[left] * unit[right])
            scales.append(unit[left] * unit[right] * size)
        return _Group(np.hstack(columns), -1, _PRODUCTS, np.concatenate(scales))


def _complete(table: Table, rule: ColumnRule, place: Mapping[str, int]) -> IntArray:
    """Positions of the columns of levels of which every row has one.

    Those of levels, with the one that rare levels share; or, if that one is not there, those of
    single levels. Empty if neither are complete.
    """
    single = set(rule.own_columns)
    for names in (set(rule.outputs) - single, set(rule.outputs) - {f"{rule.name}[{rule.pool}]"}):
        own = np.array(sorted(place[name] for name in names & place.keys()), dtype=np.int64)
        if own.size and np.all(table.values[:, own].sum(axis=1) == 1.0):
            return own
    return np.empty(0, dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Columns whose effects are alike in their units; prior mean of their log variance."""

    values: Matrix
    owner: int
    centre: float = 0.0
    scale: FloatArray | None = None

    def standardised(self) -> "_Group":
        """In units of the standard deviations of the columns."""
        return replace(self, scale=self.values.std(axis=0))

    @property
    def units(self) -> FloatArray:
        """Units in which the variances of the columns add up to one."""
        own = np.ones(self.values.shape[1]) if self.scale is None else self.scale
        return np.asarray(own * np.sqrt(np.sum((self.values / own).var(axis=0))))


def _sides(
    products: Sequence[tuple[IntArray, IntArray]],
) -> tuple[list[IntArray], list[IntArray]]:
    return [left for left, _ in products], [right for _, right in products]


def _bent(values: Matrix, found: Sequence[tuple[int, FloatArray]], owner: int) -> _Group:
    """The bends of a covariate; those of each of its columns vary alike."""
    parts = [np.maximum(values[:, [j]] - knots, 0.0) for j, knots in found]
    scale = [np.full(part.shape[1], np.sqrt(part.var(axis=0).sum())) for part in parts]
    return _Group(np.hstack(parts), owner, _BENDS, np.concatenate(scale))


def _bent_features(
    names: Sequence[str], found: Sequence[tuple[int, FloatArray]]
) -> Iterator[Feature]:
    hinge = get_transform("hinge")
    for j, knots in found:
        for knot in knots.tolist():
            yield modify(hinge, covariate(names[j]), knot)


def _knots(column: Column) -> FloatArray:
    """Values at equally spaced quantiles, inside the range; none for a column of few values."""
    values = np.unique(column)
    if values.size < _FEWEST_VALUES:
        return np.empty(0)
    levels = np.arange(1, _KNOTS + 1) / (_KNOTS + 1)
    knots = np.unique(np.quantile(column, levels, method="closest_observation"))
    kept: Mask = (knots > values[0]) & (knots < values[-1])
    return np.asarray(knots[kept])
