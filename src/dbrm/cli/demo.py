"""``dbrm demo``: from a table of simulated planets to Kepler's third law."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    from dbrm.posterior import Posterior

__all__ = ["demo"]

LAW = "troot(PeriodDays*PeriodDays*HostStarMassSlrMass)"
RESPONSE = "SemiMajorAxisAU"
PICTURE = "dbrm-demo.png"
DAYS_PER_YEAR = 365.25


def demo(
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the simulated planets and of the search.")
    ] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path(),
) -> None:
    """Simulate planets with noise and find the law that they obey."""
    from rich.console import Console

    from dbrm import datasets, fit

    console = Console(highlight=False)
    planets = datasets.simulate_planets(seed)
    axis = planets.pop(RESPONSE)
    console.print(
        f"{len(planets)} simulated planets, {planets.shape[1]} columns.\n"
        f"What determines the size of the orbit, {RESPONSE}?\n",
    )
    posterior = fit(planets, axis, transforms="paper-g1", random_state=seed, progress=True)
    _print_findings(console, posterior)
    path = _save_picture(posterior, planets, axis, out)
    console.print(f"Picture: {path}", soft_wrap=True)


def _print_findings(console: "Console", posterior: "Posterior") -> None:
    from dbrm.report import feature_table, model_table

    record = posterior.record
    console.print(_panel(posterior))
    console.print()
    console.print(feature_table(posterior, top=5))
    console.print()
    console.print(model_table(posterior, top=3))
    console.print()
    console.print(_in_plain_words(posterior))
    console.print(f"{record.n_evaluated:,} model evaluations, {record.seconds:.1f} s.", style="dim")


def _panel(posterior: "Posterior") -> "Panel":
    from rich.panel import Panel
    from rich.text import Text

    from dbrm.report import format_probability

    best = posterior.best_model
    text = Text.assemble(
        (best.formula, "bold"),
        f"\n\nPosterior probability of this model: {format_probability(best.probability)}",
    )
    return Panel(text, title="The best model", title_align="left", padding=(1, 2), expand=False)


def _in_plain_words(posterior: "Posterior") -> "Text":
    from rich.text import Text

    from dbrm.report import format_probability

    probability = posterior.inclusion(LAW)
    text = Text.assemble(
        ("The law a ∝ (P² M)^(1/3)", "bold"),
        ", Kepler's third, has posterior probability ",
        (format_probability(probability), "bold"),
        "." if probability > 0.5 else ": it was not found in this run. Try another seed.",
    )
    best = posterior.best_model
    if best.features == (LAW,):
        row = best.coefficients().iloc[1]
        text.append(
            f"\nIts constant is {row['estimate']:.5f}, 95 % interval {row['lower']:.5f} to "
            f"{row['upper']:.5f}; the truth is {DAYS_PER_YEAR ** (-2 / 3):.5f}."
        )
    return text


def _save_picture(posterior: "Posterior", planets: Any, axis: Any, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    path = out / PICTURE
    posterior.plot.overview(planets, axis).savefig(path, dpi=150)
    return path
