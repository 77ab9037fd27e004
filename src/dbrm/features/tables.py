"""Reading named columns from whatever the caller has.

A mapping of names to columns, an object with ``column(name)``, or anything with
``table[name]``, such as a data frame. No data frame library is imported.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm.errors import InvalidDataError
from dbrm.features.naming import raise_unknown

__all__ = ["Reader"]


@final
class Reader:
    """Reads columns of one table as float arrays; see the module."""

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
            if not missing:
                raise
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


def _item_getter(table: TableLike) -> Any:
    try:
        return table.__getitem__
    except AttributeError:
        msg = (
            "A table must be a mapping of names to columns, a data frame, or an object with "
            f"column(name); got {type(table).__name__}."
        )
        raise InvalidDataError(msg) from None


def _names(table: TableLike) -> list[str] | None:
    """Return the names of a table's columns where it tells them."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    for attribute in ("column_names", "columns", "names"):
        found = getattr(table, attribute, None)
        if isinstance(found, Iterable):
            return [str(name) for name in found]
    fields = getattr(getattr(table, "dtype", None), "names", None)
    return None if fields is None else list(fields)
