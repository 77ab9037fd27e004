"""Read tables from files: CSV, tab-separated, Parquet and Arrow, with the installed library.

What a text file says is changed only where it can mean nothing else (decimal commas, marks
between thousands, units behind every number), and every such change is noted.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, final

import narwhals.stable.v2 as nw
import numpy as np

from dbrm.data.delimited import Layout, find_layout
from dbrm.data.intake import read_table
from dbrm.data.text_numbers import NumberFormat, find_format, is_missing_mark
from dbrm.errors import InvalidFileError, quote

__all__ = ["FileTable", "read_file"]

_TEXT = (".csv", ".txt", ".tsv", ".tab", ".dat")
_ARROW = (".arrow", ".feather", ".ipc")
_EXCEL = (".xlsx", ".xls", ".ods")
_KNOWN = (*_TEXT, ".parquet", *_ARROW)


@final
@dataclass(frozen=True, slots=True)
class FileTable:
    """Columns of a file by name, and notes about how they were read."""

    columns: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_file(
    path: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> FileTable:
    """Read a table from a file. Text may be compressed (``.csv.gz``).

    Parameters
    ----------
    encoding, separator, decimal
        Of a text file: its encoding, what is between cells, and the decimal mark; each is
        recognised unless given.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".gz" and Path(Path(path).stem).suffix.lower() in _TEXT:
        suffix = Path(Path(path).stem).suffix.lower()
    if suffix not in _KNOWN:
        excel = " Save the sheet of a spreadsheet as CSV." if suffix in _EXCEL else ""
        msg = f"{path}: tables are read from files that end in {', '.join(_KNOWN)}.{excel}"
        raise InvalidFileError(msg)
    notes: list[str] = []
    try:
        if suffix in _TEXT:
            layout = find_layout(str(path), encoding, separator)
            frame = _read_text(layout, str(path), decimal)
            notes = layout.notes
        else:
            frame = _read_binary(str(path), suffix)
    except InvalidFileError:
        raise
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise InvalidFileError(msg) from error
    # Every library has its own errors for what is not a table.
    except Exception as error:
        msg = f"{path} does not hold a table: {error}"
        raise InvalidFileError(msg) from error
    raw = read_table(frame)
    columns = dict(zip(raw.names, raw.contents, strict=True))
    return FileTable(columns, tuple(f"{Path(path).name}: {note}." for note in notes))


def _read_text(layout: Layout, path: str, decimal: str | None) -> dict[str, Any]:
    columns = _parse(layout)
    codes = {layout.names[j] for j in layout.codes}
    texts = {name: column for name, column in columns.items() if column.dtype == nw.String}
    formats = _find_formats(texts, decimal, codes)
    if decimal is None and any(
        form.decimal == "," and not form.ambiguous for form in formats.values()
    ):
        decimal = ","
    if decimal == ",":
        # A point is then no decimal point: 1.234 may be more than a thousand.
        columns = _parse(layout, as_text=True)
        formats = _find_formats(columns, decimal, codes)
    changed: dict[str, list[str]] = {}
    for name, form in formats.items():
        resolved = _resolve(form, layout, columns) if form.ambiguous else form
        if resolved is None:
            example = next(text for text in _distinct(columns[name]) if "," in text)
            msg = (
                f"{path}: {example!r} in column {name!r} may have a decimal comma or a comma "
                "between thousands. Say which: decimal=',' or decimal='.'."
            )
            raise InvalidFileError(msg)
        columns[name], how = _to_numbers(name, columns[name], resolved)
        for note in how:
            changed.setdefault(note, []).append(name)
    layout.notes.extend(f"{note} in {quote(names, limit=5)}" for note, names in changed.items())
    return columns


def _parse(layout: Layout, *, as_text: bool = False) -> dict[str, Any]:
    import pandas as pd

    names = [f"{j}" for j in range(len(layout.names))]
    frame = pd.read_csv(
        StringIO(layout.table_text),
        sep=layout.separator,
        header=None,
        names=names,
        usecols=[j for j, name in enumerate(layout.names) if name is not None],
        index_col=False,
        skipinitialspace=True,
        dtype="str" if as_text else {names[j]: "str" for j in layout.codes},
    )
    frame.columns = pd.Index([name for name in layout.names if name is not None])
    table = nw.from_native(frame, eager_only=True)
    return dict(zip(table.columns, table.iter_columns(), strict=True))


def _distinct(column: Any) -> list[str]:
    return [text for text in column.unique().to_list() if isinstance(text, str)]


def _find_formats(
    columns: dict[str, Any], decimal: str | None, codes: set[str | None]
) -> dict[str, NumberFormat]:
    found = {
        name: find_format(_distinct(column), decimal=decimal)
        for name, column in columns.items()
        if name not in codes
    }
    return {name: form for name, form in found.items() if form is not None}


def _resolve(form: NumberFormat, layout: Layout, columns: dict[str, Any]) -> NumberFormat | None:
    """Decide between a decimal comma and commas between thousands; None if both may be."""
    points = any(
        column.dtype.is_float() and bool(np.any(np.mod(column.to_numpy(), 1.0) > 0.0))
        for column in columns.values()
    )
    if points or layout.separator == ",":
        return NumberFormat(".", ",", form.unit)
    # Semicolons separate cells where commas are decimal marks.
    return NumberFormat(",", "", form.unit) if layout.separator == ";" else None


def _to_numbers(name: str, column: Any, form: NumberFormat) -> tuple[Any, list[str]]:
    """Return the numbers, and what was recognised."""
    texts = _distinct(column)
    marks = sorted(text for text in texts if is_missing_mark(text))
    numbers = {text: np.nan if text in marks else form.read(text) for text in texts}
    how = []
    if form.decimal == "," and any("," in text for text in texts):
        how.append("decimal commas")
    if form.thousands:
        how.append("marks between thousands")
    if form.unit:
        how.append(f"numbers with the unit {form.unit!r}")
    if marks:
        how.append(f"{quote(marks, limit=3)} as missing values")
    values = [numbers.get(text, np.nan) for text in column.to_list()]
    return nw.new_series(name, values, nw.Float64, backend="pandas"), how


def _read_binary(path: str, suffix: str) -> Any:
    for backend in ("pyarrow", "polars"):
        if find_spec(backend) is not None:
            if suffix == ".parquet":
                return nw.read_parquet(path, backend=backend)
            return _read_with_pyarrow(path) if backend == "pyarrow" else _read_with_polars(path)
    kind = "a Parquet" if suffix == ".parquet" else "an Arrow"
    msg = f"{path} is {kind} file: install pyarrow or polars to read it."
    raise InvalidFileError(msg)


def _read_with_pyarrow(path: str) -> Any:
    """Arrow's file format (also called Feather), or its stream format."""
    import pyarrow as pa

    with pa.OSFile(path) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _read_with_polars(path: str) -> Any:
    import polars as pl

    try:
        return pl.read_ipc(path, memory_map=False)
    except pl.exceptions.ComputeError:
        return pl.read_ipc_stream(path)
