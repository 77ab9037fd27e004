"""Read tables from files: CSV, tab-separated, Parquet and Arrow, with the installed library."""

import csv
import gzip
import os
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import narwhals.stable.v2 as nw

from dbrm.data.intake import read_table
from dbrm.errors import InvalidFileError, quote

__all__ = ["read_columns"]

_TEXT = (".csv", ".txt", ".tsv", ".tab")
_ARROW = (".arrow", ".feather", ".ipc")
_KNOWN = (*_TEXT, ".parquet", *_ARROW)


def read_columns(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a table from a file, as a mapping from name to column.

    The separator of a text file is comma, semicolon or tab, whichever is most frequent in its
    first line. Text may be compressed (``.csv.gz``).
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".gz" and Path(Path(path).stem).suffix.lower() in _TEXT:
        suffix = Path(Path(path).stem).suffix.lower()
    if suffix not in _KNOWN:
        msg = f"{path}: tables are read from files that end in {', '.join(_KNOWN)}."
        raise InvalidFileError(msg)
    try:
        frame = _read(str(path), suffix)
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
    return dict(zip(raw.names, raw.contents, strict=True))


def _read(path: str, suffix: str) -> Any:
    if suffix in _TEXT:
        separator = _separator(path)
        _refuse_repeated(path, separator)
        return nw.read_csv(path, backend="pandas", separator=separator)
    for backend in ("pyarrow", "polars"):
        if find_spec(backend) is not None:
            if suffix == ".parquet":
                return nw.read_parquet(path, backend=backend)
            return _read_with_pyarrow(path) if backend == "pyarrow" else _read_with_polars(path)
    kind = "a Parquet" if suffix == ".parquet" else "an Arrow"
    msg = f"{path} is {kind} file: install pyarrow or polars to read it."
    raise InvalidFileError(msg)


def _separator(path: str) -> str:
    with _open_text(path) as file:
        first = re.sub(r'"[^"]*"', "", file.readline())
    return max(",;\t", key=first.count)


def _refuse_repeated(path: str, separator: str) -> None:
    """Raise if two columns have the same name: pandas would silently rename the second."""
    with _open_text(path) as file:
        names = next(csv.reader(file, delimiter=separator), [])
    repeated = [name for name, n in Counter(names).items() if n > 1 and name]
    if repeated:
        msg = (
            f"{path}: column names must be unique; repeated: {quote(repeated)}. Rename or remove "
            "columns in the first line of the file."
        )
        raise InvalidFileError(msg)


def _open_text(path: str) -> TextIO:
    if path.endswith(".gz"):
        return gzip.open(path, "rt", errors="replace", newline="")
    return open(path, errors="replace", newline="")


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
