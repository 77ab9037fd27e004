"""``dbrm check``: what is often wrong in a table, before anything is fitted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dbrm.cli.console import Decimal, Encoding, Separator, in_options, json_text, show_errors

__all__ = ["check", "print_check"]


def check(
    data: Annotated[Path, typer.Argument(help="Table: .csv, .tsv, .parquet, .arrow or .feather.")],
    response: Annotated[str | None, typer.Option(help="Column to explain.")] = None,
    family: Annotated[str | None, typer.Option(help="Family of the response.")] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: 'id,name'.")] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Look for common mistakes in a table: identifiers, dates, numbers as text, leakage."""
    from dbrm.data.files import read_file

    with show_errors():
        file = read_file(data, encoding=encoding, separator=separator, decimal=decimal)
        left_out = [] if ignore is None else [name.strip() for name in ignore.split(",")]
        print_check(
            *(file.columns, file.notes, response),
            family=family or "gaussian",
            ignore=left_out,
            as_json=as_json,
        )


def print_check(
    columns: dict[str, Any],
    notes: Sequence[str],
    response: str | None,
    *,
    family: str,
    ignore: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Print the findings, one paragraph each."""
    from dbrm.run.data_check import find_problems

    found = find_problems(columns, response, ignore=ignore, family=family)
    if as_json:
        rows = [
            {"column": f.column, "finding": f.kind, "seen": f.seen, "advice": in_options(f.advice)}
            for f in found
        ]
        typer.echo(json_text({"notes": list(notes), "findings": rows}))
        return
    for note in notes:
        typer.echo(note)
    for finding in found:
        typer.echo(f"{finding.kind}: {in_options(finding.message)}")
    n_rows = len(next(iter(columns.values())))
    what = "nothing found" if not found else f"{len(found)} found"
    typer.echo(f"{n_rows:,} rows, {len(columns)} columns: {what}.")
