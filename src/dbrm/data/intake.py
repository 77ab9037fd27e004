"""Read any table a user may pass as a list of named raw columns.

It checks shapes and names, not content: the columns of a data frame are read only when they
are used, so that unused columns can be of any type.
"""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, final

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import DuplicateError

from dbrm._typing import TableLike
from dbrm.data.columns import read_column
from dbrm.errors import InvalidDataError, quote, suggest

__all__ = [
    "RawTable",
    "read_index_columns",
    "read_numbers",
    "read_table",
    "refuse_sparse",
    "to_array",
]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RawTable:
    """A table as the user passed it.

    Parameters
    ----------
    names
        Column names, unique.
    contents
        Per column a narwhals series or a one-dimensional array, not yet read.
    n_rows
        Number of rows, at least one.
    named
        Whether the user named the columns; otherwise they are ``x1``, ``x2``, ...
    """

    names: tuple[str, ...]
    contents: tuple[Any, ...]
    n_rows: int
    named: bool


def read_table(
    X: TableLike, names: Sequence[str] | None = None, *, least_columns: int = 1
) -> RawTable:
    """Read NumPy arrays, nested lists, data frames or mappings of columns.

    Parameters
    ----------
    X
        The user's table.
    names
        Names for the columns of an array or nested list, which has none of its own.
    """
    refuse_sparse(X, "X")
    if isinstance(X, os.PathLike) or (isinstance(X, str) and Path(X).suffix):
        msg = f"X is a path, {str(X)!r}, where a table in memory is needed: read it first."
        raise InvalidDataError(msg)
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        X = {name: X[name] for name in X.dtype.names}
    native = _from_mapping(X) if isinstance(X, Mapping) else _from_frame(X)
    if native is None:
        return _from_array(X, names, least_columns)
    if names is not None:
        msg = "names= is for arrays; the columns of a data frame or mapping have names already."
        raise InvalidDataError(msg)
    columns, n_rows = native
    _check_size(n_rows, len(columns), least_columns)
    return RawTable(_unique(list(columns)), tuple(columns.values()), n_rows, named=True)


def read_numbers(X: TableLike) -> RawTable | None:
    """Read a table whose columns are all numbers; return None for any other table."""
    if not (isinstance(X, np.ndarray | Mapping) or _is_frame(X)):
        return None
    raw = read_table(X)
    contents = [c if isinstance(c, np.ndarray) else c.to_numpy() for c in raw.contents]
    if any(content.dtype.kind not in "biuf" for content in contents):
        return None
    return RawTable(raw.names, tuple(contents), raw.n_rows, raw.named)


