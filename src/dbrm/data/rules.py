"""Encode one input column, in training rows and new rows alike.

A rule sees one raw column. It expands categories into indicators and fills missing values; it
neither scales columns nor leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from dbrm.data.columns import CODED, Kind, RawColumn, spell_level
from dbrm.errors import InvalidDataError, quote

__all__ = ["ColumnRule", "Missing", "learn_rule"]

Missing = Literal["error", "indicator"]

# A text column with more levels than this is an identifier or free text.
MAX_LEVELS = 1000


@final
@dataclass(frozen=True, slots=True)
class ColumnRule:
    """How one input column becomes columns of the table.

    Parameters
    ----------
    name, kind
        Of the input column.
    levels
        Levels of a categorical column that occurred in training. The first is the
        reference; each other one becomes a 0/1 column ``name[level]``.
    fill
        What replaces a missing value of a numeric or boolean column; None if
        missing values are errors. A missing category becomes the reference.
    indicator
        Whether a 0/1 column ``name_missing`` marks the rows that were filled.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    fill: float | None = None
    indicator: bool = False

    @property
    def coded(self) -> bool:
        """Whether the column has levels rather than numbers."""
        return self.kind in CODED

    @property
    def level_columns(self) -> tuple[str, ...]:
        """Names of the 0/1 columns of levels, all but the reference."""
        return tuple(f"{self.name}[{level}]" for level in self.levels[1:])

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the table's columns made from this one."""
        made = self.level_columns if self.coded else (self.name,)
        return (*made, f"{self.name}_missing") if self.indicator else made

    def conform(self, column: RawColumn) -> RawColumn:
        """Give a column of new data the kind and the codes of the training column."""
        if self.coded:
            return self._recode(column if column.coded else _to_levels(column))
        if column.coded:
            if column.levels:
                msg = (
                    f"Column {self.name!r} held numbers in training but now holds text or "
                    f"categories, such as {column.levels[0]!r}."
                )
                raise InvalidDataError(msg)
            return RawColumn(self.name, "numeric", np.full(column.values.shape, np.nan))
        if self.kind == "boolean" and column.kind == "numeric":
            self._check_boolean(column)
        return column

    def expand(self, column: RawColumn) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield the table's columns, with their names, made from a conforming column."""
        if self.coded:
            for code, name in enumerate(self.level_columns, start=1):
                yield name, column.values == code
        elif self.fill is not None and column.missing.any():
            yield self.name, np.where(column.missing, self.fill, column.values)
        else:
            yield self.name, column.values
        if self.indicator:
            yield f"{self.name}_missing", column.missing

    def _recode(self, column: RawColumn) -> RawColumn:
        unseen = [level for level in column.levels if level not in self.levels]
        if unseen:
            msg = (
                f"Column {self.name!r} has levels that did not occur in training: {quote(unseen)}. "
                f"Known levels are {quote(self.levels)}."
            )
            raise InvalidDataError(msg)
        codes = np.array([*(self.levels.index(level) for level in column.levels), -1])
        return RawColumn(self.name, "categorical", codes[column.values], self.levels)

    def _check_boolean(self, column: RawColumn) -> None:
        values = column.values[~column.missing]
        others = values[(values != 0) & (values != 1)]
        if others.size:
            msg = (
                f"Column {self.name!r} was boolean in training; it now must hold only "
                f"True/False or 0/1, but has {others[0].item()!r}."
            )
            raise InvalidDataError(msg)


def learn_rule(column: RawColumn, missing: Missing) -> ColumnRule:
    """Learn the rule of a column from its training rows."""
    if len(column.levels) > MAX_LEVELS:
        msg = (
            f"Column {column.name!r} has {len(column.levels)} different text values; at most "
            f"{MAX_LEVELS} can be levels of a category. If it is an identifier, leave it out; if "
            "it is numbers stored as text, convert it."
        )
        raise InvalidDataError(msg)
    if missing == "error":
        return ColumnRule(column.name, column.kind, column.levels)
    absent = column.missing
    # With nothing observed both the column and its indicator would be constant.
    indicator = bool(absent.any() and not absent.all())
    fill = None if column.coded else _median(column.values[~absent])
    return ColumnRule(column.name, column.kind, column.levels, fill, indicator)


def _median(observed: npt.NDArray[Any]) -> float:
    """Return the median; of zeros and ones the more frequent, so that they stay binary."""
    if observed.size == 0:
        return 0.0
    # Halved before and doubled after, because the mean of two huge numbers may overflow.
    median = 2.0 * float(np.median(0.5 * observed.astype(np.float64)))
    is_binary = bool(np.all((observed == 0) | (observed == 1)))
    return float(np.floor(median)) if is_binary else median


def _to_levels(column: RawColumn) -> RawColumn:
    """Convert numbers or booleans to levels, by their text."""
    absent = column.missing
    values = column.values.astype(np.bool_) if column.kind == "boolean" else column.values
    distinct, inverse = np.unique(values[~absent], return_inverse=True)
    codes = np.full(values.shape, -1)
    codes[~absent] = inverse
    levels = tuple(spell_level(value) for value in distinct)
    return RawColumn(column.name, "categorical", codes, levels)
