"""Which latent variable belongs to which row: effects bound to the training rows."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidDataError
from dbrm.evidence.latent.base import Latent

__all__ = ["BoundEffect", "bind"]

# Positions closer than this share of their range are one: nothing could tell them apart.
_SAME = 1e-12


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundEffect:
    """An effect with its nodes.

    Parameters
    ----------
    positions
        Sorted positions of the nodes; their numbers for groups.
    index
        For each row the node it belongs to.
    levels
        Names of the groups; empty for positions and for one effect per row.
    """

    effect: Latent
    positions: FloatArray
    index: IntArray
    levels: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.positions.size)


def bind(effect: Latent, values: npt.NDArray[Any] | None, n_rows: int) -> BoundEffect:
    """Find the nodes of an effect in the training rows.

    Parameters
    ----------
    values
        The effect's column; ``None`` for one effect per row.
    """
    if values is None:
        every = np.arange(n_rows)
        return BoundEffect(effect, every.astype(np.float64), every)
    if effect.kind == "grouped":
        levels, index = np.unique(values, return_inverse=True)
        bound = BoundEffect(
            effect, np.arange(levels.size, dtype=np.float64), index, tuple(levels.tolist())
        )
        fewest = 2
    else:
        bound = BoundEffect(effect, *_sort_positions(effect, values))
        fewest = max(2, effect.nullity + 2)
    if bound.size < fewest:
        what = "groups" if effect.kind == "grouped" else "positions"
        msg = (
            f"{effect.name} needs at least {fewest} different {what}; the column "
            f"{effect.column!r} has {bound.size}. An effect over fewer cannot be told from the "
            "intercept: leave it out."
        )
        raise InvalidDataError(msg)
    return bound


def _sort_positions(effect: Latent, values: npt.NDArray[Any]) -> tuple[FloatArray, IntArray]:
    """Different positions in order, and that of each row; rows may share one, in any order."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        msg = (
            f"{effect.name} needs numbers as positions, but the column {effect.column!r} holds "
            "text. For groups without an order use RandomIntercept."
        )
        raise InvalidDataError(msg) from None
    if not np.all(np.isfinite(numbers)):
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        msg = (
            f"{effect.name} needs a finite position in every row; the column {effect.column!r} "
            f"has {numbers[row]} in row {row}. Remove such rows."
        )
        raise InvalidDataError(msg)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    apart = np.diff(ordered) > _SAME * max(float(np.ptp(numbers)), np.finfo(float).tiny)
    index = np.empty(numbers.size, dtype=np.int64)
    index[order] = np.concatenate([[0], np.cumsum(apart)])
    return ordered[np.concatenate([[True], apart])], index
