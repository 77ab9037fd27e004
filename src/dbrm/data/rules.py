"""Encode one input column, in training rows and new rows alike.

A rule sees one raw column. It expands levels into 0/1 columns and fills missing values; it
neither scales columns nor leaves them out. `dbrm.data.levels` learns rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from dbrm.data.columns import CODED, MISSING, UNSEEN, Kind, RawColumn, to_levels
from dbrm.data.skewness import LogScale
from dbrm.errors import InvalidDataError

__all__ = ["ColumnRule", "Missing", "Unseen"]

Missing = Literal["error", "indicator", "impute"]
Unseen = Literal["error", "none-of-these"]


@final
@dataclass(frozen=True, slots=True)
class ColumnRule:
    """How one input column becomes columns of the table.

    The columns of a rule are those that can be made; the names of a `Recipe` say which ones
    the table has.

    Parameters
    ----------
    name, kind
        Of the input column.
    levels
        Levels of a categorical column that occurred in training, each a 0/1 column
        ``name[level]``. Those of an ordered column are numbered from 1, a column ``name``; 0/1
        columns ``name[>=level]`` mark the rows from each level upwards.
    fill
        What replaces a missing value of a numeric or boolean column; None if missing values
        are errors. Of an ordered column the number of the level that stands for missing and
        unseen ones. A missing category is none of the levels.
    indicator
        Whether a 0/1 column ``name_missing`` marks the rows without a value.
    pooled
        Rare levels, which share one 0/1 column ``name[3 rare levels]``.
    own
        Those of the rare levels that have a 0/1 column of their own, too, which only the remainder
        of a model uses.
    n_missing
        Training rows without a value.
    log_scale
        Of a skewed column that is offered on the log scale, too, as ``log(name)`` or, where some
        values are zero, ``log(name + shift)``, the smallest training value and the shift; smaller
        values in new rows count as the smallest. None if it has no such column.
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    fill: float | None = None
    indicator: bool = False
    pooled: tuple[str, ...] = ()
    n_missing: int = 0
    log_scale: LogScale | None = None
    own: tuple[str, ...] = ()

    @property
    def coded(self) -> bool:
        """Whether the column has levels rather than numbers."""
        return self.kind in CODED

    @property
    def is_sound(self) -> bool:
        """Whether the parts fit together; those of a rule from a file may not."""
        if self.log_scale is not None:
            positive = self.log_scale.floor + self.log_scale.shift > 0.0
            if self.kind != "numeric" or not positive:
                return False
        if self.kind == "ordered":
            ranked = self.fill in range(1, len(self.levels) + 1)
            return ranked and not (self.pooled or self.own)
        if self.coded:
            return self.fill is None and set(self.own) <= set(self.pooled) <= set(self.levels)
        filled = self.fill is not None or not (self.n_missing or self.indicator)
        return filled and not (self.levels or self.pooled or self.own)

    @property
    def missing_column(self) -> str:
        """Name of the 0/1 column of rows without a value."""
        return f"{self.name}_missing"

    @property
    def log_column(self) -> str:
        """Name of the column on the log scale."""
        shift = 0.0 if self.log_scale is None else self.log_scale.shift
        return f"log({self.name} + {shift:g})" if shift else f"log({self.name})"

    @property
    def pool(self) -> str:
        """What the pooled levels are called together."""
        return f"{len(self.pooled)} rare levels"

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """The levels that are told apart, by what they are called; pooled ones are together."""
        rare = frozenset(self.pooled)
        found: dict[str, tuple[str, ...]] = {
            level: (level,) for level in self.levels if level not in rare
        }
        return found | ({self.pool: self.pooled} if self.pooled else {})

    @property
    def choices(self) -> dict[str, str]:
        """A level for each set of levels that any column tells apart, by what it is called."""
        apart = {level: level for level in self.levels if level not in set(self.pooled)}
        apart |= {level: level for level in self.own}
        rest = [level for level in self.pooled if level not in set(self.own)]
        return apart | ({f"{len(rest)} rare levels": rest[0]} if rest else {})

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Names of the 0/1 columns of single rare levels."""
        return tuple(f"{self.name}[{level}]" for level in self.own)

    @property
    def level_columns(self) -> tuple[str, ...]:
        """Names of the 0/1 columns of levels, and of the one that stands for no level."""
        return tuple(name for name in self.outputs if name != self.name)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the table's columns that can be made from this one."""
        if self.kind == "ordered":
            made = [self.name, *(f"{self.name}[>={level}]" for level in self.levels[1:])]
        elif self.coded:
            made = [*(f"{self.name}[{label}]" for label in self.classes), *self.own_columns]
        else:
            made = [self.name] if self.log_scale is None else [self.name, self.log_column]
        return (*made, self.missing_column) if self.indicator else tuple(made)

    def unseen(self, column: RawColumn) -> tuple[str, ...]:
        """Return the levels of a column of new data that did not occur in training."""
        if not self.coded:
            return ()
        known = frozenset(self.levels)
        found = column if column.coded else to_levels(column)
        used = np.bincount(found.values[found.values >= 0], minlength=len(found.levels))
        return tuple(
            level for level, n in zip(found.levels, used, strict=True) if n and level not in known
        )

    def conform(self, column: RawColumn) -> RawColumn:
        """Give a column of new data the kind and the codes of the training column."""
        if self.coded:
            return self._recode(column if column.coded else to_levels(column))
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
        if self.kind == "ordered":
            assert self.fill is not None
            number = np.where(column.values < 0, self.fill, column.values + 1.0)
            yield self.name, number
            for code, level in enumerate(self.levels[1:], start=1):
                yield f"{self.name}[>={level}]", number > code
        elif self.coded:
            code_of = {level: code for code, level in enumerate(self.levels)}
            for label, levels in self.classes.items():
                codes = [code_of[level] for level in levels]
                yield f"{self.name}[{label}]", _is_any(column.values, codes)
            for name, level in zip(self.own_columns, self.own, strict=True):
                yield name, column.values == code_of[level]
        elif self.fill is not None and column.missing.any():
            yield from self.at_value(np.where(column.missing, self.fill, column.values)).items()
        else:
            yield from self.at_value(column.values).items()
        if self.indicator:
            yield self.missing_column, column.missing

    def at_level(self, level: str | None) -> dict[str, float]:
        """Return the values of the columns for one level; for None, of none of the known ones."""
        code = UNSEEN if level is None else self.levels.index(level)
        row = RawColumn(self.name, self.kind, np.array([code]), self.levels)
        return {name: float(content[0]) for name, content in self.expand(row)}

    def at_class(self, label: str) -> dict[str, float]:
        """Return the values of the columns for one of `classes`; the pool is no single level."""
        values = self.at_level(self.classes[label][0])
        return values | dict.fromkeys(self.own_columns, 0.0) if self.pooled else values

    def at_value(self, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of numbers; on the log scale, too, where there is such a column."""
        if self.log_scale is None:
            return {self.name: values}
        floor, shift = self.log_scale
        return {self.name: values, self.log_column: np.log(np.maximum(values, floor) + shift)}

    def _recode(self, column: RawColumn) -> RawColumn:
        code_of = {level: code for code, level in enumerate(self.levels)}
        known = [code_of.get(level, UNSEEN) for level in column.levels]
        # One more entry at the end, for the code of missing values.
        codes = np.array([*known, MISSING])
        return RawColumn(self.name, self.kind, codes[column.values], self.levels)

    def _check_boolean(self, column: RawColumn) -> None:
        values = column.values[~column.missing]
        others = values[(values != 0) & (values != 1)]
        if others.size:
            msg = (
                f"Column {self.name!r} was boolean in training; it now must hold only "
                f"True/False or 0/1, but has {others[0].item()!r}."
            )
            raise InvalidDataError(msg)


def _is_any(values: npt.NDArray[Any], codes: Sequence[int]) -> npt.NDArray[Any]:
    return values == codes[0] if len(codes) == 1 else np.isin(values, codes)
