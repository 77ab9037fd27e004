"""Errors meant for people, as one line and an exit code; no traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dbrm.errors import DBRMError

__all__ = ["told_to_the_user"]


@contextmanager
def told_to_the_user() -> Iterator[None]:
    """End with exit code 1 and the message on stderr, where dbrm or the system refuses."""
    try:
        yield
    except (DBRMError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
