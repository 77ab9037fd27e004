"""The kinds of feature without learnt weights: covariate, modification, product.

Construction brings a feature into canonical form and shares it: equal content is the same
object. These are not dataclasses because ``__new__`` must be able to return an object that
exists already. Projections and standardised arguments are in `dbrm.features.projection`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from operator import attrgetter
from typing import Self, final

from dbrm._typing import Column
from dbrm.errors import InvalidSettingError
from dbrm.features.base import Feature, intern, lookup
from dbrm.features.tokens import is_text, quote
from dbrm.features.transforms import Transform

__all__ = ["Covariate", "Modification", "Product", "function_text"]

_set = object.__setattr__
_simplest_first = attrgetter("complexity", "canonical", "text")


@final
class Covariate(Feature):
    r"""A column of the table, :math:`x_j`: depth 0, width 0, complexity 1."""

    __slots__ = ("name",)

    name: str

    def __new__(cls, name: str) -> Self:
        """Return the one covariate of this name."""
        if not is_text(name):
            msg = f"A covariate's name must be text; got {name!r}."
            raise InvalidSettingError(msg)
        # Subclasses of str, such as NumPy's, become plain text.
        name = str(name)
        text = quote(name)
        known = lookup(cls, text, ())
        if known is not None:
            return known
        node = object.__new__(cls)
        _set(node, "name", name)
        names = frozenset((name,))
        return intern(node, text=text, canonical=text, children=(), width=0, depth=0, names=names)

    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Look up the column itself."""
        return columns[self.text]

    def with_children(self, children: Sequence[Feature]) -> Feature:  # noqa: ARG002
        """Return the covariate: it has no children."""
        return self


@final
class Modification(Feature):
    r"""A transform of one feature, :math:`g(F)`: one more in depth and width.

    One with a knot chosen for it, ``hinge(F, 3.2)``, is two wider: the function and its number.

    Parameters
    ----------
    transform
        The function :math:`g`.
    child
        The feature :math:`F`.
    knot
        The value of a free knot, which belongs to the identity; for a knot at a training
        quantile its value, once known: see `fit_knots`.
    """

    __slots__ = ("knot",)

    transform: Transform
    knot: float | None

    def __new__(cls, transform: Transform, child: Feature, knot: float | None = None) -> Self:
        """Return the one modification of this content; g(g(F)) is g(F) if g is idempotent."""
        if transform.idempotent and child.transform is transform:
            return child  # type: ignore[return-value]
        if transform.free_knot:
            head, knot, end = transform.name, *_free_knot(transform, knot)
        else:
            (head, knot), end = function_text(transform, knot), ")"
        text = f"{head}({child.text}{end}"
        known = lookup(cls, text, (child,), transform)
        if known is not None:
            return known
        node = object.__new__(cls)
        _set(node, "knot", knot)
        # Most features have neither weights nor knots; then both texts are one string.
        exact = (knot is None or transform.free_knot) and child.canonical is child.text
        return intern(
            node,
            text=text,
            canonical=text if exact else f"{transform.name}({child.canonical}{end}",
            children=(child,),
            width=child.width + (2 if transform.free_knot else 1),
            depth=child.depth + 1,
            names=child._names,
            transform=transform,
            fitted=transform.quantile is None or knot is not None,
        )

    def argument(self, columns: Mapping[str, Column]) -> Column:
        """Return the column that the transform receives."""
        return columns[self.children[0].text]

    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Apply the transform to the child's column."""
        return self.transform.apply(columns[self.children[0].text], self.knot)

    def with_children(self, children: Sequence[Feature]) -> "Modification":
        """Apply the same transform to another child."""
        return Modification(self.transform, children[0], self.knot)

    def unfitted(self, child: Feature) -> "Modification":
        """Apply the same transform to another child; a knot at a quantile is to be learnt again."""
        return Modification(self.transform, child, self.knot if self.transform.free_knot else None)

    def with_knot(self, knot: float) -> "Modification":
        """Return the same feature with the value of its knot."""
        return Modification(self.transform, self.children[0], knot)