def read_index_columns(raw: RawTable, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Read the columns that index latent effects: numbers, or text for named groups."""
    found = {}
    for name in names:
        if name not in raw.names:
            msg = (
                f"latent names the column {name!r}{suggest(name, raw.names)}, which the data do "
                f"not have. Columns: {quote(raw.names)}."
            )
            raise InvalidDataError(msg)
        column = read_column(name, raw.contents[raw.names.index(name)])
        absent = np.flatnonzero(column.missing)
        if absent.size:
            msg = (
                f"The column {name!r} of a latent effect has no value in row {absent[0]}"
                f"{f' and {absent.size - 1} more rows' if absent.size > 1 else ''}. "
                "Remove these rows."
            )
            raise InvalidDataError(msg)
        if column.coded:
            found[name] = np.array(column.levels)[column.values]
        else:
            found[name] = np.asarray(column.values, dtype=np.float64)
    return found


def _is_frame(X: TableLike) -> bool:
    return isinstance(nw.from_native(X, pass_through=True), nw.DataFrame)


def refuse_sparse(value: object, name: str) -> None:
    """Raise if `value` is a SciPy sparse matrix or array."""
    # Nobody can hold a sparse matrix without having imported scipy.sparse.
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(value):
        msg = (
            f"{name} is a sparse matrix; sparse data are not supported. Try {name}.toarray(); of "
            "thousands of columns choose some first, as with sklearn.feature_selection.SelectKBest."
        )
        raise InvalidDataError(msg)


def to_array(value: Any) -> npt.NDArray[Any]:
    """Read anything array-like; masked entries become NaN, ragged lists are an error."""
    if isinstance(value, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(value.astype(np.float64), np.nan))
    try:
        array = np.asarray(value)
        # NumPy would make text of everything beside a text, also of None and NaN.
        if array.dtype.kind == "U" and array.ndim == 1 and isinstance(value, list | tuple):
            mixed = not all(isinstance(entry, str) for entry in value)
            return np.array(value, dtype=object) if mixed else array
        return array
    except ValueError as error:
        msg = f"The data cannot be read as an array: {error}"
        raise InvalidDataError(msg) from error


def _from_frame(X: TableLike) -> tuple[dict[object, Any], int] | None:
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError as error:
        repeated = str(error).partition("\n")[2].replace("\n", " ").strip("- ")
        msg = f"Column names must be unique; repeated: {repeated}."
        raise InvalidDataError(msg) from error
    if isinstance(frame, nw.LazyFrame):
        msg = "X is a lazy frame, whose values do not exist yet. Try X.collect()."
        raise InvalidDataError(msg)
    if isinstance(frame, nw.Series):
        _refuse_one_dimension(len(frame))
    if isinstance(frame, nw.DataFrame):
        return dict(zip(frame.columns, frame.iter_columns(), strict=True)), len(frame)
    return None


def _from_mapping(X: Mapping[object, Any]) -> tuple[dict[object, Any], int]:
    columns: dict[object, Any] = {}
    for name, entries in X.items():
        content = nw.from_native(entries, pass_through=True, allow_series=True)
        columns[name] = content if isinstance(content, nw.Series) else to_array(entries)
        if len(shape := columns[name].shape) != 1:
            msg = f"Column {name!r} must be one-dimensional; got shape {shape}."
            raise InvalidDataError(msg)
    lengths = {str(name): len(content) for name, content in columns.items()}
    if len(set(lengths.values())) > 1:
        msg = f"All columns must have the same number of rows; got {lengths}."
        raise InvalidDataError(msg)
    return columns, next(iter(lengths.values()), 0)


def _from_array(X: TableLike, names: Sequence[str] | None, least_columns: int) -> RawTable:
    array = to_array(X)
    if array.ndim == 0:
        msg = (
            f"Expected 2D array, got a single {type(X).__name__} instead. X must be an array with "
            "rows and columns, a data frame, or a mapping of columns."
        )
        raise InvalidDataError(msg)
    if array.ndim == 1:
        _refuse_one_dimension(array.shape[0])
    if array.ndim > 2:
        msg = (
            f"Found array with dim {array.ndim}, while dim <= 2 is required: X must have rows and "
            f"columns only; got shape {array.shape}."
        )
        raise InvalidDataError(msg)
    _check_size(array.shape[0], array.shape[1], least_columns)
    if array.dtype.kind in "USTV" and array.size:
        _refuse_text(str(array.flat[0]))
    if names is not None and len(names) != array.shape[1]:
        msg = (
            f"names= must have one name per column; got {len(names)} for {array.shape[1]} columns."
        )
        raise InvalidDataError(msg)
    given = [f"x{j + 1}" for j in range(array.shape[1])] if names is None else list(names)
    unique = _unique(given)
    contents = tuple(array.T) if array.dtype.kind != "O" else _to_numbers(array, unique)
    return RawTable(unique, contents, array.shape[0], named=names is not None)


def _to_numbers(array: npt.NDArray[Any], names: Sequence[str]) -> tuple[npt.NDArray[Any], ...]:
    columns = [read_column(name, content) for name, content in zip(names, array.T, strict=True)]
    for column in columns:
        if column.coded:
            _refuse_text(column.levels[0])
    return tuple(column.values for column in columns)


def _unique(names: Sequence[object]) -> tuple[str, ...]:
    texts = [str(name) for name in names]
    repeated = [text for text, count in Counter(texts).items() if count > 1]
    if repeated:
        msg = f"Column names must be unique (as text); repeated: {quote(repeated)}."
        raise InvalidDataError(msg)
    return tuple(texts)


def _check_size(n_rows: int, n_columns: int, least_columns: int) -> None:
    sizes = ((n_columns, least_columns, "feature(s)"), (n_rows, 1, "sample(s)"))
    for count, least, noun in sizes:
        if count < least:
            msg = (
                f"Found array with 0 {noun} (shape=({n_rows}, {n_columns})) while a minimum of 1 "
                "is required."
            )
            raise InvalidDataError(msg)


def _refuse_one_dimension(length: int) -> NoReturn:
    msg = (
        f"Expected 2D array, got 1D array of length {length} instead. Reshape your data "
        "either using X.reshape(-1, 1) if it has a single column or X.reshape(1, -1) if it has a "
        "single row."
    )
    raise InvalidDataError(msg)


def _refuse_text(example: str) -> NoReturn:
    msg = (
        f"X is an array that holds text, such as {example!r}. Use a DataFrame, or a mapping of "
        "columns, so that each column keeps its own type."
    )
    raise InvalidDataError(msg)
