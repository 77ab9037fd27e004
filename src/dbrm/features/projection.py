"""Features with learnt numbers: a transform of a weighted sum, and the standardised argument.

The terms of a sum have a canonical order that follows their topology, so that it never depends
on fitted weights. `dbrm.features.nodes` has the other kinds of feature.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, inf, isfinite, nan
from typing import Self, final

from dbrm._typing import Column
from dbrm.errors import InvalidSettingError
from dbrm.features.base import Feature, intern, lookup
from dbrm.features.nodes import function_text
from dbrm.features.transforms import Transform

__all__ = ["Projection", "Standardized", "affine_topology", "rounded_sum"]

Term = tuple[Feature, float]
_set = object.__setattr__


@final
class Projection(Feature):
    r"""A transform of a weighted sum, :math:`g(\alpha_0 + \sum_r \alpha_r F_r)`.

    Its width is the number of weights, the bias included, plus the children's
    widths; its depth one more than the deepest child's. Where the weights belong to the identity
    the bias counts also if there is none: ``exp{-0.4*x}`` has the width two, of the function and
    its number, otherwise the choice of the number would cost nothing beside ``exp(x)``.

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
    weights_in_identity
        Whether the weights belong to the identity (the paper's strategy 4, where
        they are drawn, not fitted). Such a projection prints with braces,
        ``tanh{0.3 + 1.2*x}``; under an even transform its first weight is made
        positive.
    knot
        As for `Modification`.
    """

    __slots__ = ("bias", "knot", "weights", "weights_in_identity")

    transform: Transform
    weights: tuple[float, ...]
    bias: float | None
    weights_in_identity: bool
    knot: float | None

    def __new__(
        cls,
        transform: Transform,
        children: Iterable[Feature],
        weights: Iterable[float],
        bias: float | None = None,
        *,
        weights_in_identity: bool = False,
        knot: float | None = None,
    ) -> Self:
        """Return the one projection of this content."""
        # + 0.0 drops the sign of -0.0.
        terms = _merged_terms(tuple(children), [float(weight) + 0.0 for weight in weights])
        bias = _checked_bias(bias)
        if weights_in_identity and transform.parity == "even":
            terms, bias = _positive_first(terms, bias)
        features = tuple([child for child, _ in terms])
        numbers = tuple([weight for _, weight in terms])
        head, knot = function_text(transform, knot)
        left, right = "{}" if weights_in_identity else "()"
        text = (
            f"{head}{left}{_affine_text([child.text for child in features], numbers, bias)}{right}"
        )
        node = object.__new__(cls)
        _set(node, "weights", numbers)
        _set(node, "bias", bias)
        _set(node, "weights_in_identity", bool(weights_in_identity))
        _set(node, "knot", knot)
        own_width = len(numbers) + (bias is not None or weights_in_identity)
        names = [child.canonical for child in features]
        inner = (
            _affine_text(names, numbers, bias)
            if weights_in_identity
            else affine_topology(names, bias)
        )
        return intern(
            node,
            text=text,
            canonical=f"{transform.name}{left}{inner}{right}",
            children=features,
            width=own_width + sum([child.width for child in features]),
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

    def with_children(self, children: Sequence[Feature]) -> "Projection":
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
            weights_in_identity=self.weights_in_identity,
            knot=knot,
        )


@final
class Standardized(Feature):
    r"""A standardised feature, :math:`(F - c)/s`, as the argument of a transform.

    It adds neither width nor depth, because it spans the same models as :math:`F`. Inside a
    transform it makes :math:`g` independent of the units of :math:`F`: ``sin((a - 3.1)/2.4)``.
    The two numbers are learnt, and are not part of the identity.

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
        known = lookup(cls, text, (child,))
        if known is not None:
            return known
        node = object.__new__(cls)
        _set(node, "centre", centre)
        _set(node, "scale", scale)
        return intern(
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

    def with_children(self, children: Sequence[Feature]) -> "Standardized":
        """Standardise another child by the same numbers."""
        return Standardized(children[0], self.centre, self.scale)


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


def _merged_terms(children: Sequence[Feature], weights: Sequence[float]) -> list[Term]:
    """Sort the terms of a weighted sum and add up the weights of repeated features.

    Two features of one topology but of different inner weights stay two terms.
    """
    if len(children) != len(weights) or not children:
        msg = (
            "A projection needs one weight per feature, and at least one feature; "
            f"got {len(children)} features and {len(weights)} weights."
        )
        raise InvalidSettingError(msg)
    terms = list(zip(children, weights, strict=True))
    if len(set(map(id, children))) < len(children):
        parts: dict[int, list[float]] = {}
        for child, weight in terms:
            parts.setdefault(id(child), []).append(weight)
        distinct = {id(child): child for child in children}
        terms = [(distinct[i], rounded_sum(numbers)) for i, numbers in parts.items()]
    if not all([isfinite(weight) for _, weight in terms]):  # noqa: C419 (faster, and hot)
        msg = f"A projection's weights must be finite; got weights={list(weights)!r}."
        raise InvalidSettingError(msg)
    if len(terms) > 1:
        terms.sort(key=_term_order)
    return terms


def rounded_sum(numbers: Sequence[float]) -> float:
    """Add numbers, rounding once, so that their order does not matter; NaN on overflow."""
    try:
        # + 0.0 drops the sign of -0.0.
        return fsum(numbers) + 0.0
    except (OverflowError, ValueError):
        return nan


def _positive_first(terms: list[Term], bias: float | None) -> tuple[list[Term], float | None]:
    """Flip all signs if the first weight is negative; an even transform does not see them."""
    leading = next((weight for _, weight in terms if weight != 0.0), 0.0)
    if leading >= 0.0:
        return terms, bias
    flipped = [(child, 0.0 - weight) for child, weight in terms]
    return flipped, None if bias is None else 0.0 - bias


def _affine_text(names: Sequence[str], weights: Sequence[float], bias: float | None) -> str:
    """Write a weighted sum: ``0.3 + 1.2*x1 - 1.0*x4``."""
    if bias is None:
        parts = [f"{weights[0]!r}*{names[0]}"]
        names, weights = names[1:], weights[1:]
    else:
        parts = [repr(bias)]
    for name, weight in zip(names, weights, strict=True):
        parts.append(f" - {-weight!r}*{name}" if weight < 0.0 else f" + {weight!r}*{name}")
    return "".join(parts)


def affine_topology(names: Sequence[str], bias: float | None) -> str:
    """Write a weighted sum with ``?`` for every weight: ``? + ?*x1 + ?*x4``."""
    return ("" if bias is None else "? + ") + " + ".join([f"?*{name}" for name in names])


def _term_order(term: Term) -> tuple[int, str, str]:
    child = term[0]
    return child.complexity, child.canonical, child.text
