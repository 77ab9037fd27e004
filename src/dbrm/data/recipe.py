"""The recipe that prepares a user's table, applied to training data and to new data alike.

A recipe is plain data: rules per input column, names and constants. `dbrm.data.learning`
learns it from the training table; nothing here sees training data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final, get_args

import numpy as np

from dbrm._typing import Matrix, TableLike
from dbrm.data.columns import Kind, RawColumn, read_column, refuse_infinite, refuse_missing
from dbrm.data.imputation import IMPUTER, Imputer
from dbrm.data.intake import RawTable, read_index_columns, read_table
from dbrm.data.rules import ColumnRule, Missing, Unseen
from dbrm.data.schema import Flag, ListOf, Nullable, Real, Record, Text, Whole
from dbrm.data.skewness import LogScale
from dbrm.data.standardize import Scale, apply_scaling
from dbrm.data.table import IndexColumns, Table
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidFileError, quote, suggest

__all__ = ["RECIPE", "Recipe", "assemble", "finish"]

FORMAT = 1

#: What `Recipe.to_dict` writes.
RECIPE = Record(
    {
        "format": Whole(FORMAT, FORMAT),
        "columns": ListOf(
            Record(
                {
                    "name": Text(),
                    "kind": Text(get_args(Kind)),
                    "levels": ListOf(Text()),
                    "fill": Nullable(Real()),
                    "indicator": Flag(),
                    "pooled": ListOf(Text()),
                    "own": ListOf(Text()),
                    "n_missing": Whole(0),
                    "log_floor": Nullable(Real()),
                    "log_shift": Real(low=0.0),
                },
                optional=frozenset({"pooled", "own", "n_missing", "log_floor", "log_shift"}),
            )
        ),
        "names": ListOf(Text(), "names"),
        "dropped": ListOf(ListOf(Text(), 2)),
        "missing": Text(get_args(Missing)),
        "scale": Nullable(Text(("standard",))),
        "means": ListOf(Real()),
        "sds": ListOf(Real()),
        "named": Flag(),
        "places": ListOf(Text()),
        "unseen": Text(get_args(Unseen)),
        "imputer": Nullable(IMPUTER),
    },
    optional=frozenset({"places", "unseen", "imputer"}),
)


@final
@dataclass(frozen=True, slots=True)
class Recipe:
    """How a user's table becomes a `Table`; learned by `dbrm.data.learn_recipe`.

    Parameters
    ----------
    columns
        One rule per input column, in the order of the training table.
    names
        Columns of the resulting table.
    dropped
        Pairs of a column that was left out, and the reason.
    missing, scale, unseen
        The settings it was learned with.
    means, sds
        Per name, what is subtracted and divided by; empty without scaling.
    named
        Whether the training table had names of its own.
    index_columns
        Input columns that index latent effects, kept as they are.
    imputer
        Fills missing numbers in new rows; none unless they are imputed.
    """

    columns: tuple[ColumnRule, ...]
    names: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...] = ()
    missing: Missing = "error"
    scale: Scale = None
    means: tuple[float, ...] = ()
    sds: tuple[float, ...] = ()
    named: bool = True
    index_columns: tuple[str, ...] = ()
    unseen: Unseen = "error"
    imputer: Imputer | None = None

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the input columns, in the order of the training table, index columns last."""
        names = [rule.name for rule in self.columns]
        return (*names, *(name for name in self.index_columns if name not in names))

    @property
    def searched(self) -> tuple[str, ...]:
        """The columns that formulas are made from: all but those of single rare levels."""
        rare = {name for rule in self.columns for name in rule.own_columns}
        return tuple(name for name in self.names if name not in rare)

    @property
    def factors(self) -> list[tuple[str, ...]]:
        """Return, for each categorical input column, the columns of its levels."""
        return [
            tuple(name for name in self.names if name in rule.level_columns)
            for rule in self.columns
            if rule.coded
        ]

    def apply(self, X: TableLike, *, caller: str = "dbrm") -> Table:
        """Prepare new data exactly as the training data.

        Parameters
        ----------
        X
            New rows. Columns of a data frame or mapping are found by name, in any
            order, and others are ignored; those of an array by position.
        caller
            Name of the estimator, for the message when the number of columns is wrong.
        """
        return self.apply_raw(read_table(X), caller=caller)

    def apply_raw(self, raw: RawTable, *, caller: str = "dbrm", checked: bool = False) -> Table:
        """Prepare columns that were read already; `checked` ones are not checked again."""
        if self.index_columns:
            # The columns of an array have the names they had in training.
            raw = replace(raw, named=True)
        index = read_index_columns(raw, self.index_columns)
        kept = set(self.names)
        needed = [
            j
            for j, rule in enumerate(self.columns)
            if self.imputer is not None or kept.intersection(rule.outputs)
        ]
        rules = [self.columns[j] for j in needed]
        given = [
            read_column(rule.name, raw.contents[position])
            for rule, position in zip(rules, self._locate(raw, needed, caller), strict=True)
        ]
        columns = [rule.conform(column) for rule, column in zip(rules, given, strict=True)]
        if checked:
            return finish(assemble(rules, columns, self.names, raw.n_rows), self, index)
        refuse_infinite(columns)
        self._check_unseen(rules, given)
        if self.missing == "error":
            refuse_missing(columns, advice="Remove these rows, or train with missing='indicator'.")
        else:
            columns = self._impute(rules, columns)
            _warn_filled(rules, columns)
        values = assemble(rules, columns, self.names, raw.n_rows)
        return finish(values, self, index)

    def _impute(self, rules: list[ColumnRule], columns: list[RawColumn]) -> list[RawColumn]:
        """Fill missing numbers of new rows with conditional means."""
        imputer = self.imputer
        place = {rule.name: j for j, rule in enumerate(rules)}
        if imputer is None or not any(
            columns[place[name]].missing.any() for name in imputer.targets
        ):
            return columns
        own = [place[name] for name in imputer.targets]
        others = assemble(rules, columns, imputer.predictors, columns[0].values.size)
        targets = np.column_stack([columns[j].values.astype(np.float64) for j in own])
        filled = imputer.complete(others, targets)
        columns = list(columns)
        for j, values in zip(own, filled.T, strict=True):
            columns[j] = replace(columns[j], values=values)
        return columns

    def _check_unseen(self, rules: Iterable[ColumnRule], columns: Iterable[RawColumn]) -> None:
        """Warn about levels that did not occur in training, or raise."""
        for rule, column in zip(rules, columns, strict=True):
            unseen = rule.unseen(column)
            if not unseen:
                continue
            found = (
                f"Column {rule.name!r} has levels that did not occur in training: {quote(unseen)}."
            )
            if self.unseen == "error":
                msg = f"{found} Known levels are {quote(rule.levels)}."
                raise InvalidDataError(msg)
            what = (
                f"level {rule.levels[int(rule.fill) - 1]!r}, the median of training"
                if rule.kind == "ordered" and rule.fill is not None
                else "none of the known levels"
            )
            warnings.warn(f"{found} They count as {what}.", DBRMWarning, stacklevel=5)

    def only(self, names: Sequence[str]) -> Recipe:
        """Return the recipe of some columns of the table."""
        position = {name: index for index, name in enumerate(self.names)}
        positions = [position[name] for name in names]
        return replace(
            self,
            names=tuple(names),
            means=tuple(self.means[j] for j in positions) if self.means else (),
            sds=tuple(self.sds[j] for j in positions) if self.sds else (),
        )

    @property
    def needed(self) -> tuple[str, ...]:
        """Input columns from which the table's columns are made."""
        kept = set(self.names)
        return tuple(rule.name for rule in self.columns if kept.intersection(rule.outputs))

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON types; floats survive `json` exactly."""
        return {
            "format": FORMAT,
            "columns": [
                {
                    "name": rule.name,
                    "kind": rule.kind,
                    "levels": list(rule.levels),
                    "fill": rule.fill,
                    "indicator": rule.indicator,
                    "pooled": list(rule.pooled),
                    "own": list(rule.own),
                    "n_missing": rule.n_missing,
                    "log_floor": None if rule.log_scale is None else rule.log_scale.floor,
                    "log_shift": 0.0 if rule.log_scale is None else rule.log_scale.shift,
                }
                for rule in self.columns
            ],
            "names": list(self.names),
            "dropped": [list(pair) for pair in self.dropped],
            "missing": self.missing,
            "scale": self.scale,
            "means": list(self.means),
            "sds": list(self.sds),
            "named": self.named,
            "places": list(self.index_columns),
            "unseen": self.unseen,
            "imputer": None if self.imputer is None else self.imputer.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Recipe:
        """Rebuild a recipe from the result of `to_dict`."""
        try:
            RECIPE.check(content, "", {})
        except InvalidFileError as error:
            msg = f"Not a recipe written by Recipe.to_dict: {error}."
            raise InvalidDataError(msg) from error
        recipe = cls(
            columns=tuple(_read_rule(rule) for rule in content["columns"]),
            names=tuple(content["names"]),
            dropped=tuple((name, reason) for name, reason in content["dropped"]),
            missing=content["missing"],
            scale=content["scale"],
            means=tuple(content["means"]),
            sds=tuple(content["sds"]),
            named=content["named"],
            index_columns=tuple(content.get("places", ())),
            # Before levels had columns of their own, zeros in all columns meant the first one.
            unseen=content.get("unseen", "error"),
            imputer=None
            if content.get("imputer") is None
            else Imputer.from_dict(content["imputer"]),
        )
        recipe._check_parts()
        return recipe

    def _check_parts(self) -> None:
        """Raise unless the parts of a recipe from a file fit together."""
        made = [name for rule in self.columns for name in rule.outputs]
        inputs = [rule.name for rule in self.columns]
        wanted = len(self.names) if self.scale is not None else 0
        sound = len(set(inputs)) == len(inputs) and len(set(self.names)) == len(self.names)
        sound = sound and set(self.names) <= set(made)
        sound = sound and all(rule.is_sound for rule in self.columns)
        if self.imputer is not None:
            numeric = {rule.name for rule in self.columns if rule.kind == "numeric"}
            sound = sound and set(self.imputer.targets) <= numeric
            sound = sound and set(self.imputer.predictors) <= set(made)
        sound = sound and len(self.means) == len(self.sds) == wanted
        if not sound:
            msg = "Not a recipe written by Recipe.to_dict: its parts do not fit together."
            raise InvalidDataError(msg)

    def _locate(self, raw: RawTable, needed: Sequence[int], caller: str) -> Sequence[int]:
        """Find where in `raw` the needed input columns are."""
        position = {name: index for index, name in enumerate(raw.names)}
        absent = [name for j in needed if (name := self.columns[j].name) not in position]
        if raw.named and not absent:
            return [position[self.columns[j].name] for j in needed]
        if raw.named and self.named:
            wanted = ", ".join(f"{name!r}{suggest(name, raw.names)}" for name in absent[:5])
            more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
            msg = (
                f"X lacks columns of the training data: {wanted}{more}. It has {quote(raw.names)}."
            )
            raise InvalidDataError(msg)
        if len(raw.names) != len(self.columns):
            msg = (
                f"X has {len(raw.names)} features, but {caller} is expecting "
                f"{len(self.columns)} features as input."
            )
            raise InvalidDataError(msg)
        return needed


def _read_rule(content: Mapping[str, Any]) -> ColumnRule:
    """Rebuild the rule of a column from what `Recipe.to_dict` wrote."""
    rule = dict(content)
    floor, shift = rule.pop("log_floor", None), rule.pop("log_shift", 0.0)
    rule["log_scale"] = None if floor is None else LogScale(floor, shift)
    for name in ("levels", "pooled", "own"):
        rule[name] = tuple(rule.get(name, ()))
    return ColumnRule(**rule)


def assemble(
    rules: Iterable[ColumnRule], columns: Iterable[RawColumn], names: Sequence[str], n_rows: int
) -> Matrix:
    """Expand all columns by their rules into a new Fortran-ordered matrix of the `names`."""
    position = {name: index for index, name in enumerate(names)}
    values = np.empty((n_rows, len(names)), order="F")
    for rule, column in zip(rules, columns, strict=True):
        for name, content in rule.expand(column):
            if name in position:
                values[:, position[name]] = content
    return values


def finish(values: Matrix, recipe: Recipe, index: IndexColumns) -> Table:
    """Scale the values in place as the recipe says, and make them a read-only table."""
    if recipe.scale is not None:
        apply_scaling(values, recipe.names, recipe.means, recipe.sds)
    values.flags.writeable = False
    return Table(recipe.names, values, index)


def _warn_filled(rules: Iterable[ColumnRule], columns: Iterable[RawColumn]) -> None:
    filled = [
        rule.name
        for rule, column in zip(rules, columns, strict=True)
        if not rule.indicator and column.missing.any()
    ]
    if filled:
        msg = (
            f"Missing values in columns that had none in training: {quote(filled)}. "
            "They are filled with the training median; a missing category is none of the levels."
        )
        warnings.warn(msg, DBRMWarning, stacklevel=3)
