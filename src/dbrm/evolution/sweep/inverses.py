"""Functions that can be undone: powers, also one of another, the exponential, the logarithm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np

from dbrm._typing import Column
from dbrm.features import Feature, Transform, modify, project

__all__ = [
    "IDENTITY",
    "Function",
    "exponent_of",
    "has_squares_and_inverses",
    "invertible_functions",
]

_PROBES = np.array([0.3, 0.7, 1.0, 1.9, 2.6])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """An invertible function, made of one transform or two."""

    transforms: tuple[Transform, ...]
    inverse: Callable[[Column], Column]

    @property
    def is_power(self) -> bool:
        """Whether a scale inside is a scale outside."""
        return bool(np.isfinite(self.exponent))

    @property
    def exponent(self) -> float:
        """The exponent of a power; NaN of other functions."""
        return float(np.prod([exponent_of(transform) for transform in self.transforms]))

    @property
    def is_exponential(self) -> bool:
        """Whether a shift inside is a scale outside."""
        return [transform.name for transform in self.transforms] == ["exp"]

    def value(self, argument: Column) -> Column:
        for transform in reversed(self.transforms):
            argument = transform.apply(argument)
        return argument

    def slope(self, argument: Column) -> Column:
        slope = np.ones_like(argument)
        for transform in reversed(self.transforms):
            slope = slope * transform.derivative(argument)
            argument = transform.apply(argument)
        return slope

    def feature(
        self, children: Sequence[Feature], weights: Sequence[float], bias: float | None
    ) -> Feature:
        """Of this weighted sum; its weights belong to its identity."""
        feature: Feature = project(
            self.transforms[-1], children, weights, bias, weights_in_identity=True
        )
        for transform in reversed(self.transforms[:-1]):
            feature = modify(transform, feature)
        return feature


IDENTITY = Function((), lambda y: y)


def exponent_of(transform: Transform) -> float:
    """The r of a transform that is :math:`x^r` for positive x; NaN if it is none."""
    if transform.takes_knot:
        return nan
    with np.errstate(all="ignore"):
        exponent = float(np.round(np.log2(transform(np.array([2.0]))[0]), 12))
        same = np.allclose(transform(_PROBES), _PROBES**exponent, rtol=1e-9)
    return exponent if same else nan


def has_squares_and_inverses(transforms: Sequence[Transform]) -> bool:
    """Whether both are among the transforms, as in laws."""
    return {-1.0, 2.0} <= {exponent_of(g) for g in transforms if g.base is None}


def invertible_functions(transforms: Sequence[Transform]) -> list[Function]:
    """Powers, also one of another, the exponential and the logarithm, each function once.

    Of plain arguments: laws keep the units that they are given.
    """
    found: list[Function] = []
    transforms = [g for g in transforms if g.base is None]
    powers = [(g, r) for g in transforms if np.isfinite(r := exponent_of(g))]
    singles = [((g,), r) for g, r in powers]
    pairs = [((g, h), r * s) for g, r in powers for h, s in powers if g is not h]
    known = {1.0}
    for chain, exponent in (*singles, *pairs):
        if not any(np.isclose(exponent, other) for other in known):
            known.add(exponent)
            found.append(Function(chain, _root(exponent)))
    for name, inverse in (("exp", np.log), ("log_abs", np.exp)):
        found += [Function((g,), inverse) for g in transforms if g.name == name]
    return found


def _root(exponent: float) -> Callable[[Column], Column]:
    odd = exponent.is_integer() and exponent % 2 == 1
    if odd:
        return lambda y: np.asarray(np.sign(y) * np.abs(y) ** (1.0 / exponent))
    return lambda y: np.asarray(np.where(y > 0, y, np.nan) ** (1.0 / exponent))
