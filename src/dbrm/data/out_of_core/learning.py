"""Learn a recipe from batches, in three passes over all rows.

As `dbrm.data.learning`, with two differences. Affine copies of columns, and medians, are found
in a sample of the rows. Levels of categories are in alphabetical order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from dbrm._typing import Column, IntArray
from dbrm.data.columns import CODED, Kind, RawColumn, read_column
from dbrm.data.learning import Offer, warn_left_out
from dbrm.data.levels import LevelCounts, count_levels, learn_rule
from dbrm.data.number_ranges import order_number_ranges
from dbrm.data.out_of_core.batches import AbstractBatches, Batch
from dbrm.data.out_of_core.rows import BatchRows, Block, choose_sample, read_extra, rows_within
from dbrm.data.recipe import Recipe, assemble
from dbrm.data.redundancy import find_redundant
from dbrm.data.rules import ColumnRule, Missing, Unseen
from dbrm.data.standardize import Scale
from dbrm.errors import InvalidDataError

__all__ = ["learn_from_batches"]

# Rows in which affine copies and medians are found.
_SAMPLE = 50_000


def learn_from_batches(
    batches: AbstractBatches,
    *,
    scale: Scale = None,
    missing: Missing = "error",
    unseen: Unseen = "error",
    whole_factors: bool = False,
    log_covariates: bool = False,
) -> tuple[Recipe, BatchRows]:
    """Check all rows and learn how to prepare them and new data."""
    seen = _summarize(batches)
    for column in seen.values():
        column.check(missing)
    rules, sample = _rules(batches, seen, missing, log_covariates=log_covariates)
    counts = [seen[rule.name].counts for rule in rules]
    offer = Offer.of(rules, counts, whole_factors=whole_factors)
    made = offer.names
    values = assemble(rules, sample, made, sample[0].values.size)
    constant = {name for name, column in seen.items() if column.constant}
    redundant = {
        j: first
        for j, first in find_redundant(values).items()
        # What is constant in the sample may vary in other rows.
        if first is not None or made[j] in constant
    }
    kept = [name for j, name in enumerate(made) if j not in redundant]
    dropped = offer.left_out(redundant)
    warn_left_out(dropped, n_kept=len(kept))
    recipe = Recipe(rules, tuple(kept), dropped, missing, None, named=batches.named, unseen=unseen)
    binary = {name for rule in rules for name in _binary_outputs(rule, seen[rule.name])}
    rows = BatchRows(batches, recipe, tuple(name in binary for name in kept))
    if scale is None:
        return recipe, rows
    means, sds = _scaling(rows)
    recipe = replace(recipe, scale=scale, means=means, sds=sds)
    return recipe, BatchRows(batches, recipe, rows.binary)


def _binary_outputs(rule: ColumnRule, seen: "_Summary") -> list[str]:
    """Return the 0/1 columns of a rule: indicators, and numbers that are all zero or one."""
    if rule.coded:
        return list(rule.level_columns)
    return [
        name
        for name in rule.outputs
        if name == rule.missing_column or (name == rule.name and seen.binary)
    ]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Summary:
    """Summary of a column over all rows seen."""

    name: str
    kind: Kind
    n_infinite: int
    low: float
    high: float
    binary: bool
    levels: tuple[str, ...]
    declared: bool
    counts: LevelCounts

    @property
    def constant(self) -> bool:
        return self.kind not in CODED and not (self.low < self.high or self.counts.n_missing)

    def join(self, other: "_Summary") -> "_Summary":
        parts = (self, other)
        kinds = {part.kind for part in parts if part.counts.n_missing < part.counts.n_rows}
        if len(kinds) > 1 and kinds & CODED:
            msg = f"Column {self.name!r} holds text in some rows and numbers in others."
            raise InvalidDataError(msg)
        kind: Kind = "numeric" if len(kinds) > 1 else next(iter(kinds), self.kind)
        return _Summary(
            self.name,
            kind,
            self.n_infinite + other.n_infinite,
            min(self.low, other.low),
            max(self.high, other.high),
            self.binary and other.binary,
            (self.levels or other.levels)
            if kind == "ordered"
            else tuple(sorted({*self.levels, *other.levels})),
            self.declared or other.declared,
            # `other` is the part that came before.
            _add_counts(other.counts, self.counts),
        )

    def check(self, missing: Missing) -> None:
        """Raise for values that a model cannot use."""
        if self.n_infinite:
            msg = (
                f"X contains inf: column {self.name!r} has {self.n_infinite}. "
                "Remove these rows or repair the values."
            )
            raise InvalidDataError(msg)
        if self.counts.n_missing and missing == "error":
            msg = (
                f"X contains NaN or missing values: column {self.name!r} has "
                f"{self.counts.n_missing}. "
                "Remove these rows, or set missing='indicator'."
            )
            raise InvalidDataError(msg)


def _summarize(batches: AbstractBatches) -> dict[str, _Summary]:
    seen: dict[str, _Summary] = {}
    for part in batches.map(_summarize_batch, batches.names):
        seen = {name: found.join(seen[name]) if seen else found for name, found in part.items()}
    return seen


def _summarize_batch(batch: Batch) -> dict[str, _Summary]:
    for name, content in batch.extras.items():
        read_extra(name, content, batch.raw.n_rows)
    columns = zip(batch.raw.names, batch.raw.contents, strict=True)
    return {name: _summarize_column(read_column(name, content)) for name, content in columns}


def _summarize_column(column: RawColumn) -> _Summary:
    absent = column.missing
    low, high, binary, n_infinite = np.inf, -np.inf, True, 0
    if not column.coded:
        values = column.values[~absent] if absent.any() else column.values
        if values.size:
            low, high = float(values.min()), float(values.max())
        if not (np.isfinite(low) and np.isfinite(high)) and values.size:
            n_infinite = int(np.isinf(values).sum())
        binary = bool(low >= 0.0 and high <= 1.0 and np.all((values == 0) | (values == 1)))
        binary = binary or not values.size
    return _Summary(
        column.name,
        column.kind,
        n_infinite,
        low,
        high,
        binary,
        column.levels if column.kind == "ordered" else tuple(sorted(column.levels)),
        column.declared,
        count_levels(column),
    )


def _add_counts(first: LevelCounts, second: LevelCounts) -> LevelCounts:
    rows = dict(first.rows)
    for level, count in second.rows.items():
        rows[level] = rows.get(level, 0) + count
    return LevelCounts(rows, first.n_missing + second.n_missing, first.n_rows + second.n_rows)


def _rules(
    batches: AbstractBatches,
    seen: Mapping[str, _Summary],
    missing: Missing,
    *,
    log_covariates: bool,
) -> tuple[tuple[ColumnRule, ...], list[RawColumn]]:
    """Return the rule of every column, and a sample of the columns that conforms to it."""
    take = _TakeRaw(choose_sample(batches.n_rows, _SAMPLE))
    parts = list(batches.map(take, batches.names))
    rules, sample = [], []
    for j, name in enumerate(batches.names):
        kind, levels = seen[name].kind, seen[name].levels
        plain = ColumnRule(name, kind, levels)
        columns = [plain.conform(part[j]) for part in parts if part[j].values.size]
        values = np.concatenate([column.values for column in columns])
        whole = order_number_ranges(RawColumn(name, kind, values, levels, seen[name].declared))
        offered = log_covariates and seen[name].low >= 0.0 and f"log({name})" not in batches.names
        rule = learn_rule(whole, missing, seen[name].counts, offer_log=offered)
        if rule.log_scale is not None:
            # A zero may be outside the sample.
            scale = rule.log_scale._replace(floor=seen[name].low)
            sound = scale.floor + scale.shift > 0.0
            rule = replace(rule, log_scale=scale if sound else None)
        rules.append(rule)
        sample.append(whole)
    return tuple(rules), sample


@final
@dataclass(frozen=True, slots=True, eq=False)
class _TakeRaw:
    """The sampled rows of every column of a batch."""

    sample: IntArray

    def __call__(self, batch: Batch) -> list[RawColumn]:
        rows = rows_within(self.sample, batch.start, batch.raw.n_rows)
        found = []
        for name, content in zip(batch.raw.names, batch.raw.contents, strict=True):
            column = read_column(name, content)
            found.append(RawColumn(name, column.kind, column.values[rows], column.levels))
        return found


def _scaling(rows: BatchRows) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation (divisor n - 1) over all rows; 0 and 1 if binary."""
    totals = np.sum(list(rows.map(_Totals(rows.names, np.zeros(len(rows.names))), rows.names)), 0)
    means = totals[0] / rows.n_rows
    totals = np.sum(list(rows.map(_Totals(rows.names, means), rows.names)), 0)
    sds = np.sqrt(totals[1] / (rows.n_rows - 1))
    pairs = [
        (0.0, 1.0) if binary else (float(mean), float(sd))
        for mean, sd, binary in zip(means, sds, rows.binary, strict=True)
    ]
    return tuple(mean for mean, _ in pairs), tuple(sd for _, sd in pairs)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Totals:
    """Sums, and sums of squares, about given centres."""

    names: Sequence[str]
    centres: Column

    def __call__(self, block: Block) -> Any:
        centred = [
            block.columns[name] - centre
            for name, centre in zip(self.names, self.centres, strict=True)
        ]
        return np.array([[c.sum() for c in centred], [float(c @ c) for c in centred]])
