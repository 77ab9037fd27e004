"""Learn a recipe from the training table: check, encode, leave out redundant columns.

`dbrm.data.recipe` applies it to new data; nothing here runs at prediction.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dbrm._typing import Matrix, TableLike
from dbrm.data.columns import read_column, refuse_infinite, refuse_missing
from dbrm.data.intake import read_index_columns, read_table
from dbrm.data.recipe import Recipe, assemble, finish
from dbrm.data.redundancy import find_redundant
from dbrm.data.rules import ColumnRule, Missing, learn_rule
from dbrm.data.standardize import Scale, learn_scaling
from dbrm.data.table import Table
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidSettingError, quote

__all__ = ["learn_recipe", "unique_outputs", "warn_dropped", "why_dropped"]


def learn_recipe(
    X: TableLike,
    *,
    names: Sequence[str] | None = None,
    scale: Scale = None,
    missing: Missing = "error",
    index_columns: Sequence[str] = (),
    also: Sequence[str] = (),
    allow_no_columns: bool = False,
) -> tuple[Recipe, Table]:
    """Check the training table and learn how to prepare it and new data.

    Text and categories become 0/1 columns ``name[level]``, one per level but the
    first. Constant columns, and columns that are affine copies of an earlier one,
    are left out with a warning: with an intercept in the model they are redundant.

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
        column ``name_missing`` where the training column had missing values.
    index_columns, also
        Columns that index latent effects, kept as they are; those of them that are `also`
        covariates.
    allow_no_columns
        Accept a table without covariates; its only model has nothing but the intercept.
    """
    _check_choice("scale", scale, (None, "standard"))
    _check_choice("missing", missing, ("error", "indicator"))
    raw = read_table(X, names, least_columns=0 if allow_no_columns else 1)
    index = read_index_columns(raw, index_columns)
    columns = [
        read_column(name, content)
        for name, content in zip(raw.names, raw.contents, strict=True)
        if name not in index_columns or name in also
    ]
    if not (columns or allow_no_columns):
        msg = "All columns of X index latent effects: add a covariate."
        raise InvalidDataError(msg)
    refuse_infinite(columns)
    if missing == "error":
        refuse_missing(columns, advice="Remove these rows, or set missing='indicator'.")
    rules = tuple(learn_rule(column, missing) for column in columns)
    made = unique_outputs(rules)
    values = assemble(rules, columns, made, raw.n_rows)
    redundant = find_redundant(values)
    kept = [j for j in range(len(made)) if j not in redundant]
    dropped = why_dropped(rules, made, redundant)
    warn_dropped(dropped, n_kept=len(kept))
    values = _compact(values, kept)
    table_names = tuple(made[j] for j in kept)
    means, sds = ((), ()) if scale is None else learn_scaling(values)
    recipe = Recipe(
        rules,
        table_names,
        tuple(dropped),
        missing,
        scale,
        means,
        sds,
        named=raw.named,
        index_columns=tuple(index_columns),
    )
    return recipe, finish(values, recipe, index)


def _check_choice(setting: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        msg = f"{setting} must be one of {quote(allowed)}; got {setting}={value!r}."
        raise InvalidSettingError(msg)


def unique_outputs(rules: Iterable[ColumnRule]) -> tuple[str, ...]:
    """Return the names of all columns that the rules make; raise if two are the same."""
    made = tuple(name for rule in rules for name in rule.outputs)
    clashes = [name for name, count in Counter(made).items() if count > 1]
    if clashes:
        msg = (
            f"Columns made from categories or missing values would share a name with another "
            f"column: {quote(clashes)}. Rename the input columns."
        )
        raise InvalidDataError(msg)
    return made


def _compact(values: Matrix, kept: Sequence[int]) -> Matrix:
    """Move the kept columns to the front, in place: a big table is not copied again."""
    for destination, origin in enumerate(kept):
        if destination != origin:
            values[:, destination] = values[:, origin]
    return values[:, : len(kept)]


def why_dropped(
    rules: Iterable[ColumnRule], made: Sequence[str], redundant: Mapping[int, int | None]
) -> list[tuple[str, str]]:
    """Return the columns that are left out, each with the reason."""
    dropped = [(rule.name, "constant") for rule in rules if not rule.outputs]
    return dropped + [(made[j], _reason(made, first)) for j, first in sorted(redundant.items())]


def _reason(names: Sequence[str], first: int | None) -> str:
    return "constant" if first is None else f"copy of {names[first]!r}"


def warn_dropped(dropped: Sequence[tuple[str, str]], *, n_kept: int) -> None:
    """Warn about columns that are left out."""
    constant = [name for name, reason in dropped if reason == "constant"]
    copies = [f"{name!r} ({reason})" for name, reason in dropped if reason != "constant"]
    if constant:
        _warn(f"Constant columns are left out: {quote(constant)}.")
    if copies:
        more = f" and {len(copies) - 10} more" if len(copies) > 10 else ""
        _warn(
            "Columns that are affine copies of an earlier column are left out: "
            f"{', '.join(copies[:10])}{more}."
        )
    if n_kept == 0:
        _warn("No usable column is left: every model has only an intercept.")


def _warn(message: str) -> None:
    warnings.warn(message, DBRMWarning, stacklevel=4)
