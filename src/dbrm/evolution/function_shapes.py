r"""Which numbers inside a function matter: :math:`g(\theta x + \varphi)` up to an affine map.

An exponential turns a shift into a factor, a power a scale; of a sine both numbers matter, but
its phase is found by a linear fit. The kinds are found numerically, so that users' own functions
have one, too. Arguments are standardised here, so that one grid serves all columns.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray
from dbrm.features import Transform

__all__ = ["Kind", "Shape", "grid", "shape_of", "shapes_of"]

_PROBES = np.concatenate([np.linspace(0.3, 8.1, 12), -np.linspace(0.45, 7.3, 11)])
_SLOPES = (0.4, 0.8, 1.6, 3.2, 6.4)
_RATES = (0.1, 0.15, 0.22, 0.33, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6)
_LEVELS = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)
# Distances of a pole from the data, as shares of their range.
_DISTANCES = (0.003, 0.006, 0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.3, 0.6, 1.0, 3.0)
# Half waves in the range of the data, at most so many.
_HALF_WAVES = 50


class Kind(Enum):
    """Which numbers matter, up to an affine map of the function."""

    BOTH = "both"
    SCALE = "scale"
    SHIFT = "shift"
    WAVE = "wave"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    r"""A function and its kind; a wave is :math:`\sin(\omega z + \delta)`, times a number."""

    transform: Transform
    kind: Kind
    frequency: float = 1.0
    phase: float = 0.0


@lru_cache(maxsize=64)
def shapes_of(transforms: tuple[Transform, ...]) -> list[Shape]:
    """The functions that gain from numbers inside, each once; ``sin`` for ``sin[z]``."""
    found: list[Shape] = []
    for transform in transforms:
        shape = shape_of(transform.base or transform)
        if shape is not None and not any(_same(shape, other) for other in found):
            found.append(shape)
    return found


@lru_cache(maxsize=256)
def shape_of(transform: Transform) -> Shape | None:
    """The kind of a function; None for polynomials, and for those that have a knot."""
    if transform.takes_knot or transform.knot is not None:
        return None
    x, g = _PROBES, transform
    value = g(x)
    if not np.all(np.isfinite(value)):
        return Shape(transform, Kind.BOTH)
    if _spans([x, x * x, x**3], value):
        return None
    if _spans([value], g(2.0 * x)) and _spans([value], g(3.0 * x)):
        return Shape(transform, Kind.SHIFT)
    if _spans([value], g(x + 0.7)):
        return Shape(transform, Kind.SCALE)
    cosine = float(np.median((g(x + 1.0) + g(x - 1.0)) / (2.0 * value)))
    if abs(cosine) < 1.0:
        omega = float(np.arccos(cosine))
        waves = np.column_stack([np.sin(omega * x), np.cos(omega * x)])
        weights = np.linalg.lstsq(waves, value, rcond=None)[0]
        if np.allclose(waves @ weights, value, rtol=0.0, atol=1e-9):
            return Shape(transform, Kind.WAVE, omega, float(np.arctan2(weights[1], weights[0])))
    return Shape(transform, Kind.BOTH)


def _spans(columns: list[FloatArray], target: FloatArray) -> bool:
    """Whether a column is a weighted sum of others and of a constant."""
    design = np.column_stack([np.ones_like(target), *columns])
    weights = np.linalg.lstsq(design / np.max(np.abs(design), axis=0), target, rcond=None)[0]
    left = target - design / np.max(np.abs(design), axis=0) @ weights
    return bool(np.max(np.abs(left)) < 1e-9 * np.max(np.abs(target)))


def _same(shape: Shape, other: Shape) -> bool:
    """Whether two functions differ by numbers inside and an affine map, as tanh and sigmoid do."""
    if shape.kind is not other.kind:
        return False
    if shape.kind is Kind.WAVE:
        return True
    value = shape.transform(_PROBES)
    return any(_spans([other.transform(scale * _PROBES)], value) for scale in (0.5, 1.0, 2.0))


def grid(shape: Shape, points: Column) -> tuple[FloatArray, FloatArray]:
    """Scales and shifts to try for an argument with these standardised values, in order."""
    low, high = points[0], points[-1]
    extent = high - low
    match shape.kind:
        case Kind.WAVE:
            # At least four different values in a whole wave.
            count = max(min(_HALF_WAVES, np.unique(points).size // 2), 1)
            scales = np.pi / extent * np.arange(1, count + 1)
            return scales, np.zeros(count)
        case Kind.SCALE:
            scales = np.array([sign * rate for rate in _RATES for sign in (-1.0, 1.0)])
            return scales, np.zeros(scales.size)
        case Kind.SHIFT:
            distances = extent * np.array(_DISTANCES)
            poles = np.concatenate([low - distances, high + distances])
            if np.isfinite(shape.transform(np.zeros(1))[0]):
                poles = np.concatenate([poles, _quantiles(points)])
            return np.ones(poles.size), -poles
    centres = _quantiles(points)
    scales = np.repeat(_SLOPES, centres.size)
    return scales, -scales * np.tile(centres, len(_SLOPES))


def _quantiles(points: Column) -> Column:
    return points[(np.array(_LEVELS) * (points.size - 1)).astype(np.int64)]
