"""The canonical order of factors and terms, and the text of weighted sums.

Order follows the topology first, so that it never depends on fitted numbers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum, isfinite, nan
from operator import attrgetter

from dbrm.errors import InvalidSettingError
from dbrm.features.base import Feature

__all__ = [
    "affine_text",
    "affine_topology",
    "merged_terms",
    "positive_first",
    "rounded_sum",
    "sorted_factors",
]

_simplest_first = attrgetter("complexity", "canonical", "text")

Term = tuple[Feature, float]


def _term_order(term: Term) -> tuple[int, str, str]:
    child = term[0]
    return child.complexity, child.canonical, child.text


def sorted_factors(factors: Iterable[Feature]) -> tuple[Feature, ...]:
    """Sort the factors: highest power first, then the simplest, then by text."""
    ordered = sorted(factors, key=_simplest_first)
    names = [factor.canonical for factor in ordered]
    if len(set(names)) < len(names):
        powers = Counter(names)
        # The sort is stable, so equal powers stay in the order above.
        ordered.sort(key=lambda factor: -powers[factor.canonical])
    return tuple(ordered)


def merged_terms(children: Sequence[Feature], weights: Sequence[float]) -> list[Term]:
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


def positive_first(terms: list[Term], bias: float | None) -> tuple[list[Term], float | None]:
    """Flip all signs if the first weight is negative: the same thing under an even transform."""
    leading = next((weight for _, weight in terms if weight != 0.0), 0.0)
    if leading >= 0.0:
        return terms, bias
    flipped = [(child, 0.0 - weight) for child, weight in terms]
    return flipped, None if bias is None else 0.0 - bias


def affine_text(names: Sequence[str], weights: Sequence[float], bias: float | None) -> str:
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
