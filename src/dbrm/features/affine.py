"""Weighted sums on the way from text to a feature."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self, final

from dbrm.features.base import Feature
from dbrm.features.building import multiply
from dbrm.features.canonical import rounded_sum

__all__ = ["Affine"]


@final
@dataclass(frozen=True, slots=True)
class Affine:
    """A number plus weighted features, as written.

    Parameters
    ----------
    bias
        The sum of the plain numbers; None if none was written.
    terms
        Weights and features. A weight of None was not written: ``tanh(x)`` is not
        ``tanh(1.0*x)``.
    """

    bias: float | None
    terms: tuple[tuple[float | None, Feature], ...]

    @classmethod
    def number(cls, value: float) -> Self:
        """Return a plain number."""
        return cls(value, ())

    @classmethod
    def feature(cls, feature: Feature) -> Self:
        """Return a feature without a weight."""
        return cls(None, ((None, feature),))

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """Return the sum of several."""
        if len(parts) == 1:
            return parts[0]
        numbers = [part.bias for part in parts if part.bias is not None]
        terms = tuple([term for part in parts for term in part.terms])
        return cls(rounded_sum(numbers) if numbers else None, terms)

    @classmethod
    def product(cls, parts: Sequence[Self]) -> Self | None:
        """Return the product of several, or None if it is not a weighted sum of features."""
        if len(parts) == 1:
            return parts[0]
        number = prod([part.bias for part in parts if part.is_number and part.bias is not None])
        others = [part for part in parts if not part.is_number]
        scaled = len(others) < len(parts)
        if len(others) == 1:
            return others[0].scaled(number)
        if not others:
            return cls.number(number)
        if any(part.bias is not None or len(part.terms) > 1 for part in others):
            return None
        weights = [weight for part in others for weight, _ in part.terms if weight is not None]
        feature = multiply(*[feature for part in others for _, feature in part.terms])
        return cls(None, ((number * prod(weights) if scaled or weights else None, feature),))

    @property
    def is_number(self) -> bool:
        """Whether this is a plain number."""
        return not self.terms

    def as_feature(self) -> Feature | None:
        """Return the one feature this is, or None if there is a sum or a weight."""
        if self.bias is None and len(self.terms) == 1 and self.terms[0][0] is None:
            return self.terms[0][1]
        return None

    def scaled(self, factor: float) -> Self:
        """Return this times a number."""
        bias = None if self.bias is None else factor * self.bias
        terms = [(factor if w is None else factor * w, feature) for w, feature in self.terms]
        return type(self)(bias, tuple(terms))
