"""``dbrm show``: what a saved posterior has found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbrm.cli.errors import told_to_the_user
from dbrm.cli.json_text import json_text

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["print_posterior", "show"]


def show(
    run: Annotated[Path, typer.Argument(help="File written by dbrm fit --out.")],
    top: Annotated[int, typer.Option(min=1, help="Features to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the findings of a saved run."""
    from dbrm.posterior import load

    with told_to_the_user():
        posterior = load(run)
    print_posterior(posterior, top=top, as_json=as_json)


def print_posterior(posterior: "Posterior", *, top: int = 10, as_json: bool = False) -> None:
    """Print the summary, or the same as JSON."""
    if as_json:
        typer.echo(json_text(_facts(posterior, top)))
    else:
        typer.echo(posterior.summary(top), nl=False)


def _facts(posterior: "Posterior", top: int) -> dict[str, Any]:
    best = posterior.best_model
    return {
        "response": best.response,
        "best_model": {
            "formula": best.formula,
            "probability": best.probability,
            "coefficients": best.coefficients().to_dict("records"),
        },
        "features": posterior.features.head(top).to_dict("records"),
        "models": posterior.models.head(top).to_dict("records"),
        "n_models": len(posterior.models),
        "n_evaluated": posterior.record.n_evaluated,
        "seconds": posterior.record.seconds,
        "seed": posterior.record.seed,
        "verdict": posterior.diagnostics.verdict(),
    }
