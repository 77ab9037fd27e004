"""Which latent variables belong to which row: effects bound to the training rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.errors import InvalidDataError
from dbrm.evidence.latent.base import Latent

__all__ = ["BoundEffect", "between_knots", "bind", "columns_of"]

# Positions closer than this share of their range are one: nothing could tell them apart.
_SAME = 1e-12
# Knots are at least this share of their range apart.
_APART = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundEffect:
    """An effect with its nodes.

    Parameters
    ----------
    positions
        Sorted positions of the nodes; their numbers for groups.
    index, loadings
        For each row the nodes it belongs to, and what they are multiplied by: one column, two
        for rows between knots and for a slope beside an intercept.
    levels
        Names of the groups; empty for positions and for one effect per row.
    centre, scale
        What is subtracted from the covariate of a random slope, and what it is divided by.
    """

    effect: Latent
    positions: FloatArray
    index: IntArray
    loadings: Matrix
    levels: tuple[Any, ...] = ()
    centre: float = 0.0
    scale: float = 1.0

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.positions.size)

    @property
    def per_group(self) -> int:
        """Number of nodes of each group."""
        return self.size // max(len(self.levels), 1)

    def standardise(self, covariate: npt.NDArray[Any]) -> Column:
        """The covariate of a random slope as the slopes see it."""
        return (_numbers(self.effect, self.effect.columns[1], covariate) - self.centre) / self.scale

    def multipliers(self, covariate: npt.NDArray[Any]) -> Matrix:
        """What the nodes of a group are multiplied by: one for its intercept, the covariate."""
        slope = self.standardise(covariate)
        columns = [np.ones(slope.size), slope]
        return np.column_stack(columns[2 - self.per_group :])


def columns_of(effect: Latent, index_columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    """What `bind` needs: ``None`` for one effect per row, a column, or two for slopes."""
    columns = tuple(index_columns[name] for name in effect.columns)
    if not columns:
        return None
    return columns if effect.kind == "slopes" else columns[0]


def bind(effect: Latent, values: Any, n_rows: int) -> BoundEffect:
    """Find the nodes of an effect in the training rows.

    Parameters
    ----------
    values
        The effect's column; ``None`` for one effect per row; groups and covariate for slopes.
    """
    if values is None:
        every = np.arange(n_rows)
        return BoundEffect(effect, every.astype(np.float64), every[:, None], np.ones((n_rows, 1)))
    fewest = max(2, effect.nullity + 2)
    if effect.kind == "grouped":
        levels, bound = _groups(effect, values)
        found, fewest = levels, 2
    elif effect.kind == "slopes":
        levels, bound = _slopes(effect, *values)
        found, fewest = levels, 2
    elif effect.kind == "knots":
        bound = _knots(effect, values)
        found = bound.size
    else:
        positions, index = _sort_positions(effect, values)
        bound = BoundEffect(effect, positions, index[:, None], np.ones((index.size, 1)))
        found = bound.size
    if found < fewest:
        what = "groups" if effect.kind in ("grouped", "slopes") else "positions"
        msg = (
            f"{effect.name} needs at least {fewest} different {what}; the column "
            f"{effect.column!r} has {found}. An effect over fewer cannot be told from the "
            "intercept: leave it out."
        )
        raise InvalidDataError(msg)
    return bound


def _groups(effect: Latent, values: npt.NDArray[Any]) -> tuple[int, BoundEffect]:
    levels, index = np.unique(values, return_inverse=True)
    nodes, names = np.arange(levels.size, dtype=np.float64), tuple(levels.tolist())
    return levels.size, BoundEffect(effect, nodes, index[:, None], np.ones((index.size, 1)), names)


def _slopes(
    effect: Latent, groups: npt.NDArray[Any], covariate: npt.NDArray[Any]
) -> tuple[int, BoundEffect]:
    """A node for the slope of each group, after one for its intercept where that is correlated.

    Beside an intercept the covariate is centred, which changes what the intercept is but not
    the family of models.
    """
    levels, index = np.unique(groups, return_inverse=True)
    numbers = _numbers(effect, effect.columns[1], covariate)
    scale = float(np.std(numbers))
    if not scale > _SAME * max(float(np.max(np.abs(numbers))), np.finfo(float).tiny):
        msg = (
            f"{effect.name} needs a covariate that varies; the column {effect.columns[1]!r} is the "
            "same in every row. Use RandomIntercept."
        )
        raise InvalidDataError(msg)
    per_group = effect.bandwidth + 1
    bound = BoundEffect(
        effect,
        np.arange(per_group * levels.size, dtype=np.float64),
        per_group * index[:, None] + np.arange(per_group),
        np.empty((0, 0)),
        tuple(levels.tolist()),
        float(np.mean(numbers)) if per_group == 2 else 0.0,
        scale,
    )
    loadings = bound.multipliers(numbers)
    return levels.size, BoundEffect(
        effect, bound.positions, bound.index, loadings, bound.levels, bound.centre, scale
    )


def _knots(effect: Latent, values: npt.NDArray[Any]) -> BoundEffect:
    """Knots at quantiles of the different values, not closer than a share of their range."""
    positions, _ = _sort_positions(effect, values)
    if positions.size > effect.n_knots:
        places = np.round(np.linspace(0, positions.size - 1, effect.n_knots)).astype(np.int64)
        positions = positions[places]
    kept, least = [positions[0]], _APART * float(np.ptp(positions))
    for position in positions[1:-1]:
        if position - kept[-1] >= least and positions[-1] - position >= least:
            kept.append(position)
    knots = np.array([*kept, positions[-1]]) if positions.size > 1 else positions
    if knots.size < 2:
        return BoundEffect(effect, knots, np.zeros((0, 2), np.int64), np.zeros((0, 2)))
    return BoundEffect(effect, knots, *between_knots(knots, np.asarray(values, dtype=np.float64)))


def between_knots(knots: FloatArray, values: FloatArray) -> tuple[IntArray, Matrix]:
    """The knots on both sides of each value, and their weights in linear interpolation."""
    left = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, knots.size - 2)
    share = (values - knots[left]) / (knots[left + 1] - knots[left])
    return np.column_stack([left, left + 1]), np.column_stack([1.0 - share, share])


def _sort_positions(effect: Latent, values: npt.NDArray[Any]) -> tuple[FloatArray, IntArray]:
    """Different positions in order, and that of each row; rows may share one, in any order."""
    numbers = _numbers(effect, effect.columns[0], values)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    apart = np.diff(ordered) > _SAME * max(float(np.ptp(numbers)), np.finfo(float).tiny)
    index = np.empty(numbers.size, dtype=np.int64)
    index[order] = np.concatenate([[0], np.cumsum(apart)])
    return ordered[np.concatenate([[True], apart])], index


def _numbers(effect: Latent, column: str, values: npt.NDArray[Any]) -> FloatArray:
    """A column of finite numbers: positions, or the covariate of a slope."""
    what = "covariate" if effect.kind == "slopes" else "position"
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        msg = (
            f"{effect.name} needs numbers as {what}s, but the column {column!r} holds "
            "text. For groups without an order use RandomIntercept."
        )
        raise InvalidDataError(msg) from None
    if not np.all(np.isfinite(numbers)):
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        msg = (
            f"{effect.name} needs a finite {what} in every row; the column {column!r} "
            f"has {numbers[row]} in row {row}. Remove such rows."
        )
        raise InvalidDataError(msg)
    return numbers
