"""``dbrm data``: the data sets of the paper's examples."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbrm.cli.errors import told_to_the_user
from dbrm.cli.json_text import json_text

if TYPE_CHECKING:
    from dbrm.datasets import DataSet

__all__ = ["data"]

data = typer.Typer(name="data", help="The data sets of the paper's examples.", no_args_is_help=True)

Names = Annotated[
    list[str] | None, typer.Argument(help="Which ones, as dbrm data list shows them; all if none.")
]


@data.command("list")
def list_sets(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the data sets, and where they are on this machine."""
    from dbrm.datasets import CATALOGUE

    if as_json:
        typer.echo(json_text([_facts(entry) for entry in CATALOGUE.values()]))
        return
    from rich.console import Console

    from dbrm.report import data_table

    console = Console(highlight=False)
    console.print(data_table(CATALOGUE.values()))
    console.print("\nFetch: dbrm data fetch NAME   As CSV: dbrm data export NAME", style="dim")


@data.command()
def fetch(names: Names = None) -> None:
    """Download data sets that are not here yet, and print where their files are."""
    with told_to_the_user():
        for entry in _chosen(names):
            for path in entry.fetch():
                typer.echo(path)


@data.command()
def export(
    name: Annotated[str, typer.Argument(help="Which one, as dbrm data list shows it.")],
    folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(),
) -> None:
    """Write a data set, prepared as in the paper, as CSV: one file, or train and test."""
    (entry,) = _chosen([name])
    with told_to_the_user():
        folder.mkdir(parents=True, exist_ok=True)
        for part, table in entry.tables().items():
            path = folder / (f"{name}.csv" if part == "all" else f"{name}-{part}.csv")
            table.to_csv(path, index=False)
            typer.echo(f"{path}  ({len(table):,} rows; response {entry.response})")


def _chosen(names: list[str] | None) -> "list[DataSet]":
    from dbrm.datasets import CATALOGUE

    for name in names or ():
        if name not in CATALOGUE:
            msg = f"there is no data set {name!r}. There are {', '.join(CATALOGUE)}."
            raise typer.BadParameter(msg)
    return [CATALOGUE[name] for name in names or CATALOGUE]


def _facts(entry: "DataSet") -> dict[str, str | None]:
    place = entry.place
    return {
        "name": entry.name,
        "example": entry.example,
        "rows": entry.rows,
        "response": entry.response,
        "place": None if place is None else str(place),
    }