@final
class Product(Feature):
    r"""A product of two or more features, :math:`F_1 F_2 \cdots F_k` (crossover).

    Nested products are flattened, then the factors are sorted: repeated ones first, then
    simpler ones, then by text; ``x*(y*x)`` is ``x*x*y``.

    Parameters
    ----------
    factors
        The factors, in any order.

    Notes
    -----
    The paper multiplies two features at a time and counts each multiplication as
    depth 1, so a product's depth depends on the bracketing. Ours is the least over
    all bracketings, which by Kraft's inequality is

    .. math:: \left\lceil \log_2 \sum_i 2^{d(F_i)} \right\rceil .

    For factors of equal depth d that is
    :math:`d + \lceil \log_2 k \rceil`. The width is :math:`k - 1 + \sum_i w(F_i)` under any
    bracketing.
    """

    __slots__ = ()

    def __new__(cls, factors: Iterable[Feature]) -> Self:
        """Return the one product of these factors."""
        children = _sorted_factors(_flattened(factors))
        if len(children) < 2:
            msg = f"A product needs two factors or more; got {len(children)}."
            raise InvalidSettingError(msg)
        text = "*".join([child.text for child in children])
        known = lookup(cls, text, children)
        if known is not None:
            return known
        exact = all(child.canonical is child.text for child in children)
        return intern(
            object.__new__(cls),
            text=text,
            canonical=text if exact else "*".join([child.canonical for child in children]),
            children=children,
            width=len(children) - 1 + sum([child.width for child in children]),
            depth=(sum([1 << child.depth for child in children]) - 1).bit_length(),
            names=frozenset().union(*[child._names for child in children]),
        )

    @property
    def factors(self) -> tuple[Feature, ...]:
        """The factors in canonical order, repeated ones repeated."""
        return self.children

    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Multiply the factors' columns, in canonical order."""
        first, second, *rest = self.children
        result = columns[first.text] * columns[second.text]
        for factor in rest:
            result *= columns[factor.text]
        return result

    def with_children(self, children: Sequence[Feature]) -> Feature:
        """Multiply other factors."""
        return Product(children)


def _flattened(factors: Iterable[Feature]) -> list[Feature]:
    flat: list[Feature] = []
    for factor in factors:
        if isinstance(factor, Product):
            flat.extend(factor.children)
        else:
            flat.append(factor)
    return flat


def function_text(transform: Transform, knot: float | None) -> tuple[str, float | None]:
    """Return the text before the parenthesis, and the knot as a plain number."""
    if knot is None:
        return transform.name, None
    if transform.quantile is None or not isfinite(knot):
        msg = (
            "A stored knot must be finite and belong to a transform at a training quantile, "
            f"such as step[q0.5]; got knot={knot!r} for {transform.name}."
        )
        raise InvalidSettingError(msg)
    knot = float(knot) + 0.0
    return f"{transform.name[:-1]}={knot!r}]", knot


def _free_knot(transform: Transform, knot: float | None) -> tuple[float, str]:
    """Return the knot as a plain number, and the text after the child."""
    if knot is None or not isfinite(knot):
        msg = (
            f"{transform.name} needs a finite knot, as in {transform.name}(x, 1.5); "
            f"got knot={knot!r}. A knot given beforehand is written {transform.name}[1.5](x)."
        )
        raise InvalidSettingError(msg)
    knot = float(knot) + 0.0
    number = str(int(knot)) if knot.is_integer() and abs(knot) < 1e15 else repr(knot)
    return knot, f", {number})"


def _sorted_factors(factors: Iterable[Feature]) -> tuple[Feature, ...]:
    """Sort the factors: highest power first, then the simplest, then by text."""
    ordered = sorted(factors, key=_simplest_first)
    names = [factor.canonical for factor in ordered]
    if len(set(names)) < len(names):
        powers = Counter(names)
        # The sort is stable, so equal powers stay in the order above.
        ordered.sort(key=lambda factor: -powers[factor.canonical])
    return tuple(ordered)
