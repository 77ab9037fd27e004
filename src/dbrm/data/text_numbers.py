"""Recognise numbers that are written as text: decimal commas, thousands separators, units, gaps.

It sees texts, not columns or files. A column of text is read as numbers only if all of its texts
are numbers in one format, or marks of a missing value.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import nan
from typing import final

__all__ = ["NumberFormat", "find_format", "is_missing_mark", "is_number", "without_marks"]

# What people write where a value is missing.
_MISSING = re.compile(
    r"\s*(-{1,3}|\.{1,2}|\?{1,2}|\*|#?n/?a|n\.a\.|nan|null|none|nil|missing|unknown|n\.?d\.?|k\.a\."
    r"|#(div/0|value|ref|num|null|name)[!?]|not (available|recorded))?\s*",
    re.IGNORECASE,
)

_SIGNS = str.maketrans({"\u2212": "-", "\u2013": "-"})
_SPACES = "\u00a0\u202f\u2009"
_TEXT = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<prefix>[$€£¥]|USD|EUR|GBP|CHF)?\s*(?P<inner>[+-]?)"
    r"(?P<digits>\d[\d.,'\u2019 ]*|[.,]\d+)(?P<exponent>[eE][+-]?\d+)?"
    r"\s*(?P<suffix>[%‰€$£¥°µμA-Za-z][A-Za-z0-9%°µμ²³/^*.\-]*( ?[A-Za-z/]+)?)?"
)
# Three digits after every separator, and one to three before the first.
_THOUSANDS = {
    mark: re.compile(rf"[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+") for mark in ",.' \u2019"
}


@final
@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal, thousands
        The marks; `thousands` is empty if there is none.
    unit
        What stands before or behind every number, such as ``kg`` or ``%``.
    ambiguous
        Whether every text reads as a number with a decimal comma and, equally well, with
        commas between thousands.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    ambiguous: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether Python reads such numbers as they are."""
        return self == NumberFormat()

    def read(self, text: str) -> float:
        """Return the number; NaN for a mark of a missing value."""
        parts = _split(text)
        if parts is None:
            return nan
        sign, digits, exponent, _ = parts
        digits = digits.replace(self.thousands, "") if self.thousands else digits
        return float(f"{sign}{digits.replace(self.decimal, '.')}{exponent}")


def find_format(texts: Collection[str], *, decimal: str | None = None) -> NumberFormat | None:
    """Return the format in which all texts are numbers; None if there is no such format.

    Parameters
    ----------
    texts
        Different texts of a column; marks of missing values are passed over.
    decimal
        The decimal mark, if it is known.
    """
    parts = [_split(text) for text in without_marks(texts)]
    if not parts or any(part is None for part in parts):
        return None
    found = [part for part in parts if part is not None]
    units = {unit for *_, unit in found}
    if len(units) > 1:
        return None
    numbers = [digits for _, digits, _, _ in found]
    marks = _find_marks(numbers, decimal)
    if marks is None:
        return None
    point, thousands, ambiguous = marks
    form = NumberFormat(point, thousands, units.pop(), ambiguous)
    try:
        [form.read(text) for text in without_marks(texts)]
    except ValueError:
        return None
    return form


def without_marks(texts: Iterable[str]) -> list[str]:
    """Return the texts that are not marks of a missing value."""
    return [text for text in texts if not is_missing_mark(text)]


def is_missing_mark(text: str) -> bool:
    """Whether a text, such as ``?`` or ``n/a``, says that a value is missing."""
    return _MISSING.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether a text is a number in any format."""
    return find_format([text]) is not None


def _split(text: str) -> tuple[str, str, str, str] | None:
    """Return sign, digits with their marks, exponent and unit of a text."""
    plain = text.strip().translate(_SIGNS)
    for space in _SPACES:
        plain = plain.replace(space, " ")
    match = _TEXT.fullmatch(plain)
    if match is None or (match["sign"] and match["inner"]):
        return None
    unit = match["prefix"] or match["suffix"] or ""
    if match["prefix"] and match["suffix"]:
        return None
    digits = match["digits"].strip()
    return match["sign"] or match["inner"], digits, match["exponent"] or "", unit


def _find_marks(numbers: list[str], decimal: str | None) -> tuple[str, str, bool] | None:
    """Return the decimal mark, the thousands mark, and whether they are a guess."""
    used = {mark for mark in ",.' \u2019" if any(mark in number for number in numbers)}
    spaced = used & set("' \u2019")
    if len(spaced) > 1 or (spaced and not _are_grouped(numbers, *spaced)):
        return None
    if used >= {",", "."}:
        both = [number for number in numbers if "," in number and "." in number]
        ends = {max(",.", key=number.rfind) for number in both}
        point = decimal or (ends.pop() if len(ends) == 1 else None)
        if spaced or point is None:
            return None
        return point, "," if point == "." else ".", False
    single = used & {",", "."}
    if not single:
        return decimal or ".", spaced.pop() if spaced else "", False
    mark = single.pop()
    if spaced:
        return mark, spaced.pop(), False
    grouped = [number for number in numbers if mark in number]
    as_thousands = all(_THOUSANDS[mark].fullmatch(number) for number in grouped)
    repeated = any(number.count(mark) > 1 for number in grouped)
    if decimal is not None:
        return (decimal, mark, False) if decimal != mark and as_thousands else (mark, "", False)
    if repeated:
        return ("," if mark == "." else ".", mark, False) if as_thousands else None
    return mark, "", as_thousands and mark == ","


def _are_grouped(numbers: list[str], mark: str) -> bool:
    """Whether the mark stands between thousands wherever it occurs."""
    whole = [re.split("[.,]", number)[0] for number in numbers if mark in number]
    return all(_THOUSANDS[mark].fullmatch(number) for number in whole)
