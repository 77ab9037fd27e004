"""Checks of one column of text or categories, for `dbrm.data.check`.

What a level looks like (a number, a date, another spelling) is read off its text alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from dbrm.data.columns import SPLIT_DATES, RawColumn
from dbrm.data.levels import MOST_LEVELS, count_levels, is_date
from dbrm.data.text_numbers import NumberFormat, find_format, is_number, without_marks
from dbrm.errors import quote

__all__ = ["Finding", "check_levels"]

# Levels looked at, and the share of them that must be alike.
_LOOKED_AT, _MOST = 2_000, 0.5
# Fewer plain numbers than this may be names of groups.
_FEW_NUMBERS = 10
# Names of groups, such as 136A beside 136.
_CODE = re.compile(r"\s*[A-Za-z]?\d*[A-Za-z]?\s*")


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of the data check.

    Parameters
    ----------
    kind
        What it is about, in a word or two.
    column
        Name of the column; empty if it is about the whole table.
    seen, advice
        What was seen, as the end of a sentence about the column, and what to do.
    """

    kind: str
    column: str
    seen: str
    advice: str

    @property
    def message(self) -> str:
        """Both in one text."""
        subject = f"Column {self.column!r} {self.seen}" if self.column else self.seen
        return f"{subject}. {self.advice}"


def check_levels(column: RawColumn, n_rows: int) -> Iterator[Finding]:
    """Yield what looks wrong about a column of levels, the likeliest cause only."""
    if not column.levels:
        return
    finding = None if column.declared else _check_text(column)
    finding = finding or _spellings(column) or _many_levels(column, n_rows)
    if finding is not None:
        yield finding


def _check_text(column: RawColumn) -> Finding | None:
    levels = column.levels[:_LOOKED_AT]
    form = find_format(levels)
    if form is not None:
        return _numbers_as_text(column, form)
    n_dates = sum(map(is_date, levels))
    if n_dates > _MOST * len(levels):
        other = next((level for level in levels if not is_date(level)), None)
        mixed = "" if other is None else f", with others such as {other!r}"
        example = next(filter(is_date, levels))
        return Finding(
            "dates",
            column.name,
            f"holds dates as text, such as {example!r}{mixed}",
            SPLIT_DATES,
        )
    values = without_marks(levels)
    numbers = [level for level in values if is_number(level)]
    if len(numbers) > _MOST * len(values) and len(numbers) > 3:
        others = [level for level in values if level not in set(numbers)]
        if all(map(_CODE.fullmatch, values)):
            return None
        shown = others or _of_other_units(numbers)
        return Finding(
            "numbers and text",
            column.name,
            f"mixes numbers such as {numbers[0]!r} with {quote(shown, limit=3)}: it counts as "
            f"{len(column.levels)} categories",
            "Make it all numbers in one unit (pandas.to_numeric), with missing values where "
            "there is no number; or leave it out.",
        )
    return None


def _of_other_units(numbers: list[str]) -> list[str]:
    """The first number whose format is not that of the first one."""
    return next(([text] for text in numbers if find_format([numbers[0], text]) is None), [])


def _numbers_as_text(column: RawColumn, form: NumberFormat) -> Finding | None:
    levels = without_marks(column.levels)
    padded = any(re.match(r"0\d", level.strip()) for level in levels)
    plain = form.is_plain and all(re.fullmatch(r"\s*\d+\s*", level) for level in levels)
    if plain and (padded or len(levels) <= _FEW_NUMBERS):
        return None
    ways = []
    if form.decimal == ",":
        ways.append("decimal commas")
    if form.thousands:
        ways.append("marks between thousands")
    if form.unit:
        ways.append(f"the unit {form.unit!r}")
    how = f" with {' and '.join(ways)}" if ways else ""
    example = next((level for level in levels if "," in level), levels[0])
    options = "".join(
        f", {name}={mark!r}"
        for name, mark in (("decimal", form.decimal), ("thousands", form.thousands))
        if mark not in (".", "")
    )
    advice = (
        f"Read the file with pandas.read_csv(path{options})"
        if options
        else ("Turn it into numbers with pandas.to_numeric(X[name], errors='coerce')")
    )
    if form.unit:
        advice = (
            f"Take the unit out, as with X[name].str.replace({form.unit!r}, ''), first. {advice}"
        )
    return Finding(
        "numbers as text",
        column.name,
        f"holds numbers written as text{how}, such as {example!r}: it counts as "
        f"{len(column.levels)} categories",
        f"{advice}.",
    )


def _spellings(column: RawColumn) -> Finding | None:
    same: dict[str, list[str]] = {}
    for level in column.levels[:_LOOKED_AT]:
        same.setdefault(" ".join(level.split()).casefold(), []).append(level)
    pairs = [levels for levels in same.values() if len(levels) > 1]
    if not pairs:
        return None
    return Finding(
        "spellings",
        column.name,
        f"has levels that differ only in capitals or blanks: {quote(pairs[0])}",
        "Unless they are different, make them one: X[name].str.strip().str.lower().",
    )


def _many_levels(column: RawColumn, n_rows: int) -> Finding | None:
    counts = count_levels(column)
    usual = [n for n in counts.rows.values() if n >= counts.enough]
    n_levels = len(counts.rows)
    if not usual or column.kind == "ordered" or n_levels <= max(20, MOST_LEVELS * (n_rows > 500)):
        return None
    if n_levels <= MOST_LEVELS and n_levels < counts.n_rows / 10:
        return None
    return Finding(
        "many levels",
        column.name,
        f"has {n_levels}{' or more' if n_rows > counts.n_rows else ''} levels in {n_rows} rows",
        "Rare ones share a column. Merge levels that belong together, or offer "
        f"latent=dbrm.latent.RandomIntercept({column.name!r}).",
    )
