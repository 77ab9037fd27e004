"""Levels that are ranges of numbers have an order: ``25-34``, ``(10,20]``, ``under 5``, ``75+``.

It sees the levels of a column, not its rows.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np

from dbrm.data.columns import RawColumn

__all__ = ["order_number_ranges", "sorted_number_ranges"]

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_RANGE = re.compile(
    r"(?P<before><=?|≤|under|below|up to|less than|fewer than)?(?P<after>>=?|≥|over|above|more than"
    rf"|at least)?\s*[$€£]?(?P<low>{_NUMBER})(?:\s*(?:-|–|—|to)\s*[$€£]?(?P<high>{_NUMBER}))?"
    r"\s*(?P<more>\+|plus|(?:and|or) (?:more|over|above|older|up))?\s*(?P<unit>[a-z%$€£/.²³ ]*)",
    re.IGNORECASE,
)
_BRACKETS = re.compile(
    r"[\[(]\s*(?P<low>-inf|-?\d+(?:\.\d+)?)\s*,\s*(?P<high>\+?inf|-?\d+(?:\.\d+)?)\s*[\])]",
    re.IGNORECASE,
)
# A pair of numbers may be a score or a code; of three levels at least two must be ranges.
_LEAST_LEVELS, _LEAST_RANGES = 3, 2


def order_number_ranges(column: RawColumn) -> RawColumn:
    """Make a column of text ordered if its levels are ranges of numbers that do not overlap.

    Categories that the caller declared stay as they are.
    """
    if column.kind != "categorical" or column.declared:
        return column
    levels = sorted_number_ranges(column.levels)
    if levels is None:
        return column
    position = {level: code for code, level in enumerate(levels)}
    # One more entry at the end, so that the code of missing values stays.
    codes = np.array([*(position[level] for level in column.levels), -1])
    return replace(column, kind="ordered", values=codes[column.values], levels=tuple(levels))


def sorted_number_ranges(levels: Sequence[str]) -> list[str] | None:
    """Return the levels from the lowest range to the highest; None if they are no ranges."""
    if len(levels) < _LEAST_LEVELS:
        return None
    ends, units = {}, set()
    for level in levels:
        found = _parse(level)
        if found is None:
            return None
        ends[level] = found[0]
        units |= {found[1]} - {""}
    in_order = sorted(levels, key=ends.__getitem__)
    apart = all(ends[lower][1] <= ends[upper][0] for lower, upper in pairwise(in_order))
    n_ranges = sum(-inf < low < high < inf for low, high in ends.values())
    return in_order if apart and n_ranges >= _LEAST_RANGES and len(units) <= 1 else None


def _parse(level: str) -> tuple[tuple[float, float], str] | None:
    """Both ends of a range and its unit; None if the text is no number and no range."""
    text = level.strip()
    if match := _BRACKETS.fullmatch(text):
        return (float(match["low"]), float(match["high"])), ""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    low = float(match["low"].replace(",", ""))
    unit = match["unit"].strip().casefold()
    if match["high"]:
        high = float(match["high"].replace(",", ""))
        sound = low < high and not (match["before"] or match["after"] or match["more"])
        return ((low, high), unit) if sound else None
    if match["before"]:
        return None if match["after"] or match["more"] else ((-inf, low), unit)
    return (low, inf if match["after"] or match["more"] else low), unit
