"""Read what the user passes to `dbrm.fit` into checked, finite numbers.

The result, `RunInputs`, is all that a run depends on. Data may be in memory, in a file or on a
cluster; data that stay out of core are represented by a weighted subsample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm.data import (
    AbstractBatches,
    AbstractRows,
    Label,
    MemoryRows,
    Recipe,
    Table,
    check_response,
    check_vector,
    check_weights,
    columns_in_formula,
    complete_tables,
    drop_incomplete,
    find_repeats,
    fingerprint,
    is_source,
    learn_from_batches,
    learn_recipe,
    open_batches,
    read_classes,
    read_labels,
    read_table,
    refuse_other_order,
    split_survival,
)
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import ClassFamily, Observations, find_family
from dbrm.evidence.device import start_device
from dbrm.formula import FormulaRecipe, ParsedFormula, read_formula
from dbrm.formula_latent import take_latent_terms
from dbrm.run.data_check import warn_of_data
from dbrm.run.out_of_core import (
    is_tall,
    may_repeat,
    numbers_in_place,
    unsupported_reason,
    wants_blocks,
    weighted_subsample,
)
from dbrm.run.settings import Settings

__all__ = ["RunInputs", "read_in_memory", "read_inputs", "split_times"]

# Fields of `Observations` beside the response, and the arguments of `dbrm.fit` that fill them.
_ARGUMENTS = {
    "weights": "sample_weight",
    "offset": "offset",
    "trials": "trials",
    "exposure": "exposure",
    "event": "event",
    "entry": "entry",
    "strata": "strata",
}
# Arguments that may name a column of a table in memory, as the response may.
_NAMEABLE = ("event", "entry", "strata")


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunInputs:
    """Data and settings of one run.

    Parameters
    ----------
    response, formula, given, n_rows
        For the record: name of the response, the formula if there is one, names of the
        arguments that were given beside it, and the number of rows before equal ones are merged.
    rows
        All rows of data that are out of core; table and observations are then a weighted
        subsample of them.
    completed
        Tables with imputed values, of which `table` is the first; none where nothing is imputed.
    strata, classes
        Labels of the strata of survival times, and of the classes of the response, in the order of
        their numbers.
    """

    table: Table
    observations: Observations
    recipe: Recipe | FormulaRecipe
    settings: Settings
    response: str
    formula: str
    given: tuple[str, ...]
    n_rows: int
    rows: AbstractRows | None = None
    completed: tuple[Table, ...] = ()
    strata: tuple[str, ...] = ()
    classes: tuple[Label, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Hash of the data, by content."""
        columns = self.observations.given
        return fingerprint(self.table, *columns.values()) + "".join(f" {name}" for name in columns)


def read_inputs(
    X: TableLike,
    y: Any,
    settings: Settings,
    *,
    extras: Mapping[str, Any],
    data: TableLike | None = None,
    ignore: Sequence[str] = (),
) -> RunInputs:
    """Read the arguments of `dbrm.fit`; `extras` are the vectors beside the response."""
    if settings.device == "gpu":
        start_device()
    y, extras = split_times(y, extras)
    if is_source(X):
        if settings.missing == "drop":
            msg = "missing='drop' needs the data in memory; X is a file or a Dask collection."
            raise InvalidSettingError(msg)
        return _from_source(X, y, settings, extras, ignore)
    if is_source(data):
        msg = (
            "A formula needs its data in memory. Name the response of a file or a Dask collection: "
            "dbrm.fit(data, 'y')."
        )
        raise InvalidDataError(msg)
    refuse_other_order(data if isinstance(X, str) else X, y=y, **extras)
    if isinstance(X, str):
        X, effects = take_latent_terms(X)
        settings = settings.with_latent(effects)
    columns, response, extras = _split(X, y, extras, data, ignore)
    if settings.missing == "drop":
        vectors = {"y": response, **extras}
        if isinstance(columns, str):
            data, vectors = drop_incomplete(data, vectors, columns_in_formula(columns, data))
        else:
            columns, vectors = drop_incomplete(columns, vectors)
        response, extras = vectors.pop("y"), vectors
    inputs = _in_place(columns, response, settings, extras) or _subsample_if_tall(
        read_in_memory(columns, response, settings, extras=extras, data=data)
    )
    if settings.check:
        _check(columns, response, data, inputs)
    return replace(inputs, response=y) if isinstance(y, str) else inputs


