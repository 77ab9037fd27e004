"""Learn the rule of one column from its training rows, and which of its columns to offer.

Nothing here depends on the names of levels or on their order, unless they are an ordered
category (or ranges of numbers, `dbrm.data.number_ranges`): the result is the same, up to names,
however levels are called.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column
from dbrm.data.columns import SPLIT_DATES, RawColumn
from dbrm.data.rules import ColumnRule, Missing
from dbrm.data.skewness import find_log_scale
from dbrm.data.table import is_binary
from dbrm.errors import InvalidDataError

__all__ = [
    "LevelCounts",
    "count_levels",
    "is_date",
    "learn_rule",
    "offered_columns",
    "why_left_out",
]

# A level is rare with fewer rows than this, and than this share of all rows.
FEW_ROWS, SMALL_SHARE = 5, 1 / 20
# Levels of one column that have columns of their own, the most frequent first.
MOST_LEVELS = 50
# Rows of a rare level that has a column for the remainder, and the most such levels.
LEAST_ROWS, MOST_RARE_LEVELS = 2, 200
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})|\d{8}T\d{4,6}"
    # 5 Mar 2019, 05-MAR-19, March 5, 2019
    rf"|\d{{1,2}}(st|nd|rd|th)?[-/. ]+{_MONTH},?[-/. ]+(\d{{4}}|\d{{2}})"
    rf"|{_MONTH}[-/. ]+\d{{1,2}}(st|nd|rd|th)?,?[-/. ]+\d{{4}})"
    r"([T ,]+\d{1,2}:\d{2}.*)?\s*",
    re.IGNORECASE,
)


@final
@dataclass(frozen=True, slots=True)
class LevelCounts:
    """How often the levels of a column occur; a row of weight two counts twice.

    Parameters
    ----------
    rows
        Number of rows by level, in the order in which levels occur first.
    n_missing, n_rows
        Rows without a value, and all rows.
    """

    rows: Mapping[str, float]
    n_missing: float
    n_rows: float

    @property
    def enough(self) -> float:
        """The least rows of a level that is not rare."""
        return min(FEW_ROWS, SMALL_SHARE * self.n_rows)

    @property
    def by_frequency(self) -> list[str]:
        """The levels, the most frequent first; among equals the one that occurs first."""
        return sorted(self.rows, key=lambda level: -self.rows[level])


def count_levels(column: RawColumn, weights: Column | None = None) -> LevelCounts:
    """Count the levels of a column in its rows."""
    absent = column.missing
    weight = np.ones(absent.size) if weights is None else weights
    rows: dict[str, float] = {}
    if column.coded:
        present = column.values[~absent]
        counts = np.bincount(present, weight[~absent], minlength=len(column.levels))
        codes, first = np.unique(present, return_index=True)
        rows = {column.levels[code]: float(counts[code]) for code in codes[np.argsort(first)]}
    return LevelCounts(rows, float(weight[absent].sum()), float(weight.sum()))


def learn_rule(
    column: RawColumn,
    missing: Missing,
    counts: LevelCounts,
    *,
    weights: Column | None = None,
    offer_log: bool = False,
    rare_columns: bool = False,
) -> ColumnRule:
    """Learn the rule of a column.

    `counts` are those of all rows, `column` may be a sample. With `offer_log` a skewed
    column without negative values is offered on the log scale, too. With `rare_columns` rare
    levels have columns of their own beside the one that they share.
    """
    if column.coded and not column.declared:
        _refuse_dates(column)
    levels, fill, log_scale = column.levels, None, None
    pooled: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    if column.kind == "ordered":
        fill = 1.0 + _middle(column, weights)[0]
    elif column.kind == "categorical":
        levels, pooled = _split_levels(column.levels, counts)
        if rare_columns:
            own = _rare_with_rows(pooled or column.levels, counts) if pooled or not levels else ()
            # A column of rare levels only, some of which have rows to learn from.
            levels, pooled = (
                (column.levels, column.levels) if own and not levels else (levels, pooled)
            )
    elif missing != "error":
        fill = _median(column, weights)
    if offer_log and column.kind == "numeric":
        log_scale = find_log_scale(column.values[~column.missing].astype(np.float64))
    return ColumnRule(
        column.name,
        column.kind,
        levels,
        fill,
        # With nothing observed both the column and its indicator would be constant.
        indicator=_marks_missing(column, missing) and 0 < counts.n_missing < counts.n_rows,
        pooled=pooled,
        n_missing=round(counts.n_missing),
        log_scale=log_scale,
        own=own,
    )


def _marks_missing(column: RawColumn, missing: Missing) -> bool:
    """Whether a column of zeros and ones marks missing values; not where numbers are imputed."""
    return missing == "indicator" or (missing == "impute" and column.kind != "numeric")


def offered_columns(
    rule: ColumnRule, counts: LevelCounts, *, whole_factors: bool = False
) -> tuple[str, ...]:
    """Return the columns of a rule that the table has, unless they turn out to be redundant.

    Every level has one, the first among them, so that any level can be in a model by itself.
    Of two classes the second would be an affine copy of the first: the one with fewer rows is
    kept. With `whole_factors` a model contains all columns of a factor or none, and the level
    with the most rows has none.
    """
    if rule.kind == "ordered":
        return _offered_steps(rule, counts, whole_factors=whole_factors)
    if not (rule.coded and rule.levels):
        return rule.outputs
    if set(rule.pooled) == set(rule.levels):
        return (rule.missing_column,) if rule.indicator else ()
    rows = {
        f"{rule.name}[{label}]": sum(counts.rows[level] for level in levels)
        for label, levels in rule.classes.items()
    }
    position = {f"{rule.name}[{level}]": j for j, level in enumerate(counts.by_frequency)}
    # The pool is last of all, but for the rows without a value.
    offered = sorted(rows, key=lambda name: position.get(name, len(position)))
    if rule.indicator:
        offered.append(rule.missing_column)
        rows[rule.missing_column] = counts.n_missing
    if whole_factors or len(offered) <= 2:
        offered.remove(max(offered, key=lambda name: rows[name]))
    return tuple(offered)


def why_left_out(rule: ColumnRule, counts: LevelCounts, offered: tuple[str, ...]) -> str:
    """Say why the levels or values of a column are not in the table; empty if they are."""
    if rule.kind == "categorical" and counts.rows and set(rule.pooled) == set(rule.levels):
        return f"{len(counts.rows)} levels, all rare"
    return "" if offered else "constant"


def _offered_steps(
    rule: ColumnRule, counts: LevelCounts, *, whole_factors: bool
) -> tuple[str, ...]:
    """Return the number of the level, and steps with enough rows on either side of them."""
    rows = np.array([counts.rows.get(level, 0) for level in rule.levels])
    above = rows[::-1].cumsum()[::-1]
    occurs = [j for j in range(len(rule.levels)) if rows[j] > 0]
    steps = occurs[1:]
    if len(occurs) > 2 and not whole_factors:
        sides = np.minimum(above, above[:1] - above)
        steps = [j for j in steps if sides[j] >= counts.enough]
        steps = steps if len(steps) <= MOST_LEVELS else []
    offered = [f"{rule.name}[>={rule.levels[j]}]" for j in steps]
    if len(occurs) > 2 and not whole_factors:
        offered.insert(0, rule.name)
    if rule.indicator:
        offered.append(rule.missing_column)
    return tuple(offered)


def _split_levels(
    levels: tuple[str, ...], counts: LevelCounts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the levels, and those of them that share a column; none if all are rare."""
    usual = [level for level in counts.by_frequency if counts.rows[level] >= counts.enough]
    if not usual:
        return (), ()
    own = frozenset(usual[:MOST_LEVELS])
    pooled = tuple(level for level in levels if level not in own)
    return levels, pooled if len(pooled) > 1 else ()


