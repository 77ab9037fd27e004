"""Where tall data come from: files, pyarrow data sets, Dask collections, told apart here.

No library is imported to find out: nobody can hold a data set of a library not imported.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbrm.data.arrow_batches import ARROW_SUFFIXES, ArrowBatches, open_dataset
from dbrm.data.batches import AbstractBatches
from dbrm.data.dask_batches import DaskArrayBatches, DaskFrameBatches
from dbrm.errors import InvalidDataError, quote, suggest

__all__ = ["is_source", "open_batches"]


def is_source(X: Any) -> bool:
    """Whether this is a file, a data set or a Dask collection rather than a table in memory."""
    return _is_path(X) or _is_dataset(X) or _is_dask(X)


def open_batches(
    X: Any, roles: Mapping[str, Any], *, ignore: Sequence[str] = ()
) -> AbstractBatches:
    """Open tall data.

    Parameters
    ----------
    X
        A path, a pyarrow data set, a Dask data frame or array.
    roles
        The response, and what belongs to its rows: names of columns, or Dask arrays beside
        a Dask array.
    ignore
        Columns to leave out.
    """
    if _is_dask(X) and hasattr(X, "chunks"):
        return _open_arrays(X, roles)
    if _is_dask(X):
        names = [str(name) for name in X.columns]
        return DaskFrameBatches(X, *_sort(names, roles, ignore))
    dataset = open_dataset(X) if _is_path(X) else X
    return ArrowBatches(dataset, *_sort(list(dataset.schema.names), roles, ignore))


def _sort(
    names: Sequence[str], roles: Mapping[str, Any], ignore: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Covariates, and the columns that play other roles."""
    for role, name in roles.items():
        said = {"response": "y", "weights": "sample_weight"}.get(role, role)
        if not isinstance(name, str):
            msg = (
                f"{said} must be the name of a column where X is a file, a data set or a Dask data "
                f"frame; got {type(name).__name__}. Columns: {quote(names)}."
            )
            raise InvalidDataError(msg)
        if name not in names:
            msg = f"{said}={name!r} is not a column{suggest(name, names)}. Columns: {quote(names)}."
            raise InvalidDataError(msg)
    for name in ignore:
        if name not in names:
            msg = f"The data have no column {name!r} to ignore. Columns: {quote(names)}."
            raise InvalidDataError(msg)
    taken = {*roles.values(), *ignore}
    covariates = tuple(name for name in names if name not in taken)
    if not covariates:
        msg = "No column is left as a covariate."
        raise InvalidDataError(msg)
    return covariates, dict(roles)


def _open_arrays(X: Any, roles: Mapping[str, Any]) -> DaskArrayBatches:
    if X.ndim != 2:
        msg = f"A Dask array X must have rows and columns; got {X.ndim} dimensions."
        raise InvalidDataError(msg)
    whole = X.rechunk({1: -1})
    extras = {}
    for role, values in roles.items():
        if not _is_dask(values) or getattr(values, "ndim", 0) != 1:
            said = {"response": "y", "weights": "sample_weight"}.get(role, role)
            msg = f"With a Dask array X, {said} must be a Dask array of one dimension."
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
