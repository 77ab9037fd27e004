"""The commands ``dbrm reproduce`` and ``dbrm data``."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbrm.cli.console import json_text, show_errors

if TYPE_CHECKING:
    from rich.table import Table

    from dbrm_paper.datasets import DataSet

__all__ = ["data", "reproduce"]

_PRESETS: dict[str, tuple[str, ...]] = {
    "paper_text": ("paper_text",),
    "paper_code": ("paper_code",),
    "both": ("paper_text", "paper_code"),
}


@contextmanager
def _resumable() -> Iterator[None]:
    """Exit with code 130 on Ctrl-C, and say that finished runs are kept."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Interrupted. Finished runs are kept: repeat the command to resume.", err=True)
        raise typer.Exit(130) from None


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="table1, table2, table3, table4, mass, kepler, appendix-a, appendix-b, example6, "
            "example7, or all."
        ),
    ],
    runs: Annotated[int, typer.Option(min=1, help="Seeds per method.")] = 3,
    chains: Annotated[
        int | None,
        typer.Option(min=1, help="Chains of parallel methods; as in the paper if not given."),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(help="paper_text (as written), paper_code (as its scripts ran), or both."),
    ] = "paper_code",
    populations: Annotated[
        int | None, typer.Option(min=1, help="Populations per chain, for a quick look.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time; -1 for all cores.")] = -1,
    out: Annotated[Path, typer.Option(help="Folder of records and pages.")] = Path("reproduced"),
) -> None:
    """Compute a table of the paper again; runs already in the folder are not repeated."""
    if preset not in _PRESETS:
        msg = f"--preset must be one of {', '.join(_PRESETS)}; got {preset!r}."
        raise typer.BadParameter(msg)
    from dbrm.report import counting_bar
    from dbrm_paper import tables
    from dbrm_paper.runs import Options

    if what != "all" and what not in tables.TABLES:
        msg = f"there is no table {what!r}. There are {', '.join(tables.TABLES)} and all."
        raise typer.BadParameter(msg)
    options = Options(runs, chains, _PRESETS[preset], populations)
    with show_errors(), _resumable():
        for name in tables.TABLES if what == "all" else [what]:
            with counting_bar(f"{name}, runs") as update:
                files = tables.reproduce(name, out, options, jobs=jobs, watch=update)
            for path in files:
                typer.echo(path)


data = typer.Typer(name="data", help="The data sets of the paper's examples.", no_args_is_help=True)

Names = Annotated[
    list[str] | None, typer.Argument(help="Names as in dbrm data list; all if none is given.")
]


@data.command("list")
def list_sets(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the data sets, and where they are on this machine."""
    from dbrm_paper.datasets import CATALOGUE

    if as_json:
        typer.echo(json_text([_facts(entry) for entry in CATALOGUE.values()]))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(_table())
    console.print("\nFetch: dbrm data fetch NAME   As CSV: dbrm data export NAME", style="dim")


@data.command()
def fetch(names: Names = None) -> None:
    """Download data sets that are not on this machine yet, and print the paths of their files."""
    with show_errors():
        for entry in _find(names):
            for path in entry.fetch():
                typer.echo(path)


@data.command()
def export(
    name: Annotated[str, typer.Argument(help="Name as in dbrm data list.")],
    folder: Annotated[Path, typer.Option(help="Folder to write to.")] = Path(),
) -> None:
    """Write a data set, prepared as in the paper, as CSV: one file, or train and test."""
    (entry,) = _find([name])
    with show_errors():
        folder.mkdir(parents=True, exist_ok=True)
        for part, table in entry.tables().items():
            path = folder / (f"{name}.csv" if part == "all" else f"{name}-{part}.csv")
            table.to_csv(path, index=False)
            typer.echo(f"{path}  ({len(table):,} rows; response {entry.response})")


def _find(names: list[str] | None) -> "list[DataSet]":
    from dbrm_paper.datasets import CATALOGUE

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


def _table() -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from dbrm_paper.datasets import CATALOGUE

    table = Table(
        title="Data sets of the paper",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for name in ("name", "example", "rows", "response", "on this machine"):
        table.add_column(name, overflow="fold", justify="right" if name == "rows" else "left")
    for entry in CATALOGUE.values():
        place = str(entry.place or "not yet")
        table.add_row(entry.name, entry.example, entry.rows, entry.response, Text(place))
    return table
