"""The kinds of feature: covariate, modification, product, projection; and what is standardised.

Construction canonicalises and shares: equal content is the
same object. These are not dataclasses because ``__new__`` must be able to return
an object that exists already.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Self, final

from dbrm._typing import Column
from dbrm.errors import InvalidSettingError
from dbrm.features.base import Feature, finish, recall
from dbrm.features.canonical import (
    affine_text,
    affine_topology,
    merged_terms,
    positive_first,
    sorted_factors,
)
from dbrm.features.naming import is_text, quote
from dbrm.features.transforms import Transform

__all__ = ["Covariate", "Modification", "Product", "Projection", "Standardized"]

_set = object.__setattr__


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
        known = recall(cls, text, ())
        if known is not None:
            return known
        node = object.__new__(cls)
        _set(node, "name", name)
        names = frozenset((name,))
        return finish(node, text=text, canonical=text, children=(), width=0, depth=0, names=names)

    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Look up the column itself."""
        return columns[self.text]

    def rebuilt(self, children: Sequence[Feature]) -> Feature:  # noqa: ARG002
        """Return the covariate: it has no children."""
        return self


@final
class Modification(Feature):
    r"""A transform of one feature, :math:`g(F)`: one more in depth and width.

    Parameters
    ----------
    transform
        The function :math:`g`.
    child
        The feature :math:`F`.
    knot
        For a knot at a training quantile its value, once known: see `fit_knots`.
    """

    __slots__ = ("knot",)

    transform: Transform
    knot: float | None

    def __new__(cls, transform: Transform, child: Feature, knot: float | None = None) -> Self:
        """Return the one modification of this content; g(g(F)) is g(F) if g is idempotent."""
        if transform.idempotent and child.transform is transform:
            return child  # type: ignore[return-value]
        head, knot = _head(transform, knot)
        text = f"{head}({child.text})"
        known = recall(cls, text, (child,), transform)
        if known is not None:
            return known
        node = object.__new__(cls)
        _set(node, "knot", knot)
        # Most features hold neither weights nor knots: then one string serves for both.
        exact = knot is None and child.canonical is child.text
        return finish(
            node,
            text=text,
            canonical=text if exact else f"{transform.name}({child.canonical})",
            children=(child,),
            width=child.width + 1,
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

    def rebuilt(self, children: Sequence[Feature]) -> "Modification":
        """Apply the same transform to another child."""
        return Modification(self.transform, children[0], self.knot)

    def with_knot(self, knot: float) -> "Modification":
        """Return the same feature with the value of its knot."""
        return Modification(self.transform, self.children[0], knot)


@final
class Product(Feature):
    r"""A product of two or more features, :math:`F_1 F_2 \cdots F_k` (crossover).

    Factors that are products are dissolved, then all are sorted: repeated factors
    first, then simpler ones, then by their text; ``x*(y*x)`` is ``x*x*y``.

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
        children = sorted_factors(_dissolved(factors))
        if len(children) < 2:
            msg = f"A product needs two factors or more; got {len(children)}."
            raise InvalidSettingError(msg)
        text = "*".join([child.text for child in children])
        known = recall(cls, text, children)
        if known is not None:
            return known
        exact = all(child.canonical is child.text for child in children)
        return finish(
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

    def rebuilt(self, children: Sequence[Feature]) -> Feature:
        """Multiply other factors."""
        return Product(children)


@final
class Projection(Feature):
    r"""A transform of a weighted sum, :math:`g(\alpha_0 + \sum_r \alpha_r F_r)`.

    Its width is the number of weights, the bias included, plus the children's
    widths; its depth one more than the deepest child's.

    Parameters
    ----------
    transform
        The function :math:`g`.
    children
        The features :math:`F_r`, at least one. They are sorted, and those that occur
        twice are merged, their weights added.
    weights
        The weights :math:`\alpha_r`, in the order given for ``children``.
    bias
        The intercept :math:`\alpha_0`; None means there is none, and it is not counted.
    fixed_identity
        Whether the weights belong to the identity (the paper's strategy 4, where
        they are drawn, not fitted). Such a projection prints with braces,
        ``tanh{0.3 + 1.2*x}``; under an even transform its first weight is made
        positive.
    knot
        As for `Modification`.
    """

    __slots__ = ("bias", "fixed_identity", "knot", "weights")

    transform: Transform
    weights: tuple[float, ...]
    bias: float | None
    fixed_identity: bool
    knot: float | None

    def __new__(
        cls,
        transform: Transform,
        children: Iterable[Feature],
        weights: Iterable[float],
        bias: float | None = None,
        *,
        fixed_identity: bool = False,
        knot: float | None = None,
    ) -> Self:
        """Return the one projection of this content."""
        # + 0.0 drops the sign of -0.0.
        terms = merged_terms(tuple(children), [float(weight) + 0.0 for weight in weights])
        bias = _checked_bias(bias)
        if fixed_identity and transform.parity == "even":
            terms, bias = positive_first(terms, bias)
        features = tuple([child for child, _ in terms])
        numbers = tuple([weight for _, weight in terms])
        head, knot = _head(transform, knot)
        left, right = "{}" if fixed_identity else "()"
        text = (
            f"{head}{left}{affine_text([child.text for child in features], numbers, bias)}{right}"
        )
        node = object.__new__(cls)
        _set(node, "weights", numbers)
        _set(node, "bias", bias)
        _set(node, "fixed_identity", bool(fixed_identity))
        _set(node, "knot", knot)
        names = [child.canonical for child in features]
        inner = (
            affine_text(names, numbers, bias) if fixed_identity else affine_topology(names, bias)
        )
        return finish(
            node,
            text=text,
            canonical=f"{transform.name}{left}{inner}{right}",
            children=features,
            width=len(numbers) + (bias is not None) + sum([child.width for child in features]),
            depth=1 + max([child.depth for child in features]),
            names=frozenset().union(*[child._names for child in features]),
            transform=transform,
            fitted=transform.quantile is None or knot is not None,
        )

    def argument(self, columns: Mapping[str, Column]) -> Column:
        """Return the column that the transform receives, the weighted sum."""
        total = self.weights[0] * columns[self.children[0].text]
        for weight, child in zip(self.weights[1:], self.children[1:], strict=True):
            total += weight * columns[child.text]
        if self.bias is not None:
            total += self.bias
        return total

    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Apply the transform to the weighted sum."""
        return self.transform.apply(self.argument(columns), self.knot)

    def rebuilt(self, children: Sequence[Feature]) -> "Projection":
        """Give the same weights to other children."""
        return self._with(children, self.knot)

    def with_knot(self, knot: float) -> "Projection":
        """Return the same feature with the value of its knot."""
        return self._with(self.children, knot)

    def _with(self, children: Sequence[Feature], knot: float | None) -> "Projection":
        return Projection(
            self.transform,
            children,
            self.weights,
            self.bias,
            fixed_identity=self.fixed_identity,
            knot=knot,
        )


@final
class Standardized(Feature):
    r"""A feature in units of its own spread, :math:`(F - c)/s`, as the argument of a transform.

    It spans the same models as :math:`F` and counts nothing: neither width nor depth. Inside
    a transform it makes :math:`g` independent of the units of :math:`F`:
    ``sin((a - 3.1)/2.4)``. The two numbers are learnt, and take no part in the identity.

    Parameters
    ----------
    child
        The feature :math:`F`.
    centre, scale
        Mean :math:`c` and standard deviation :math:`s > 0` of the training column, once known:
        see `fit_knots`.
    """

    __slots__ = ("centre", "scale")

    centre: float | None
    scale: float | None

    def __new__(
        cls, child: Feature, centre: float | None = None, scale: float | None = None
    ) -> Self:
        """Return the one node of this content."""
        numbers = "- ?)/?"
        if centre is not None or scale is not None:
            centre, scale = _checked_moments(centre, scale)
            sign, size = ("-", centre) if centre >= 0.0 else ("+", -centre)
            numbers = f"{sign} {size!r})/{scale!r}"
        text = f"({child.text} {numbers}"
        known = recall(cls, text, (child,))
        if known is not None:
            return known
        node = object.__new__(cls)
        _set(node, "centre", centre)
        _set(node, "scale", scale)
        return finish(
            node,
            text=text,
            canonical=f"({child.canonical} - ?)/?",
            children=(child,),
            width=child.width,
            depth=child.depth,
            names=child._names,
            fitted=scale is not None,
        )

    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Subtract the centre and divide by the scale."""
        assert self.centre is not None
        assert self.scale is not None
        return (columns[self.children[0].text] - self.centre) / self.scale

    def rebuilt(self, children: Sequence[Feature]) -> "Standardized":
        """Give the same numbers to another child."""
        return Standardized(children[0], self.centre, self.scale)


def _dissolved(factors: Iterable[Feature]) -> list[Feature]:
    flat: list[Feature] = []
    for factor in factors:
        if isinstance(factor, Product):
            flat.extend(factor.children)
        else:
            flat.append(factor)
    return flat


def _head(transform: Transform, knot: float | None) -> tuple[str, float | None]:
    """Return what stands before the parenthesis, and the knot as a plain number."""
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


def _checked_moments(centre: float | None, scale: float | None) -> tuple[float, float]:
    if centre is None or scale is None or not (isfinite(centre) and 0.0 < scale < inf):
        msg = (
            "A standardised feature needs a finite centre and a positive scale, or neither; "
            f"got centre={centre!r}, scale={scale!r}."
        )
        raise InvalidSettingError(msg)
    return float(centre) + 0.0, float(scale)


def _checked_bias(bias: float | None) -> float | None:
    if bias is None:
        return None
    bias = float(bias) + 0.0
    if not isfinite(bias):
        msg = f"A projection's bias must be finite; got bias={bias!r}."
        raise InvalidSettingError(msg)
    return bias
