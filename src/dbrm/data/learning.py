"""Learn a recipe from the training table: check, encode, leave out redundant columns.

`dbrm.data.recipe` applies it to new data; nothing here runs at prediction.
"""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final, get_args

import numpy as np

from dbrm._typing import Column, Matrix, TableLike
from dbrm.data.columns import read_column, refuse_infinite, refuse_missing
from dbrm.data.imputation import draw_completed, learn_imputer
from dbrm.data.intake import read_index_columns, read_table
from dbrm.data.levels import LevelCounts, count_levels, learn_rule, offered_columns, why_left_out
from dbrm.data.number_ranges import order_number_ranges
from dbrm.data.recipe import Recipe, assemble, finish
from dbrm.data.redundancy import find_redundant
from dbrm.data.response import check_weights
from dbrm.data.rules import ColumnRule, Missing, Unseen
from dbrm.data.standardize import Scale, learn_scaling
from dbrm.data.table import Table
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidSettingError, quote

__all__ = ["Offer", "complete_tables", "learn_recipe", "warn_left_out"]

# Completed tables.
_N_COMPLETED = 10


def complete_tables(
    recipe: Recipe, X: TableLike, response: Column, seed: int
) -> tuple[Recipe, list[Table]]:
    """Draw completed tables of the training rows; the recipe can then fill new rows.

    There are none where no number is missing.
    """
    raw = read_table(X)
    index = read_index_columns(raw, recipe.index_columns)
    names = [rule.name for rule in recipe.columns]
    columns = [
        rule.conform(read_column(rule.name, raw.contents[raw.names.index(rule.name)]))
        for rule in recipe.columns
    ]
    targets = [
        j
        for j, rule in enumerate(recipe.columns)
        if rule.kind == "numeric" and 0 < columns[j].missing.sum() < raw.n_rows
    ]
    if not targets:
        return recipe, []
    own = {name for j in targets for name in recipe.columns[j].outputs}
    predictors = tuple(name for name in recipe.names if name not in own)
    others = assemble(recipe.columns, columns, predictors, raw.n_rows)
    values = np.column_stack([columns[j].values.astype(np.float64) for j in targets])
    target_names = tuple(names[j] for j in targets)
    recipe = replace(recipe, imputer=learn_imputer(target_names, values, predictors, others))
    tables = []
    rng = np.random.default_rng(seed)
    for filled in draw_completed(rng, values, others, response, _N_COMPLETED):
        completed = list(columns)
        for j, content in zip(targets, filled.T, strict=True):
            completed[j] = replace(columns[j], values=content)
        table = assemble(recipe.columns, completed, recipe.names, raw.n_rows)
        tables.append(finish(table, recipe, index))
    return recipe, tables


def learn_recipe(
    X: TableLike,
    *,
    names: Sequence[str] | None = None,
    scale: Scale = None,
    missing: Missing = "error",
    unseen: Unseen = "error",
    whole_factors: bool = False,
    weights: Any = None,
    log_covariates: bool = False,
    rare_columns: bool = False,
    index_columns: Sequence[str] = (),
    also: Sequence[str] = (),
    allow_no_columns: bool = False,
) -> tuple[Recipe, Table]:
    """Check the training table and learn how to prepare it and new data.

    Text and categories become 0/1 columns ``name[level]``, one per level, of two levels only
    the one with fewer rows. Rare levels share a column, and what is all rare levels, such as an
    identifier, is left out with a warning. Constant columns, and columns that are affine copies
    of an earlier one, are left out with a warning, too: with an intercept in the model they
    are redundant. Text whose levels are ranges of numbers, such as ``25-34``, is an ordered
    category.

    Parameters
    ----------
    X
        NumPy array, nested list, pandas / polars / pyarrow table, or mapping of
        columns.
    names
        Names for the columns of an array; ``x1``, ``x2``, ... if not given.
    scale
        None, or ``"standard"`` for mean 0 and standard deviation 1 (divisor n - 1).
        Columns of zeros and ones are never scaled.
    missing
        ``"error"``, or ``"indicator"``: fill with the training median and add a 0/1
        column ``name_missing`` where the training column had missing values. A missing category
        is a level of its own. ``"impute"``: the same, but without a column for missing numbers,
        which `complete_tables` draws.
    unseen
        What a level in new rows is that did not occur in training: an ``"error"``, or
        ``"none-of-these"``, with zeros in the columns of all levels.
    whole_factors
        Whether models contain all columns of a factor or none: its most frequent level then
        has no column.
    weights
        Frequency weights: levels are counted, and medians found, with a row of weight two
        twice.
    log_covariates
        Whether skewed columns without negative values are offered on the log scale, too.
    rare_columns
        Whether single rare levels have columns, too, for the remainder of models.
    index_columns, also
        Columns that index latent effects, kept as they are; those of them that are `also`
        covariates.
    allow_no_columns
        Accept a table without covariates; its only model has nothing but the intercept.
    """
    _check_choice("scale", scale, (None, "standard"))
    _check_choice("missing", missing, get_args(Missing))
    _check_choice("unseen", unseen, get_args(Unseen))
    raw = read_table(X, names, least_columns=0 if allow_no_columns else 1)
    index = read_index_columns(raw, index_columns)
    columns = [
        order_number_ranges(read_column(name, content))
        for name, content in zip(raw.names, raw.contents, strict=True)
        if name not in index_columns or name in also
    ]
    if not (columns or allow_no_columns):
        msg = "All columns of X index latent effects: add a covariate."
        raise InvalidDataError(msg)
    refuse_infinite(columns)
    if missing == "error":
        refuse_missing(columns, advice="Remove these rows, or set missing='indicator'.")
    weight = None if weights is None else check_weights(weights, raw.n_rows)
    counts = [count_levels(column, weight) for column in columns]
    rules = [
        learn_rule(
            column,
            missing,
            n,
            weights=weight,
            offer_log=log_covariates and f"log({column.name})" not in raw.names,
            rare_columns=rare_columns,
        )
        for column, n in zip(columns, counts, strict=True)
    ]
    offer = Offer.of(rules, counts, whole_factors=whole_factors)
    values = assemble(rules, columns, offer.names, raw.n_rows)
    redundant = find_redundant(values)
    kept = [j for j in range(len(offer.names)) if j not in redundant]
    dropped = offer.left_out(redundant)
    warn_left_out(dropped, n_kept=len(kept))
    values = _compact(values, kept)
    means, sds = ((), ()) if scale is None else learn_scaling(values)
    recipe = Recipe(
        tuple(rules),
        tuple(offer.names[j] for j in kept),
        dropped,
        missing,
        scale,
        means,
        sds,
        named=raw.named,
        index_columns=tuple(index_columns),
        unseen=unseen,
    )
    return recipe, finish(values, recipe, index)


