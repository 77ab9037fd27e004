r"""Evaluate features as columns with a status each; the inner loop of the search.

A column is

* ``NOT_A_NUMBER`` if any value is NaN,
* ``OVERFLOW`` if any is infinite or exceeds :math:`10^{150}` in size, so that its
  squares can still be summed; a pole, such as ``log_abs`` at 0, counts as this,
* ``CONSTANT`` if its standard deviation is at most :math:`10^{-10} \max|F|`,
* ``OK`` otherwise,

whichever applies first. Only final values matter: an intermediate overflow, as in
``gauss(exp(exp(x)))``, is not a failure. Nothing here warns.
"""

from collections.abc import Iterable, Mapping
from math import isnan, sqrt
from typing import Any, final

import numpy as np

from dbrm._typing import Column, Matrix, StatusArray, TableLike
from dbrm.errors import InvalidDataError, InvalidSettingError, raise_unknown
from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification
from dbrm.features.projection import Projection
from dbrm.features.traversal import walk
from dbrm.status import Status

__all__ = [
    "ColumnCache",
    "Ranges",
    "Reader",
    "column_status",
    "compute_column",
    "evaluate",
    "evaluate_one",
    "training_ranges",
]

# Columns of one table by the exact text of their feature.
ColumnCache = dict[str, Column]

# Lowest and highest value in training, by the exact text of a feature: of a covariate its own,
# of a bounded function those of its argument.
Ranges = dict[str, tuple[float, float]]

_LARGEST = 1e150
_FLAT = 1e-10


def evaluate(
    features: Iterable[Feature],
    table: TableLike,
    cache: ColumnCache | None = None,
    *,
    clip_to: Ranges | None = None,
) -> tuple[Matrix, StatusArray]:
    """Evaluate features on every row of a table.

    Parameters
    ----------
    features
        The features, one column each.
    table
        Mapping of names to columns, a data frame, or an object with
        ``column(name)``.
    cache
        Known columns by ``feature.text``; every sub-expression is added to it. A cache belongs
        to one table. If omitted, sub-expressions are shared within this call only.
    clip_to
        Training ranges (`training_ranges`) to which covariates and the arguments of bounded
        functions are clipped: beyond them a feature has the value of the nearest arguments seen
        in training.

    Returns
    -------
    values
        One column per feature, Fortran-ordered.
    statuses
        One `Status` per column.

    Raises
    ------
    UnknownNameError
        If the table lacks a covariate.
    """
    wanted = list(features)
    reader = Reader(table)
    columns = {} if cache is None else cache
    with np.errstate(all="ignore"):
        found = [compute_column(feature, reader, columns, clip_to) for feature in wanted]
        n_rows = found[0].size if found else reader.n_rows()
        values = np.empty((n_rows, len(found)), order="F")
        statuses = np.empty(len(found), dtype=np.uint8)
        for i, column in enumerate(found):
            if column.size != n_rows:
                msg = (
                    f"{wanted[i].text} has {column.size} rows, {wanted[0].text} has {n_rows}. "
                    "A cache must only be used with one table."
                )
                raise InvalidDataError(msg)
            values[:, i] = column
            statuses[i] = _status(column)
    return values, statuses


def evaluate_one(feature: Feature, table: TableLike, cache: ColumnCache | None = None) -> Column:
    """Evaluate one feature; the column is a copy that the caller may change."""
    with np.errstate(all="ignore"):
        return compute_column(feature, Reader(table), {} if cache is None else cache).copy()


def column_status(column: Column) -> Status:
    """Return the status of a column, by the rules of this module."""
    with np.errstate(all="ignore"):
        return Status(_status(np.asarray(column, dtype=np.float64)))


def training_ranges(features: Iterable[Feature], table: TableLike) -> Ranges:
    """Return the ranges of covariates, and of the arguments of bounded functions, in a table."""
    reader = Reader(table)
    ranges: Ranges = {}
    with np.errstate(all="ignore"):
        for feature in features:
            # A new cache per feature: the columns of thousands would not fit into memory.
            columns: ColumnCache = {}
            compute_column(feature, reader, columns)
            for node in walk(feature):
                if isinstance(node, Covariate):
                    values = columns[node.text]
                elif isinstance(node, Modification | Projection) and node.transform.bounded:
                    values = node.argument(columns)
                else:
                    continue
                ranges[node.text] = float(values.min()), float(values.max())
    return ranges


