"""How processes continue between and beyond known positions."""

from collections.abc import Callable

import numpy as np

from dbrm._typing import FloatArray, IntArray
from dbrm.evidence.latent.base import Bridge

__all__ = ["interpolate", "krige"]


def neighbours(positions: FloatArray, new: FloatArray) -> tuple[IntArray, IntArray]:
    """Nearest known nodes to the left and right; the same one twice beyond the ends."""
    right = np.searchsorted(positions, new)
    left = np.clip(right - 1, 0, positions.size - 1)
    return left.astype(np.int64), np.clip(right, 0, positions.size - 1).astype(np.int64)


def interpolate(positions: FloatArray, new: FloatArray, variance: float) -> Bridge:
    """Brownian motion with this variance per unit: a bridge inside, a free walk outside."""
    left, right = neighbours(positions, new)
    before, after = np.abs(new - positions[left]), np.abs(positions[right] - new)
    span = np.where(left == right, np.inf, positions[right] - positions[left])
    share = np.where(left == right, 0.0, before / span)
    spread = np.where(left == right, before, before * after / span)
    return Bridge(
        np.column_stack([left, right]), np.column_stack([1.0 - share, share]), variance * spread
    )


def krige(
    positions: FloatArray,
    new: FloatArray,
    correlation: Callable[[FloatArray], FloatArray],
    variance: float,
) -> Bridge:
    """A stationary process from its two neighbours; exact where it is Markov."""
    left, right = neighbours(positions, new)
    before, after = correlation(new - positions[left]), correlation(positions[right] - new)
    between = np.where(left == right, 0.0, correlation(positions[right] - positions[left]))
    after = np.where(left == right, 0.0, after)
    rest = np.maximum(1.0 - between**2, np.finfo(float).tiny)
    first, second = (before - between * after) / rest, (after - between * before) / rest
    explained = first * before + second * after
    return Bridge(
        np.column_stack([left, right]),
        np.column_stack([first, second]),
        variance * np.maximum(1.0 - explained, 0.0),
    )