@final
@dataclass(frozen=True, slots=True)
class Offer:
    """The columns that rules offer the table.

    Parameters
    ----------
    names
        Of the columns, all different.
    unused
        Input columns of which the table has none, or no levels, each with the reason.
    added
        Those of the names that are on the log scale, or of single rare levels: the last ones.
    """

    names: tuple[str, ...]
    unused: tuple[tuple[str, str], ...]
    added: frozenset[str]

    @classmethod
    def of(
        cls, rules: Sequence[ColumnRule], counts: Sequence[LevelCounts], *, whole_factors: bool
    ) -> "Offer":
        """Return what the rules offer; raise if two columns would have the same name."""
        made = [name for rule in rules for name in rule.outputs]
        clashes = [name for name, count in Counter(made).items() if count > 1]
        if clashes:
            msg = (
                f"Columns made from categories or missing values would share a name with another "
                f"column: {quote(clashes)}. Rename the input columns."
            )
            raise InvalidDataError(msg)
        offers = [
            offered_columns(rule, n, whole_factors=whole_factors)
            for rule, n in zip(rules, counts, strict=True)
        ]
        reasons = [
            (rule.name, why_left_out(rule, n, offered))
            for rule, n, offered in zip(rules, counts, offers, strict=True)
        ]
        names = [name for offered in offers for name in offered]
        logs = frozenset(rule.log_column for rule in rules if rule.log_scale is not None)
        rare = [name for rule in rules for name in rule.own_columns]
        return cls(
            (*sorted(names, key=lambda name: name in logs), *rare),
            tuple((name, reason) for name, reason in reasons if reason),
            logs.union(rare),
        )

    def left_out(self, redundant: Mapping[int, int | None]) -> tuple[tuple[str, str], ...]:
        """Return the columns that are left out, each with the reason."""
        found = [(self.names[j], self._reason(first)) for j, first in sorted(redundant.items())]
        # The user need not know of a logarithm or level that the table has already.
        return (*self.unused, *((name, why) for name, why in found if name not in self.added))

    def _reason(self, first: int | None) -> str:
        return "constant" if first is None else f"copy of {self.names[first]!r}"


def _check_choice(setting: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        msg = f"{setting} must be one of {quote(allowed)}; got {setting}={value!r}."
        raise InvalidSettingError(msg)


def _compact(values: Matrix, kept: Sequence[int]) -> Matrix:
    """Move the kept columns to the front, in place: a big table is not copied again."""
    for destination, origin in enumerate(kept):
        if destination != origin:
            values[:, destination] = values[:, origin]
    return values[:, : len(kept)]


def warn_left_out(dropped: Sequence[tuple[str, str]], *, n_kept: int) -> None:
    """Warn about columns that are left out."""
    constant = [name for name, reason in dropped if reason == "constant"]
    copies = [f"{name!r} ({reason})" for name, reason in dropped if reason.startswith("copy")]
    rare = [f"{name!r} ({reason})" for name, reason in dropped if reason.endswith("all rare")]
    if constant:
        _warn(f"Constant columns are left out: {quote(constant)}.")
    if rare:
        _warn(
            "Columns of text in which every level is rare are left out of formulas: "
            f"{_shown(rare)}. An identifier says nothing about other rows; for groups of a few "
            "rows each try latent=dbrm.latent.RandomIntercept(column), and make numbers that are "
            "stored as text numbers."
        )
    if copies:
        _warn(
            f"Columns that are affine copies of an earlier column are left out: {_shown(copies)}."
        )
    if n_kept == 0:
        _warn("No usable column is left: every model has only an intercept.")


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{', '.join(names[:10])}{more}"


def _warn(message: str) -> None:
    warnings.warn(message, DBRMWarning, stacklevel=4)
