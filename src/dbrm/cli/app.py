"""The program ``dbrm``: all commands put together."""

from typing import Annotated

import typer

from dbrm import __version__
from dbrm.cli.check import check
from dbrm.cli.demo import demo
from dbrm.cli.fit import fit
from dbrm.cli.saved import predict, report, show
from dbrm_paper.commands import data, reproduce

__all__ = ["app"]

app = typer.Typer(
    name="dbrm",
    help="Deep Bayesian regression models: nonlinear regression you can read.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
for command in (fit, check, show, predict, report, demo, reproduce):
    app.command()(command)
app.add_typer(data)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dbrm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Deep Bayesian regression models: nonlinear regression you can read."""
