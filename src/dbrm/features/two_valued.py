r"""Simplify powers and functions of two-valued columns.

* A 0/1 column is its own square: ``x*x*z`` is ``x*z``.
* The square of a column of :math:`\pm c` is constant: ``x*x*z`` is ``z``, times :math:`c^2`.
* A function of any two-valued column is an affine map of the column.

Which covariates have two values depends on the data, so the rules are applied where the table
is known, not in the constructors. A factor and its inverse, ``x*power[-1](x)``, cancel for any
data.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Self, final

import numpy as np

from dbrm._typing import Matrix
from dbrm.features.base import Feature
from dbrm.features.building import modify, multiply
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.parametric import power
from dbrm.features.projection import Standardized
from dbrm.features.traversal import fold, walk

__all__ = ["TwoValued"]

_STEPS = ("step", "step_down")
_INVERSE = re.compile(r"power\[-(\d+)\]")


class _Values(Enum):
    """The values that a column may have."""

    ZERO_ONE = 1
    PLUS_MINUS = 2
    TWO = 3
    MANY = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class TwoValued:
    r"""The covariates of two values.

    Parameters
    ----------
    zero_one, plus_minus, others
        Names of the covariates with the values 0 and 1, with the values :math:`\pm c`, and
        with two other values.
    """

    zero_one: Collection[str] = ()
    plus_minus: Collection[str] = ()
    others: Collection[str] = ()
    _known: dict[str, _Values] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, names: Sequence[str], values: Matrix) -> Self:
        """Find the two-valued columns of a table."""
        kinds: tuple[list[str], ...] = ([], [], [])
        for name, column in zip(names, values.T, strict=True):
            low, high = np.min(column, initial=np.inf), np.max(column, initial=-np.inf)
            # The first rows decide for nearly every column.
            parts = (column[:64], column[64:])
            if all(bool(np.all((part == low) | (part == high))) for part in parts):
                kind = 0 if {low, high} <= {0.0, 1.0} else 1 if low == -high else 2
                kinds[kind].append(name)
        return cls(*kinds)

    def is_two_valued(self, feature: Feature) -> bool:
        """Whether a feature is known to have at most two values."""
        return self._values(feature) is not _Values.MANY

    def contains_relabelling(self, feature: Feature) -> bool:
        """Whether a feature contains a function of a two-valued column.

        Affine functions, such as ``not``, do not count: products need them.
        """
        return any(
            isinstance(node, Modification)
            and not node.transform.affine
            and self.is_two_valued(node.children[0])
            for node in walk(feature)
        )

    def simplify(self, feature: Feature) -> Feature:
        """Simplify powers of two-valued factors, and factors that cancel.

        A product that would be constant is returned unchanged.
        """
        if not any(isinstance(node, Product) and self._shortens(node) for node in walk(feature)):
            return feature
        return fold(feature, self._rebuild)

    def _shortens(self, product: Product) -> bool:
        repeated = len(set(product.factors)) < len(product.factors)
        return repeated or any(_inverse(factor) for factor in product.factors)

    def _rebuild(self, node: Feature, children: Sequence[Feature]) -> Feature:
        if not isinstance(node, Product):
            return node.with_children(children) if node.children else node
        present = {child.text for child in children}
        bases: dict[str, Feature] = {}
        exponents: Counter[str] = Counter()
        for child in children:
            base, exponent = child, 1
            # An inverse is merged only with the factor that it cancels.
            if _inverse(child) and child.children[0].text in present:
                base, exponent = child.children[0], -_inverse(child)
            bases[base.text] = base
            exponents[base.text] += exponent
        factors = [
            f for text, exponent in exponents.items() for f in self._power(bases[text], exponent)
        ]
        return multiply(*factors) if factors else node

    def _power(self, factor: Feature, exponent: int) -> list[Feature]:
        """Return the factors of a simplified power."""
        if exponent < 0:
            return [modify(power(exponent), factor)]
        values = self._values(factor)
        if values is _Values.ZERO_ONE:
            exponent = min(exponent, 1)
        elif values is _Values.PLUS_MINUS:
            exponent %= 2
        return [factor] * exponent

    def _values(self, feature: Feature) -> _Values:
        known = self._known.get(feature.text)
        if known is None:
            known = self._known[feature.text] = self._classify(feature)
        return known

    def _classify(self, feature: Feature) -> _Values:
        match feature:
            case Covariate():
                if feature.name in self.zero_one:
                    return _Values.ZERO_ONE
                if feature.name in self.plus_minus:
                    return _Values.PLUS_MINUS
                return _Values.TWO if feature.name in self.others else _Values.MANY
            case Product():
                kinds = {self._values(factor) for factor in feature.factors}
                closed = kinds in ({_Values.ZERO_ONE}, {_Values.PLUS_MINUS})
                return kinds.pop() if closed else _Values.MANY
            case Modification() | Standardized():
                inner = self._values(feature.children[0])
                name = "" if feature.transform is None else feature.transform.name
                if name.split("[")[0] in _STEPS or (name == "not" and inner is _Values.ZERO_ONE):
                    return _Values.ZERO_ONE
                return _Values.MANY if inner is _Values.MANY else _Values.TWO
        return _Values.MANY


def _inverse(feature: Feature) -> int:
    """Return the k of a factor :math:`F^{-k}`, zero for any other."""
    if not isinstance(feature, Modification):
        return 0
    found = _INVERSE.fullmatch(feature.transform.name)
    return int(found[1]) if found else 0
