"""What laws are made of: columns of simple inputs, factors, and products found on the way.

Knows nothing of the response. Columns are divided by their largest absolute value, their scale.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.groups import group_exponents
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.levels import Index, Maker, build_levels, level_sizes
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import Feature, Transform, evaluate

__all__ = ["LawColumns", "law_covariates", "law_rows"]

_MOST_ROWS, _MOST_COVARIATES = 1_000, 8
# Candidates for the inputs of a sum: beside a factor of two or three covariates, and beside less.
_MOST_INPUTS, _MOST_INPUTS_ALONE = 800, 6_000
# Products found on the log scale that have a column of their own.
_MOST_PRODUCTS = 60


def law_rows(problem: Problem) -> Index:
    """The rows on which laws are looked for: evenly thinned out if there are many."""
    n_rows = problem.table.n_rows
    return np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.int64)


def law_covariates(problem: Problem) -> list[str]:
    """Names of the covariates that laws are made of, the strongest ones if there are many."""
    strength = problem.marginal_strength()
    chosen = np.sort(np.argsort(-strength, kind="stable")[:_MOST_COVARIATES])
    return [problem.table.names[j] for j in chosen]


@final
class LawColumns:
    """Columns on the rows where laws are looked for, by position, and their features.

    Attributes
    ----------
    values, scale, sound, complexity
        The columns, their scale, whether they are finite and not zero, and that of their features.
    atoms
        For each covariate the positions of itself and its powers.
    counts, counts_short
        How many columns there are up to each complexity; where few are wanted, up to a smaller one.
    bases, logs
        The covariates that are never zero and have one sign, and their logarithms.
    signed, signed_logs
        Those that are never zero, and the logarithms of their sizes.
    groups
        Positions of the dimensionless groups of the covariates, where units are given.
    """

    def __init__(self, problem: Problem, names: list[str], rows: Index) -> None:
        self._problem = problem
        self.names = names
        transforms = problem.grammar.transforms
        sizes = level_sizes(len(names), len(transforms), 4)
        held = max(k for k in range(1, 5) if k == 1 or sum(sizes[:k]) <= _MOST_INPUTS_ALONE)
        levels = build_levels(problem.table, names, rows, transforms, held)
        self._maker = Maker(levels, names, transforms)
        room = np.full((rows.size, _MOST_PRODUCTS), np.nan)
        columns = np.hstack([*(level.columns for level in levels), room])
        with np.errstate(all="ignore"):
            size = np.max(np.abs(columns), axis=0)
            self.sound = np.isfinite(size) & (size > 0)
            self.scale = np.where(self.sound, size, 1.0)
            self.values = np.where(self.sound, columns, 0.0) / self.scale
        sizes = [level.size for level in levels]
        self.complexity = np.repeat([*range(1, held + 1), 0], [*sizes, _MOST_PRODUCTS])
        self._table, self.powers = problem.table.take(rows), Powers(transforms)
        self._products: list[Feature] = []
        self._first_product = int(sum(sizes))
        self.bases, self.logs = self._positive(len(names))
        self.signed, self.signed_logs = self._never_zero(len(names))
        self.groups = self._dimensionless()
        self.counts = [int(n) for n in np.cumsum(sizes)]
        self.counts_short = [n for n in self.counts if n <= _MOST_INPUTS]
        self.atoms = self._factors(len(names), transforms)

    def feature(self, position: int) -> Feature:
        """The feature of a column."""
        if position < self._first_product:
            return self._maker.feature(position)
        return self._products[position - self._first_product]

    def short_products(self, most: int) -> Iterator[tuple[int, ...]]:
        """Positions of the factors of products of at most so many covariates and their powers."""
        yield ()
        for size in range(1, min(most, len(self.atoms)) + 1):
            for covariates in combinations(self.atoms, size):
                yield from _one_of_each(covariates)

    def position_of(
        self, exponents: FloatArray | None, bases: Sequence[Feature] | None = None
    ) -> int | None:
        """The column of a product of powers; a new one unless it is known or there is no room.

        Of the covariates of one sign unless others are given.
        """
        bases = self.bases if bases is None else bases
        feature = None if exponents is None else self.powers.product(bases, exponents)
        if feature is None or not self._problem.grammar.admits_law(feature):
            return None
        if feature not in self._products:
            if len(self._products) == _MOST_PRODUCTS:
                return None
            column = evaluate([feature], self._table)[0][:, 0]
            size = float(np.max(np.abs(column)))
            if not 0.0 < size < np.inf:
                return None
            position = self._first_product + len(self._products)
            self.values[:, position] = column / size
            self.scale[position], self.sound[position] = size, True
            self.complexity[position] = feature.complexity
            self._products.append(feature)
        return self._first_product + self._products.index(feature)

    def _positive(self, count: int) -> tuple[list[Feature], Matrix]:
        """The covariates that are never zero and have one sign, and their logarithms."""
        one_sign = [
            j
            for j in range(count)
            if self.sound[j] and np.all(self.values[:, j] * self.values[0, j] > 0.0)
        ]
        return self._with_logs(one_sign)

    def _never_zero(self, count: int) -> tuple[list[Feature], Matrix]:
        """The covariates that are never zero, and the logarithms of their sizes."""
        return self._with_logs(
            [j for j in range(count) if self.sound[j] and np.all(self.values[:, j] != 0.0)]
        )

    def _with_logs(self, positions: list[int]) -> tuple[list[Feature], Matrix]:
        logs = np.log(np.abs(self.values[:, positions] * self.scale[positions]))
        return [self._maker.feature(j) for j in positions], logs

    def _dimensionless(self) -> list[int]:
        """Columns of the dimensionless groups of the covariates, where units are given."""
        units = self._problem.grammar.units
        if units is None or not self.bases:
            return []
        names = tuple(base.covariates[0] for base in self.bases)
        found = [self.position_of(vector) for vector in group_exponents(units, names)]
        return [position for position in found if position is not None]

    def _factors(self, count: int, transforms: Sequence[Transform]) -> list[list[int]]:
        """For each covariate the positions of itself and its powers."""
        powers = [k for k, g in enumerate(transforms) if exponent_of(g) in (-1.0, 2.0)]
        return [[j, *(count + k * count + j for k in powers)] for j in range(count)]


def _one_of_each(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    if not groups:
        yield ()
        return
    for rest in _one_of_each(groups[1:]):
        for position in groups[0]:
            yield (position, *rest)
