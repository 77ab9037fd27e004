"""All simple features of a table, complexity by complexity, as columns.

Covariates, modifications and products up to a small complexity, each in canonical form
once; no projections. Features are kept as numbers that say how they were made, and become
`Feature` objects only when asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Mask, Matrix
from dbrm.data import Table
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.features import Feature, Transform, covariate, modify, multiply, standardize

__all__ = ["Index", "Level", "Maker", "Scored", "build_levels", "level_sizes"]

Index = npt.NDArray[np.int64]
# Columns of either precision.
Scored = npt.NDArray[np.floating[Any]]
_PRODUCT, _COVARIATE = -1, -2
# Columns multiplied at once, and rows that tell most columns from two-valued ones.
_AT_ONCE, _FIRST_ROWS = 256, 16


@final
@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """All features of one complexity: columns, how each was made, its largest atom.

    ``made[:, 0]`` is the transform's number, or -1 for a product, -2 for a covariate;
    ``made[:, 1:]`` are the positions of what it was made from. Positions count over all
    levels. An atom is a feature that is not a product; a product is generated once, by
    multiplying with its largest atom last. Squares of 0/1 and of plus-minus-c columns and
    functions of two-valued ones say nothing new and are left out. Features ``without_covariates``
    are neither covariates nor products of one.
    """

    columns: Matrix
    made: Index
    largest_atom: Index
    two_valued: Mask
    no_square: Mask
    without_covariates: Mask

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.made.shape[0])


def level_sizes(n_covariates: int, n_transforms: int, most: int) -> list[int]:
    """Number of canonical features of complexity 1, 2, ..., most, none of them 0/1."""
    atoms, totals = [n_covariates], [n_covariates]
    # products[c]: multisets of atoms with total complexity c, grown atom class by atom class.
    products = [1] + [0] * most
    _add_atoms(products, n_covariates, 1, most)
    for complexity in range(2, most + 1):
        atoms.append(n_transforms * totals[-1])
        _add_atoms(products, atoms[-1], complexity, most)
        totals.append(products[complexity])
    return totals


def _add_atoms(products: list[int], count: int, complexity: int, most: int) -> None:
    """Allow any multiset of `count` new atoms of this complexity in the products."""
    if count == 0:
        return
    before = products.copy()
    for total in range(complexity, most + 1):
        products[total] = sum(
            before[total - used * complexity] * comb(count + used - 1, used)
            for used in range(total // complexity + 1)
        )


def build_levels(
    table: Table,
    names: Sequence[str],
    rows: Index,
    transforms: Sequence[Transform],
    most: int,
    pause: Pause = never,
) -> list[Level]:
    """Levels of complexity 1 to `most` over these covariates, on these rows.

    When `pause` returns true, the levels that are complete are returned, at least the first.
    """
    columns = np.column_stack([table.column(name)[rows] for name in names])
    atoms = np.arange(len(names), dtype=np.int64)
    made = np.column_stack([np.full(len(names), _COVARIATE), atoms, atoms])
    without: Mask = np.zeros(len(names), dtype=np.bool_)
    levels = [Level(columns, made, atoms, *_two_valued(columns), without)]
    with np.errstate(all="ignore"):
        for complexity in range(2, most + 1):
            level = _next_level(transforms, levels, complexity, pause)
            if level is None:
                break
            levels.append(level)
    return levels


def _two_valued(columns: Matrix) -> tuple[Mask, Mask]:
    """Which columns have two values at most, and whose square is the column or constant."""
    # Most columns have more of them in their first rows.
    some = np.flatnonzero(_has_two_values(columns[:_FIRST_ROWS]))
    some = some[_has_two_values(columns[:, some])]
    two: Mask = np.zeros(columns.shape[1], dtype=np.bool_)
    two[some] = True
    low, high = columns[:, some].min(axis=0), columns[:, some].max(axis=0)
    zero_one = np.isin(low, (0.0, 1.0)) & np.isin(high, (0.0, 1.0))
    no_square: Mask = np.zeros(columns.shape[1], dtype=np.bool_)
    no_square[some] = zero_one | (low == -high)
    return two, no_square


def _has_two_values(columns: Matrix) -> Mask:
    low, high = columns.min(axis=0), columns.max(axis=0)
    return np.asarray(np.all((columns == low) | (columns == high), axis=0))


def _next_level(
    transforms: Sequence[Transform], levels: list[Level], complexity: int, pause: Pause
) -> Level | None:
    """Modifications of the level below, and products of an atom with a smaller feature.

    None if `pause` returned true before all of them were there.
    """
    below = levels[complexity - 2]
    starts = np.cumsum([0, *(level.size for level in levels)])
    inner = [
        np.arange(below.size) if g.affine else np.flatnonzero(~below.two_valued) for g in transforms
    ]
    made = [
        np.column_stack([np.full(chosen.size, number), *2 * [starts[complexity - 2] + chosen]])
        for number, chosen in enumerate(inner)
    ]
    n_atoms = sum(block.shape[0] for block in made)
    largest = [starts[-1] + np.arange(n_atoms)]
    pairs = []
    for of_atom in range(1, complexity):
        first, second = levels[of_atom - 1], levels[complexity - of_atom - 1]
        is_atom = np.flatnonzero(first.made[:, 0] != _PRODUCT)
        atom = starts[of_atom - 1] + is_atom
        fits = atom[:, None] >= second.largest_atom[None, :]
        same = atom[:, None] == second.largest_atom[None, :]
        fits &= ~same | ~first.no_square[is_atom][:, None]
        left, right = np.nonzero(fits)
        pairs.append((first.columns, is_atom[left], second.columns, right))
        positions = starts[complexity - of_atom - 1] + right
        made.append(np.column_stack([np.full(left.size, _PRODUCT), atom[left], positions]))
        largest.append(atom[left])
    # One matrix, filled bit by bit: no second copy of what may be most of the memory in use.
    columns = np.empty((len(below.columns), sum(block.shape[0] for block in made)))
    place = 0
    standard = standardize(below.columns) if any(g.base for g in transforms) else below.columns
    for transform, chosen in zip(transforms, inner, strict=True):
        if pause():
            return None
        arguments = below.columns if transform.base is None else standard
        arguments = arguments if chosen.size == below.size else arguments[:, chosen]
        # One knot per column; broadcasting does the rest.
        knots: Any = None
        if transform.quantile is not None:
            knots = np.nanquantile(arguments, transform.quantile, axis=0)
        columns[:, place : place + chosen.size] = transform(arguments, knots)
        place += chosen.size
    for one, left, other, right in pairs:
        for start in range(0, left.size, _AT_ONCE):
            if pause():
                return None
            chosen, partner = left[start : start + _AT_ONCE], right[start : start + _AT_ONCE]
            into = columns[:, place : place + chosen.size]
            np.multiply(one[:, chosen], other[:, partner], out=into)
            place += chosen.size
    whole, atoms = np.concatenate(made), np.concatenate(largest)
    before = np.concatenate([level.without_covariates for level in levels])
    # An atom of this level, or a product of two that both have none.
    without = np.arange(len(whole)) < n_atoms
    without[n_atoms:] = before[whole[n_atoms:, 1]] & before[whole[n_atoms:, 2]]
    return Level(columns, whole, atoms, *_two_valued(columns), without)


class Maker:
    """Turns positions over all levels into features."""

    def __init__(
        self, levels: list[Level], names: Sequence[str], transforms: Sequence[Transform]
    ) -> None:
        self._made = np.concatenate([level.made for level in levels])
        self._names = names
        self._transforms = transforms
        self._features: dict[int, Feature] = {}

    def feature(self, position: int) -> Feature:
        """Build the feature at a position."""
        if position not in self._features:
            kind, first, second = (int(value) for value in self._made[position])
            if kind == _COVARIATE:
                built: Feature = covariate(self._names[first])
            elif kind == _PRODUCT:
                built = multiply(self.feature(first), self.feature(second))
            else:
                built = modify(self._transforms[kind], self.feature(first))
            self._features[position] = built
        return self._features[position]
