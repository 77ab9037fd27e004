"""Refuse missing and infinite values, saying which column and which rows.

It sees raw columns only. Filling missing values is `dbrm.data.rules`.
"""

from collections.abc import Callable, Iterable

import numpy as np

from dbrm._typing import Mask
from dbrm.data.columns import RawColumn
from dbrm.data.wording import name_rows
from dbrm.errors import InvalidDataError

__all__ = ["refuse_infinite", "refuse_missing"]

# Columns named in one message; the rest are only counted.
SHOWN = 5


def refuse_missing(columns: Iterable[RawColumn], *, owner: str = "X", advice: str) -> None:
    """Raise if any value is missing."""
    found = _find(columns, lambda column: column.missing, owner)
    if found:
        msg = f"{owner} contains NaN or missing values: {found} (rows count from 0). {advice}"
        raise InvalidDataError(msg)


def refuse_infinite(columns: Iterable[RawColumn], *, owner: str = "X") -> None:
    """Raise if any value is infinite, or too large for a double."""
    found = _find(columns, _infinite, owner)
    if found:
        msg = (
            f"{owner} contains inf, or values too large for float64: {found} (rows count from 0). "
            "Remove these rows or repair the values."
        )
        raise InvalidDataError(msg)


def _find(columns: Iterable[RawColumn], test: Callable[[RawColumn], Mask], owner: str) -> str:
    found = []
    for column in columns:
        # Whole numbers and booleans can be neither; nor need they be scanned.
        if column.kind == "categorical" or column.values.dtype.kind == "f":
            selected = test(column)
            if selected.any():
                who = f"column {column.name!r} has " if column.name != owner else ""
                found.append(f"{who}{np.count_nonzero(selected)}, at {name_rows(selected)}")
    hidden = len(found) - SHOWN
    return "; ".join(found[:SHOWN]) + (f"; and {hidden} more columns" if hidden > 0 else "")


def _infinite(column: RawColumn) -> Mask:
    if column.kind == "categorical":
        return np.zeros(column.values.shape, dtype=np.bool_)
    # Wider floats than float64 may become infinite only on conversion.
    with np.errstate(over="ignore"):
        return np.isinf(column.values.astype(np.float64, copy=False))