def _check(X: TableLike, y: Any, data: TableLike | None, inputs: RunInputs) -> None:
    """Warn of what looks wrong in data that could be read."""
    if isinstance(X, str):
        assert data is not None
        raw = read_table(data)
        y = raw.contents[raw.names.index(inputs.response)] if inputs.response in raw.names else None
    else:
        raw = read_table(X, least_columns=0)
    index = inputs.settings.index_columns
    covariates = [name for name in inputs.recipe.input_names if name not in index]
    warn_of_data(raw, y, inputs.settings, covariates)


def read_in_memory(
    X: TableLike,
    y: Any,
    settings: Settings,
    *,
    extras: Mapping[str, Any],
    data: TableLike | None = None,
    allow_no_columns: bool = False,
) -> RunInputs:
    """Read a table, or a formula and its data, with all rows in memory; equal rows are merged."""
    weights = extras["sample_weight"]
    read = _read(X, y, data, settings, weights, allow_no_columns=allow_no_columns)
    if not read.intercept:
        settings = replace(settings, intercept=False)
    extras = {**_join(extras, read.extras), "offset": _add(read.offset, extras["offset"])}
    labels, extras = _number_strata(extras, read.table.n_rows)
    classes, response = _number_classes(read.response, read.table.n_rows, settings)
    observations = _observe(response, read.table.n_rows, extras)
    recipe, completed = _complete(read, X, settings, observations)
    table = completed[0] if completed else read.table
    # An effect without a column has one node per row: equal rows are then not the same.
    node_per_row = any(effect.column is None for effect in settings.latent_effects)
    mergeable = settings.evidence is None and not node_per_row and not completed
    if mergeable and may_repeat(list(table.values.T), observations):
        table, observations = _merge_repeats(table, observations)
    return RunInputs(
        table=table,
        observations=observations,
        recipe=recipe,
        settings=settings,
        response=str(read.name or "y"),
        formula=X if isinstance(X, str) else "",
        given=_given(extras),
        n_rows=read.table.n_rows,
        strata=labels,
        classes=classes,
        completed=tuple(completed),
    )


def _complete(
    read: ParsedFormula, X: TableLike, settings: Settings, observations: Observations
) -> tuple[Recipe | FormulaRecipe, list[Table]]:
    """The recipe and completed tables, where missing numbers are imputed."""
    recipe = read.recipe
    if settings.missing != "impute":
        return recipe, []
    if isinstance(X, str) or isinstance(recipe, FormulaRecipe):
        msg = (
            "missing='impute' needs a table, dbrm.fit(X, y): it is not for formulas. "
            "missing='indicator' is."
        )
        raise InvalidSettingError(msg)
    given = settings.random_state
    seed = int(given) if isinstance(given, int | np.integer) else 0
    return complete_tables(recipe, X, observations.response, seed)


def _subsample_if_tall(inputs: RunInputs) -> RunInputs:
    """Visit the rows in blocks where there are very many of them."""
    if not wants_blocks(inputs.table.n_rows, inputs.settings):
        return inputs
    if isinstance(inputs.recipe, Recipe):
        names = inputs.recipe.searched
        inputs = replace(inputs, table=inputs.table.only(names), recipe=inputs.recipe.only(names))
    rows = MemoryRows(inputs.table, inputs.observations.given)
    table, observations = weighted_subsample(rows, inputs.settings)
    return replace(inputs, table=table, observations=observations, rows=rows)


def _in_place(
    X: TableLike, y: Any, settings: Settings, extras: Mapping[str, Any]
) -> RunInputs | None:
    """Use a tall table of numbers where it is, without a copy; ``None`` for any other table."""
    batches = None if isinstance(X, str) else numbers_in_place(X)
    if batches is None or not wants_blocks(batches.n_rows, settings):
        return None
    observations = _observe(y, batches.n_rows, extras)
    if may_repeat(batches.raw.contents, observations):
        return None
    batches = replace(batches, extras=observations.given)
    return _from_batches(batches, settings, extras, response=_name_of(y))


