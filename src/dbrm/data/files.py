"""Tables in files: CSV, tab-separated and Parquet, through whichever library is installed."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from dbrm.data.intake import read_table
from dbrm.errors import InvalidFileError

__all__ = ["read_columns"]

_SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}


def read_columns(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a table from a file, as a mapping from name to column."""
    suffix = Path(path).suffix.lower()
    if suffix not in (*_SEPARATORS, ".parquet"):
        known = ", ".join((*_SEPARATORS, ".parquet"))
        msg = f"{path}: tables are read from files that end in {known}."
        raise InvalidFileError(msg)
    try:
        frame = _read(str(path), suffix)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise InvalidFileError(msg) from error
    # Every library has errors of its own for what is not a table.
    except Exception as error:
        msg = f"{path} does not hold a table: {error}"
        raise InvalidFileError(msg) from error
    raw = read_table(frame)
    return dict(zip(raw.names, raw.contents, strict=True))


def _read(path: str, suffix: str) -> Any:
    if suffix != ".parquet":
        return nw.read_csv(path, backend="pandas", separator=_SEPARATORS[suffix])
    for backend in ("pyarrow", "polars"):
        if find_spec(backend) is not None:
            return nw.read_parquet(path, backend=backend)
    msg = f"{path} is a Parquet file: install pyarrow or polars to read it."
    raise InvalidFileError(msg)
