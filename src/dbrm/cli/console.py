"""What commands share: errors as one line, JSON as text, and columns by name."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

import typer

from dbrm.errors import DBRMError

__all__ = ["find_column", "json_text", "show_errors"]


@contextmanager
def show_errors() -> Iterator[None]:
    """Print errors of dbrm and of the system as one line, and exit with code 1; no traceback."""
    try:
        yield
    except (DBRMError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None


def find_column(columns: dict[str, Any], name: str) -> Any:
    """A column of a table, or an error that lists the columns there are."""
    if name not in columns:
        msg = f"the table has no column {name!r}. Its columns: {', '.join(columns)}."
        raise typer.BadParameter(msg)
    return columns[name]


def json_text(value: Any) -> str:
    """Write tables and numbers as JSON; what is not a finite number becomes null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value