def _rare_with_rows(rare: tuple[str, ...], counts: LevelCounts) -> tuple[str, ...]:
    """Return the rare levels, the most frequent if there are many; none if all have one row.

    What the variance of a column's levels is, is learnt where levels have several rows; then the
    effect of a level with one row is known, too.
    """
    among = set(rare)
    if not any(counts.rows[level] >= LEAST_ROWS for level in rare):
        return ()
    kept = set([level for level in counts.by_frequency if level in among][:MOST_RARE_LEVELS])
    return tuple(level for level in rare if level in kept)


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without the time of day."""
    return _DATE.fullmatch(text) is not None


def _refuse_dates(column: RawColumn) -> None:
    if column.levels and all(map(is_date, column.levels)):
        msg = (
            f"Column {column.name!r} holds dates as text, such as {column.levels[0]!r}. "
            f"{SPLIT_DATES} If they are names of groups, X[name].astype('category') says so."
        )
        raise InvalidDataError(msg)


def _median(column: RawColumn, weights: Column | None) -> float:
    """Return the median; of zeros and ones the more frequent, so that they stay binary."""
    low, high = _middle(column, weights)
    if {low, high} == {0.0, 1.0} and is_binary(column.values[~column.missing]):
        return 0.0
    # Halved before they are added, because the sum of two huge numbers may overflow.
    return 0.5 * low + 0.5 * high


def _middle(column: RawColumn, weights: Column | None) -> tuple[float, float]:
    """Return the two values in the middle, one or the same; zero if there is none."""
    present = ~column.missing
    if not present.any():
        return 0.0, 0.0
    values = column.values[present].astype(np.float64)
    order = np.argsort(values, kind="stable")
    total = np.cumsum(np.ones(values.size) if weights is None else weights[present][order])
    half = 0.5 * total[-1]
    low, high = np.searchsorted(total, half, "left"), np.searchsorted(total, half, "right")
    return float(values[order[low]]), float(values[order[min(high, values.size - 1)]])
