r"""Expressions spelt as features: a weighted sum of them and a constant.

Products of sums are multiplied out where that is short, or each sum is one feature; powers take
the scale of a sum outside, the exponential its constant, the logarithm its scale. Numbers that a
rounding error separates from short ones are these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import final

import numpy as np

from dbrm.evolution.sweep.expressions import Apply, Expression, Leaf, Number
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import Feature, Transform, modify, multiply, project
from dbrm.features.numbers import shortest_within

__all__ = ["Speller", "SpeltSum"]

# Relative error of a number that is known to rounding, and the share of a sum below which a
# constant in it is none.
_ROUNDING, _NOTHING = 1e-11, 1e-9
# Most terms of a product of sums that is multiplied out.
_MOST_TERMS = 4


@final
@dataclass(frozen=True, slots=True)
class SpeltSum:
    """A sum of weighted features and a constant."""

    features: tuple[Feature, ...] = ()
    weights: tuple[float, ...] = ()
    bias: float = 0.0

    @property
    def n_terms(self) -> int:
        """Features, and the constant if there is one."""
        return len(self.features) + (self.bias != 0.0)

    @property
    def is_single(self) -> bool:
        """Whether it is one weighted feature."""
        return len(self.features) == 1 and self.bias == 0.0

    def scaled(self, by: float) -> "SpeltSum":
        """Every weight times a number."""
        weights = tuple(_short(by * weight) for weight in self.weights)
        return SpeltSum(self.features, weights, _short(by * self.bias))

    def plus(self, other: "SpeltSum") -> "SpeltSum":
        """The sum of two; equal features once."""
        total: dict[Feature, float] = {}
        for part in (self, other):
            for feature, weight in zip(part.features, part.weights, strict=True):
                total[feature] = total.get(feature, 0.0) + weight
        largest = max((abs(weight) for weight in total.values()), default=0.0)
        total = {f: _short(w) for f, w in total.items() if abs(w) > _NOTHING * largest}
        return SpeltSum(tuple(total), tuple(total.values()), _short(self.bias + other.bias))


def _short(value: float) -> float:
    found = shortest_within(value, _ROUNDING * abs(value)) if value else 0.0
    return found if np.isfinite(found) else value


class Speller:
    """Spells expressions with the transforms of a run.

    Parameters
    ----------
    expands
        Whether products of sums are multiplied out.
    """

    def __init__(self, transforms: Sequence[Transform], *, expands: bool) -> None:
        self._powers, self._expands = Powers(transforms), expands

    def sum(self, expression: Expression) -> SpeltSum | None:
        """The sum that an expression is; ``None`` if it cannot be spelt."""
        if isinstance(expression, Leaf):
            return SpeltSum((expression.feature,), (1.0,))
        if isinstance(expression, Number):
            return SpeltSum(bias=expression.value)
        if isinstance(expression, Apply):
            inner = self.sum(expression.inner)
            return None if inner is None else self._applied(expression.transform, inner)
        left, right = self.sum(expression.left), self.sum(expression.right)
        if left is None or right is None:
            return None
        if expression.sign in "+-":
            return left.plus(right if expression.sign == "+" else right.scaled(-1.0))
        if expression.sign == "*":
            return self._times(left, right)
        below = self._to_power(right, -1.0)
        return None if below is None else self._times(left, below)

    def _times(self, left: SpeltSum, right: SpeltSum) -> SpeltSum | None:
        for one, other in ((left, right), (right, left)):
            if not one.features:
                return other.scaled(one.bias)
        if left == right and not left.is_single:
            return self._to_power(left, 2.0)
        if self._expands and left.n_terms * right.n_terms <= _MOST_TERMS:
            return _multiplied_out(left, right)
        first, second = self._joined(left), self._joined(right)
        return None if first is None or second is None else _multiplied_out(first, second)

    def _joined(self, total: SpeltSum) -> SpeltSum | None:
        """The sum as one feature."""
        return total if total.is_single else self._to_power(total, 1.0)

    def _to_power(self, total: SpeltSum, exponent: float) -> SpeltSum | None:
        if not total.features:
            return SpeltSum(bias=abs(total.bias) ** exponent if total.bias else 0.0)
        scale = max(total.weights, key=abs)
        scale = scale if exponent % 2.0 == 1.0 else abs(scale)
        unit = total.scaled(1.0 / scale)
        outside = float(np.sign(scale) * abs(scale) ** exponent)
        feature = self._powers.of_sum(unit.features, unit.weights, unit.bias or None, exponent)
        return None if feature is None else SpeltSum((feature,), (_short(outside),))

    def _applied(self, transform: Transform, total: SpeltSum) -> SpeltSum | None:
        exponent = exponent_of(transform)
        if not total.features:
            return SpeltSum(bias=float(transform(np.array([total.bias]))[0]))
        if np.isfinite(exponent):
            return self._to_power(total, exponent)
        scale, shift = 1.0, 0.0
        if transform.name == "exp":
            scale, total = exp(total.bias), SpeltSum(total.features, total.weights)
        if transform.name == "log_abs":
            size = max(total.weights, key=abs)
            total, shift = total.scaled(1.0 / size), _short(log(abs(size)))
        if total.is_single and total.weights[0] == 1.0:
            feature = modify(transform, total.features[0])
        else:
            bias = total.bias or None
            feature = project(
                transform, total.features, total.weights, bias, weights_in_identity=True
            )
        return SpeltSum((feature,), (_short(scale),), shift)


def _multiplied_out(left: SpeltSum, right: SpeltSum) -> SpeltSum:
    total = SpeltSum(bias=left.bias * right.bias)
    for one, other in ((left, right), (right, left)):
        if other.bias:
            total = total.plus(SpeltSum(one.features, one.weights).scaled(other.bias))
    for feature, weight in zip(left.features, left.weights, strict=True):
        for by, times in zip(right.features, right.weights, strict=True):
            total = total.plus(SpeltSum((multiply(feature, by),), (weight * times,)))
    return total
