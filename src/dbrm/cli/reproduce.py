"""``dbrm reproduce``: the paper's tables, computed again beside the printed numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dbrm.cli.errors import told_to_the_user

__all__ = ["reproduce"]

_PRESETS: dict[str, tuple[str, ...]] = {
    "paper_text": ("paper_text",),
    "paper_code": ("paper_code",),
    "both": ("paper_text", "paper_code"),
}


@contextmanager
def _resumable() -> Iterator[None]:
    """End with exit code 130 on Ctrl-C, and say that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Interrupted. Finished runs are kept; the same command goes on.", err=True)
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
    from dbrm.reproduce import Options
    from dbrm.reproduce import reproduce as carry_out
    from dbrm.reproduce.tables import TABLES

    if what != "all" and what not in TABLES:
        msg = f"there is no table {what!r}. There are {', '.join(TABLES)} and all."
        raise typer.BadParameter(msg)
    options = Options(runs, chains, _PRESETS[preset], populations)
    with told_to_the_user(), _resumable():
        for name in TABLES if what == "all" else [what]:
            with counting_bar(f"{name}, runs") as update:
                files = carry_out(name, out, options, jobs=jobs, watch=update)
            for path in files:
                typer.echo(path)
