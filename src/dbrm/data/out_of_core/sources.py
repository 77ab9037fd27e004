"""Recognise and open the sources of out-of-core data: files, pyarrow data sets, Dask collections.

Objects are recognised by the module of their type, without importing its library.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbrm.data.out_of_core.arrow import ARROW_SUFFIXES, ArrowBatches, open_dataset
from dbrm.data.out_of_core.batches import AbstractBatches, ColumnRoles
from dbrm.data.out_of_core.dask import DaskArrayBatches, DaskFrameBatches
from dbrm.errors import InvalidDataError, quote, suggest

__all__ = ["is_source", "open_batches"]

# What users call the roles.
_ARGUMENTS = {"response": "y", "weights": "sample_weight"}


def is_source(X: Any) -> bool:
    """Whether this is a file, a data set or a Dask collection rather than a table in memory."""
    return _is_path(X) or _is_dataset(X) or _is_dask(X)


def open_batches(
    X: Any, roles: Mapping[str, Any], *, ignore: Sequence[str] = ()
) -> AbstractBatches:
    """Open out-of-core data.

    Parameters
    ----------
    X
        A path, a pyarrow data set, a Dask data frame or array.
    roles
        The response, weights, offset and the like: names of columns, or Dask arrays if X is a
        Dask array.
    ignore
        Columns to leave out.
    """
    if _is_dask(X) and hasattr(X, "chunks"):
        return _open_arrays(X, roles)
    if _is_dask(X):
        names = [str(name) for name in X.columns]
        return DaskFrameBatches(X, _assign_roles(names, roles, ignore))
    dataset = open_dataset(X) if _is_path(X) else X
    return ArrowBatches(dataset, _assign_roles(list(dataset.schema.names), roles, ignore))


def _assign_roles(
    names: Sequence[str], roles: Mapping[str, Any], ignore: Sequence[str]
) -> ColumnRoles:
    """Check the named columns; all others are covariates."""
    for role, name in roles.items():
        argument = _ARGUMENTS.get(role, role)
        if not isinstance(name, str):
            msg = (
                f"{argument} must be the name of a column if X is a file, a data set or a Dask "
                f"data frame; got {type(name).__name__}. Columns: {quote(names)}."
            )
            raise InvalidDataError(msg)
        if name not in names:
            near = suggest(name, names)
            msg = f"{argument}={name!r} is not a column{near}. Columns: {quote(names)}."
            raise InvalidDataError(msg)
    for name in ignore:
        if name not in names:
            msg = f"The data have no column {name!r} to ignore. Columns: {quote(names)}."
            raise InvalidDataError(msg)
    used = {*roles.values(), *ignore}
    covariates = tuple(name for name in names if name not in used)
    if not covariates:
        msg = "No column is left as a covariate."
        raise InvalidDataError(msg)
    return ColumnRoles(covariates, dict(roles))


def _open_arrays(X: Any, roles: Mapping[str, Any]) -> DaskArrayBatches:
    if X.ndim != 2:
        msg = f"A Dask array X must have rows and columns; got {X.ndim} dimensions."
        raise InvalidDataError(msg)
    whole = X.rechunk({1: -1})
    extras = {}
    for role, values in roles.items():
        if not _is_dask(values) or getattr(values, "ndim", 0) != 1:
            argument = _ARGUMENTS.get(role, role)
            msg = f"With a Dask array X, {argument} must be a Dask array of one dimension."
            raise InvalidDataError(msg)
        if values.shape[0] != X.shape[0]:
            msg = f"X has {X.shape[0]} rows, but {role} has {values.shape[0]} values."
            raise InvalidDataError(msg)
        known = all(size == size for size in X.chunks[0])
        extras[role] = values.rechunk((X.chunks[0],)) if known else values
    return DaskArrayBatches(whole, extras)


def _is_path(X: Any) -> bool:
    if isinstance(X, os.PathLike):
        return True
    return isinstance(X, str) and "~" not in X and Path(X).suffix.lower() in ARROW_SUFFIXES


def _is_dataset(X: Any) -> bool:
    kind = type(X)
    return kind.__module__.startswith("pyarrow") and kind.__name__.endswith("Dataset")


def _is_dask(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(
        X, "to_delayed"
    )
