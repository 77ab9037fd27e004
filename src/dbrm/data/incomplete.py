"""Leave out the rows in which a value is missing, before anything is learned from a table."""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dbrm._typing import Mask, TableLike
from dbrm.data.columns import read_column
from dbrm.data.intake import RawTable, read_table
from dbrm.errors import DBRMWarning, InvalidDataError

__all__ = ["columns_in_formula", "drop_incomplete"]

# Leaving out more than this share of the rows is worth a word.
_MANY = 0.2


def drop_incomplete(
    X: TableLike, vectors: Mapping[str, Any], names: frozenset[str] | None = None
) -> tuple[TableLike, dict[str, Any]]:
    """Return a table, and vectors of one value per row, without the rows that lack a value.

    Parameters
    ----------
    names
        The columns that matter; all of them unless given.
    """
    raw = read_table(X)
    keep: Mask = np.ones(raw.n_rows, dtype=np.bool_)
    for name, content in zip(raw.names, raw.contents, strict=True):
        if names is None or name in names:
            keep &= ~read_column(name, content).missing
    for name, value in vectors.items():
        keep &= _is_given(name, value, raw.n_rows)
    if keep.all():
        return X, dict(vectors)
    n_left = int(np.count_nonzero(keep))
    if not n_left:
        msg = "missing='drop' leaves no row: a value is missing in every one. Try 'indicator'."
        raise InvalidDataError(msg)
    if n_left < (1.0 - _MANY) * raw.n_rows:
        msg = (
            f"missing='drop' leaves out {raw.n_rows - n_left} of {raw.n_rows} rows; "
            "missing='indicator' would keep them."
        )
        warnings.warn(msg, DBRMWarning, stacklevel=4)
    taken = {name: _take(value, keep) for name, value in vectors.items()}
    return _take_rows(X, raw, keep), taken


def columns_in_formula(formula: str, data: TableLike) -> frozenset[str]:
    """Return the columns whose names occur in a formula; all of them for ``y ~ .``."""
    names = read_table(data).names
    if re.search(r"[~+(]\s*\.\s*($|[-+)])", formula):
        return frozenset(names)
    return frozenset(
        name for name in names if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", formula)
    )


def _is_given(name: str, value: Any, n_rows: int) -> Mask:
    """Rows in which a vector has a value; all of them for what is no vector of this table."""
    content = nw.from_native(value, pass_through=True, allow_series=True)
    if not isinstance(content, nw.Series):
        content = np.asarray(value)
    if value is None or content.shape != (n_rows,):
        return np.ones(n_rows, dtype=np.bool_)
    return ~read_column(name, content).missing


def _take_rows(X: TableLike, raw: RawTable, keep: Mask) -> TableLike:
    if not raw.named:
        return np.asarray(X)[keep]
    return {name: _take(c, keep) for name, c in zip(raw.names, raw.contents, strict=True)}


def _take(value: Any, keep: Mask) -> Any:
    content = nw.from_native(value, pass_through=True, allow_series=True)
    if isinstance(content, nw.Series):
        return content.filter(keep.tolist()) if len(content) == keep.size else value
    return np.asarray(value)[keep] if np.shape(value) == keep.shape else value