def _from_source(
    X: Any, y: Any, settings: Settings, extras: Mapping[str, Any], ignore: Sequence[str]
) -> RunInputs:
    """Read a file, a data set or a Dask collection; into memory if it is not tall."""
    if y is None:
        msg = "y must name the column of the response (a Dask array beside a Dask array)."
        raise InvalidDataError(msg)
    columns_of = {"response": y} | {
        field: extras[name] for field, name in _ARGUMENTS.items() if extras[name] is not None
    }
    batches = open_batches(X, columns_of, ignore=ignore)
    response = y if isinstance(y, str) else "y"
    if not is_tall(batches.n_rows, settings):
        columns, loaded = batches.load()
        table = columns if batches.named else np.column_stack(list(columns.values()))
        loaded_extras = {name: loaded.get(field) for field, name in _ARGUMENTS.items()}
        inputs = read_in_memory(table, loaded["response"], settings, extras=loaded_extras)
        if settings.check:
            _check(table, loaded["response"], None, inputs)
        return replace(inputs, response=response)
    reason = unsupported_reason(settings)
    if reason:
        msg = f"X is visited in blocks, and {reason}."
        raise InvalidSettingError(msg)
    if settings.executor is not None:
        msg = "executor= is for tables in memory. X is out of core: leave executor out."
        raise InvalidSettingError(msg)
    return _from_batches(batches, settings, extras, response=response)


def _from_batches(
    batches: AbstractBatches, settings: Settings, extras: Mapping[str, Any], *, response: str
) -> RunInputs:
    """Learn the recipe from data that are out of core, and draw the subsample."""
    recipe, rows = learn_from_batches(batches, **_preparation(settings))
    table, observations = weighted_subsample(rows, settings)
    return RunInputs(
        table=table,
        observations=observations,
        recipe=recipe,
        settings=settings,
        response=response,
        formula="",
        given=_given(extras),
        n_rows=rows.n_rows,
        rows=rows,
    )


def _given(extras: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, value in extras.items() if value is not None)


def _name_of(y: Any) -> str:
    return str(getattr(y, "name", None) or "y")