@final
class Reader:
    """Reads columns of one table as float arrays.

    Parameters
    ----------
    table
        A mapping of names to columns, an object with ``column(name)``, or anything with
        ``table[name]``, such as a data frame. No data frame library is imported.
    """

    __slots__ = ("_get", "_size", "_table")

    def __init__(self, table: TableLike) -> None:
        self._table = table
        self._size: int | None = None
        # Looked up on the class: a data frame offers its columns as attributes, too.
        has_method = callable(getattr(type(table), "column", None))
        self._get = table.column if has_method else _item_getter(table)

    def column(self, name: str) -> Column:
        """Return a column as a new one-dimensional view; the table is never changed."""
        try:
            raw = self._get(name)
        except Exception as error:
            names = _names(self._table)
            missing = isinstance(error, LookupError) if names is None else name not in names
            if not missing and isinstance(error, LookupError):
                raw = self._get(_key_of(self._table, name))
            elif not missing:
                raise
            else:
                raise_unknown("column", name, names or ())
        try:
            values = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError) as error:
            msg = f"The column {name!r} is not numeric: {error}."
            raise InvalidDataError(msg) from error
        if values.ndim != 1:
            msg = (
                f"The column {name!r} must be one-dimensional; got shape {values.shape}. "
                "Is the name used twice?"
            )
            raise InvalidDataError(msg)
        if self._size is None:
            self._size = values.size
        if values.size != self._size:
            msg = (
                "All columns of a table must have the same number of rows; "
                f"{name!r} has {values.size}, another one {self._size}."
            )
            raise InvalidDataError(msg)
        return np.ascontiguousarray(values).view()

    def n_rows(self) -> int:
        """Return the number of rows, for a result without columns."""
        if isinstance(self._table, Mapping):
            return next((len(column) for column in self._table.values()), 0)
        return len(self._table)


def compute_column(
    feature: Feature, reader: Reader, columns: ColumnCache, clip_to: Ranges | None = None
) -> Column:
    """Return the column of a feature, adding it and its sub-expressions to ``columns``.

    Runs inside the caller's ``np.errstate``. The columns kept are read-only.
    """
    known = columns.get(feature.text)
    if known is not None:
        return known
    if not feature.fitted:
        msg = (
            f"The feature {feature.text} has numbers (knots at quantiles, centre and scale) that "
            "must be learnt from training rows first. Call fit_knots(feature, table) with the "
            "training table."
        )
        raise InvalidSettingError(msg)
    stack = [feature]
    while stack:
        node = stack[-1]
        pending = [child for child in node.children if child.text not in columns]
        if pending:
            stack.extend(pending)
            continue
        stack.pop()
        if node.text not in columns:
            if isinstance(node, Covariate):
                column = reader.column(node.name)
                if clip_to and node.text in clip_to:
                    column = np.clip(column, *clip_to[node.text])
            elif clip_to and node.text in clip_to and isinstance(node, Modification | Projection):
                argument = np.clip(node.argument(columns), *clip_to[node.text])
                column = node.transform.apply(argument, node.knot)
            else:
                column = node.compute(columns)
            column.flags.writeable = False
            columns[node.text] = column
    return columns[feature.text]


def _status(column: Column) -> int:
    if not column.size:
        return Status.OK
    high, low = float(column.max()), float(column.min())
    largest = max(high, -low)
    if isnan(high):
        return Status.NOT_A_NUMBER
    if largest > _LARGEST:
        return Status.OVERFLOW
    # The standard deviation is at least range / sqrt(2 n), which decides for nearly all columns.
    if high - low > _FLAT * largest * sqrt(2.0 * column.size):
        return Status.OK
    # Scaled first: squares of tiny numbers would underflow.
    if largest == 0.0 or float(np.std(column / largest)) <= _FLAT:
        return Status.CONSTANT
    return Status.OK


def _item_getter(table: TableLike) -> Any:
    try:
        return table.__getitem__
    except AttributeError:
        msg = (
            "A table must be a mapping of names to columns, a data frame, or an object with "
            f"column(name); got {type(table).__name__}."
        )
        raise InvalidDataError(msg) from None


def _key_of(table: TableLike, name: str) -> Any:
    """Return the name as the table has it: in pandas it may be a number."""
    keys = table if isinstance(table, Mapping) else table.columns
    return next(key for key in keys if str(key) == name)


def _names(table: TableLike) -> list[str] | None:
    """Return the names of a table's columns, or None if it does not list them."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    for attribute in ("column_names", "columns", "names"):
        found = getattr(table, attribute, None)
        if isinstance(found, Iterable):
            return [str(name) for name in found]
    fields = getattr(getattr(table, "dtype", None), "names", None)
    return None if fields is None else list(fields)
