"""``dbrm report``: a saved posterior as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from dbrm.cli.errors import told_to_the_user

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="File written by dbrm fit --out.")],
    out: Annotated[
        Path | None, typer.Argument(help="The page; run.html beside run.dbrm unless given.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Table to draw predictions against, response included.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The question that the page answers.")] = None,
) -> None:
    """Write the findings of a saved run as one HTML page that needs no network."""
    from dbrm.data.files import read_columns
    from dbrm.posterior import load

    path = run.with_suffix(".html") if out is None else out
    with told_to_the_user():
        posterior = load(run)
        if data is None:
            posterior.report(path, title=title)
        else:
            columns = read_columns(data)
            response = posterior.record.response
            if response not in columns:
                msg = f"the table has no column {response!r}, the response of this run."
                raise typer.BadParameter(msg)
            posterior.report(path, columns, columns[response], title=title)
    typer.echo(f"Report: {path}")