def split_times(y: Any, extras: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take a structured response of survival times apart."""
    times = split_survival(y)
    if times is None:
        return y, dict(extras)
    if extras["event"] is not None:
        msg = "y is a structured array that holds the events: leave event= out."
        raise InvalidDataError(msg)
    return times[0], {**extras, "event": times[1]}


def _split(
    X: TableLike, y: Any, extras: Mapping[str, Any], data: TableLike | None, ignore: Sequence[str]
) -> tuple[TableLike, Any, Mapping[str, Any]]:
    """Take the response and what else are columns of the table, and those to ignore, out of it."""
    named = {name: extras[name] for name in _NAMEABLE if isinstance(extras[name], str)}
    if isinstance(y, str):
        named["y"] = y
    if not named and (isinstance(X, str) or not ignore):
        return X, y, extras
    # The columns of a formula are those that it names.
    raw = read_table(data if isinstance(X, str) else X)
    for argument, name in (*named.items(), *(("ignore", name) for name in ignore)):
        if not raw.named or name not in raw.names:
            msg = f"{argument}={name!r} is not a column of X. Columns: {', '.join(raw.names)}."
            raise InvalidDataError(msg)
    columns = dict(zip(raw.names, raw.contents, strict=True))
    found = {argument: columns[name] for argument, name in named.items()}
    response = found.pop("y", y)
    extras = {**extras, **found}
    if isinstance(X, str):
        return X, response, extras
    left_out = {*ignore, *named.values()}
    return {name: c for name, c in columns.items() if name not in left_out}, response, extras


def _join(extras: Mapping[str, Any], formula: Mapping[str, Any]) -> dict[str, Any]:
    """What is given beside a formula, and what the formula names."""
    for name in formula:
        if extras[name] is not None:
            msg = f"The formula names {name} already: leave {name}= out."
            raise InvalidDataError(msg)
    return {**extras, **formula}


def _number_classes(y: Any, n_rows: int, settings: Settings) -> tuple[tuple[Label, ...], Any]:
    """Labels of the classes of the response, and their numbers in its place."""
    family = find_family(settings.family)
    if not isinstance(family, ClassFamily) or y is None:
        return (), y
    return read_classes(y, n_rows, ordered=family.ordered)


def _number_strata(
    extras: Mapping[str, Any], n_rows: int
) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Labels of the strata, and the arguments with their numbers."""
    if extras["strata"] is None:
        return (), extras
    labels, numbers = read_labels(extras["strata"], n_rows, "strata")
    return labels, {**extras, "strata": numbers}


def _read(
    X: TableLike,
    y: Any,
    data: TableLike | None,
    settings: Settings,
    weights: Any,
    *,
    allow_no_columns: bool,
) -> ParsedFormula:
    """Table and response, from arguments of their own or from a formula."""
    if isinstance(X, str):
        if y is not None:
            msg = "A formula names the response: pass data=, and leave y out."
            raise InvalidDataError(msg)
        return read_formula(
            X,
            data,
            index_columns=settings.index_columns,
            groups=settings.group_columns,
            weights=weights,
            **_preparation(settings),
        )
    if data is not None:
        msg = "data= belongs to a formula, as in dbrm.fit('y ~ x', data=table)."
        raise InvalidDataError(msg)
    recipe, table = learn_recipe(
        X,
        index_columns=settings.index_columns,
        also=settings.named_covariates,
        allow_no_columns=allow_no_columns,
        weights=weights,
        rare_columns=_rare_columns(settings),
        **_preparation(settings),
    )
    return ParsedFormula(recipe, table, y, _name_of(y), None, {})


def _preparation(settings: Settings) -> dict[str, Any]:
    """How covariates are prepared, with what the preset chooses."""
    # The choice depends on the preset alone, not on the number of observations.
    resolved = settings.resolved(settings.family, 1.0)
    return {
        "scale": resolved.scale,
        # Rows without a value are gone by now, and cannot be predicted.
        "missing": "error" if resolved.missing == "drop" else resolved.missing,
        "unseen": resolved.unseen,
        "whole_factors": resolved.groups == "factors",
        "log_covariates": _log_covariates(settings, resolved),
    }


def _log_covariates(settings: Settings, resolved: Settings) -> bool:
    """Whether skewed covariates join on the log scale: by default beside the default functions."""
    chosen = settings.transforms is not None or settings.units is not None
    if settings.log_covariates is None and chosen:
        return False
    engineers = settings.traits.engineers and settings.max_depth != 0
    return bool(resolved.log_covariates) and engineers


def _rare_columns(settings: Settings) -> bool:
    """Whether single rare levels have columns: where models may have a remainder."""
    resolved = settings.resolved(settings.family, 1.0)
    return (
        bool(resolved.remainder)
        and settings.traits.engineers
        and settings.groups is None
        and settings.missing != "impute"
    )


def _add(own: Column | None, offset: Any) -> Any:
    """The offset of a formula plus the one given beside it."""
    if own is None or offset is None:
        return offset if own is None else own
    return own + check_vector(offset, own.size, name="offset")


def _observe(y: Any, n_rows: int, extras: Mapping[str, Any]) -> Observations:
    """Check the response and what is given beside it."""
    weights = extras["sample_weight"]
    vectors = {
        name: check_vector(extras[name], n_rows, name=name)
        for name in ("offset", "trials", "exposure", "event", "entry", "strata")
        if extras[name] is not None
    }
    return Observations(
        response=check_response(y, n_rows),
        weights=None if weights is None else check_weights(weights, n_rows),
        **vectors,
    )


def _merge_repeats(table: Table, observations: Observations) -> tuple[Table, Observations]:
    """Merge equal rows into one with a weight, and leave out rows of weight zero.

    A weight of two is then the same as the row twice: the search takes the same steps. Without
    weights and without repeated rows nothing changes, not even the order. Rows at
    different nodes of a latent effect are different.
    """
    n_rows = table.n_rows
    weights = np.ones(n_rows) if observations.weights is None else observations.weights
    beside = ("response", "weights")
    given = {name: c for name, c in observations.given.items() if name not in beside}
    nodes = [
        np.unique(p, return_inverse=True)[1].astype(float) for p in table.index_columns.values()
    ]
    found = find_repeats([*table.values.T, observations.response, *given.values(), *nodes])
    if found is None or (observations.weights is None and found[0].size == n_rows):
        return table, observations
    first, pattern = found
    totals: Column = np.bincount(pattern, weights=weights, minlength=first.size).astype(float)
    first, totals = first[totals > 0], totals[totals > 0]
    merged = Observations(
        response=observations.response[first],
        weights=None if np.all(totals == 1.0) else totals,
        **{name: column[first] for name, column in given.items()},
    )
    return table.take(first), merged
