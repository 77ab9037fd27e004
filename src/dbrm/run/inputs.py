"""From what a user hands over to a job: data in memory, on disk or on a cluster, and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm.data import (
    AbstractBatches,
    MemoryRows,
    check_vector,
    is_source,
    learn_from_batches,
    learn_recipe,
    open_batches,
    read_table,
    refuse_other_order,
)
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.formula import Reading, read_formula
from dbrm.run.checkpoint import Job
from dbrm.run.out_of_core import in_place, is_tall, may_repeat, obstacle, represent, wants_blocks
from dbrm.run.problem import merge_repeats, observe
from dbrm.run.settings import Settings

__all__ = ["make_job", "places_of_effects"]

# What belongs to the rows: its name among observations, and as an argument.
_ROLES = {
    "weights": "sample_weight",
    "offset": "offset",
    "trials": "trials",
    "exposure": "exposure",
}


def make_job(
    X: TableLike,
    y: Any,
    data: TableLike | None,
    ignore: Sequence[str],
    rows: Mapping[str, Any],
    chosen: Settings,
) -> Job:
    """The run that `dbrm.fit` was asked for; `rows` is what belongs to the rows."""
    if is_source(X):
        return _job_of_source(X, y, ignore, rows, chosen)
    if is_source(data):
        msg = (
            "A formula needs its data in memory. Name the response of a file or a Dask collection: "
            "dbrm.fit(data, 'y')."
        )
        raise InvalidDataError(msg)
    refuse_other_order(data if isinstance(X, str) else X, y=y, **rows)
    X, y = _split(X, y, ignore)
    name = getattr(y, "name", None) or "y"
    job = _job_in_place(X, y, rows, chosen) or _job_in_memory(X, y, data, rows, chosen)
    return job if isinstance(X, str) else replace(job, response=str(name))


def _job_in_memory(
    X: TableLike, y: Any, data: TableLike | None, rows: Mapping[str, Any], chosen: Settings
) -> Job:
    """A run on a table that is checked, and copied, in one piece."""
    read = _read(X, y, data, chosen)
    extras = {**rows, "offset": _add(read.offset, rows["offset"])}
    observations = observe(read.response, read.table.n_rows, **extras)
    table = read.table
    # An effect of its own in every row: equal rows are not the same.
    own_effects = any(effect.column is None for effect in chosen.latent_effects)
    mergeable = chosen.evidence is None and not own_effects
    if mergeable and may_repeat(list(table.values.T), observations):
        table, observations = merge_repeats(table, observations)
    blocks = None
    if wants_blocks(table.n_rows, chosen):
        blocks = MemoryRows(table, observations.given)
        table, observations = represent(blocks, chosen)
    return Job(
        table=table,
        observations=observations,
        recipe=read.recipe,
        settings=chosen,
        response=str(read.name) if read.name else "y",
        formula=X if isinstance(X, str) else "",
        given=_given(extras),
        n_rows=read.table.n_rows,
        rows=blocks,
    )


def _job_in_place(X: TableLike, y: Any, rows: Mapping[str, Any], chosen: Settings) -> Job | None:
    """A run on tall data in memory that are numbers already; none on anything else."""
    batches = None if isinstance(X, str) else in_place(X)
    if batches is None or not wants_blocks(batches.n_rows, chosen):
        return None
    observations = observe(y, batches.n_rows, **rows)
    if may_repeat(batches.raw.contents, observations):
        return None
    return _job_of_batches(replace(batches, extras=observations.given), rows, chosen)


def _job_of_source(
    X: Any, y: Any, ignore: Sequence[str], rows: Mapping[str, Any], chosen: Settings
) -> Job:
    """A run on a file, a data set or a Dask collection; in memory if that is not tall."""
    if y is None:
        msg = "y must name the column of the response (a Dask array beside a Dask array)."
        raise InvalidDataError(msg)
    roles = {"response": y} | {
        role: rows[name] for role, name in _ROLES.items() if rows[name] is not None
    }
    batches = open_batches(X, roles, ignore=ignore)
    if not is_tall(batches.n_rows, chosen):
        columns, extras = batches.load()
        table = columns if batches.named else np.column_stack(list(columns.values()))
        inside = {name: extras.get(role) for role, name in _ROLES.items()}
        job = _job_in_memory(table, extras["response"], None, inside, chosen)
    else:
        reason = obstacle(chosen)
        if reason:
            msg = f"X is visited in blocks, and {reason}."
            raise InvalidSettingError(msg)
        if chosen.executor is not None:
            msg = "executor= is for tables in memory: the rows of X have a place of their own."
            raise InvalidSettingError(msg)
        job = _job_of_batches(batches, rows, chosen)
    return replace(job, response=y if isinstance(y, str) else "y")


def _job_of_batches(batches: AbstractBatches, rows: Mapping[str, Any], chosen: Settings) -> Job:
    """A run on tall data, wherever they are."""
    recipe, blocks = learn_from_batches(batches, scale=chosen.scale, missing=chosen.missing)
    table, observations = represent(blocks, chosen)
    return Job(
        table=table,
        observations=observations,
        recipe=recipe,
        settings=chosen,
        response="y",
        formula="",
        given=_given(rows),
        n_rows=blocks.n_rows,
        rows=blocks,
    )


def _given(rows: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, value in rows.items() if value is not None)


def _split(X: TableLike, y: Any, ignore: Sequence[str]) -> tuple[TableLike, Any]:
    """The table without columns to ignore, and without the response where it is one of them."""
    if isinstance(X, str) or not (isinstance(y, str) or ignore):
        return X, y
    raw = read_table(X)
    for name in (*ignore, *([y] if isinstance(y, str) else [])):
        if not raw.named or name not in raw.names:
            what = "y" if name == y else "ignore"
            msg = f"{what}={name!r} is not a column of X. Columns: {', '.join(raw.names)}."
            raise InvalidDataError(msg)
    columns = dict(zip(raw.names, raw.contents, strict=True))
    response = columns.pop(y) if isinstance(y, str) else y
    return {name: c for name, c in columns.items() if name not in ignore}, response


def _read(X: TableLike, y: Any, data: TableLike | None, chosen: Settings) -> Reading:
    """Table and response, from each other or from a formula."""
    if isinstance(X, str):
        if y is not None:
            msg = "A formula names the response: pass data=, and leave y out."
            raise InvalidDataError(msg)
        return read_formula(
            X,
            data,
            scale=chosen.scale,
            missing=chosen.missing,
            index_columns=places_of_effects(chosen),
        )
    if data is not None:
        msg = "data= belongs to a formula, as in dbrm.fit('y ~ x', data=table)."
        raise InvalidDataError(msg)
    recipe, table = learn_recipe(
        X,
        scale=chosen.scale,
        missing=chosen.missing,
        index_columns=places_of_effects(chosen),
        also=[name for name in _named(chosen) if isinstance(name, str)],
    )
    return Reading(recipe, table, y, getattr(y, "name", None) or "y", None)


def places_of_effects(chosen: Settings) -> list[str]:
    """Columns of the latent effects, each once."""
    columns = [effect.column for effect in chosen.latent_effects if effect.column is not None]
    return list(dict.fromkeys(columns))


def _named(chosen: Settings) -> list[Any]:
    """Covariates that the user asks for by name."""
    lists = (chosen.always, chosen.keep, chosen.start)
    return [name for given in lists for name in ([given] if isinstance(given, str) else given)]


def _add(own: Column | None, offset: Any) -> Any:
    """The offset of a formula plus the one given beside it."""
    if own is None or offset is None:
        return offset if own is None else own
    return own + check_vector(offset, own.size, name="offset")
