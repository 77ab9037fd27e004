"""``dbrm demo``: from a table of real planets to Kepler's third law."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.panel import Panel
    from rich.text import Text

    from dbrm.posterior import Posterior

__all__ = ["demo"]

LAW = "troot(PeriodDays*PeriodDays*HostStarMassSlrMass)"
RESPONSE = "SemiMajorAxisAU"
# The Earth: one astronomical unit, one solar mass, this many days.
DAYS_PER_YEAR = 365.25


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the report and the picture.")] = Path(),
) -> None:
    """Find Kepler's third law in 223 planets of other stars."""
    from rich.console import Console

    from dbrm import datasets, fit
    from dbrm.report import feature_table, model_table

    console = Console(highlight=False)
    planets = datasets.load_exoplanets()
    axis = planets.pop(RESPONSE)
    console.print(
        f"{len(planets)} planets of other stars, {planets.shape[1]} columns "
        f"(Open Exoplanet Catalogue).\nWhat determines the size of an orbit, {RESPONSE}?\n"
    )
    posterior = fit(planets, axis, transforms="paper-g1", random_state=seed)
    record = posterior.record
    for part in (_best_model(posterior), feature_table(posterior, 3), model_table(posterior, 2)):
        console.print(part)
        console.print()
    console.print(_in_plain_words(posterior, planets, axis))
    console.print(f"{record.n_evaluated:,} model evaluations, {record.seconds:.1f} s.", style="dim")
    for name, path in _write_files(posterior, planets, axis, out).items():
        console.print(f"{name}: {path}", soft_wrap=True)


def _best_model(posterior: "Posterior") -> "Panel":
    from rich.panel import Panel
    from rich.text import Text

    from dbrm.report import format_probability

    best = posterior.best_model
    text = Text.assemble(
        (best.formula, "bold"), f"\nPosterior probability: {format_probability(best.probability)}"
    )
    return Panel(text, title="The best model", title_align="left", padding=(0, 1), expand=False)


def _in_plain_words(posterior: "Posterior", planets: Any, axis: Any) -> "Text":
    from rich.text import Text

    from dbrm import parse_feature
    from dbrm.report import format_probability

    probability = posterior.inclusion(LAW)
    text = Text.assemble(
        ("Kepler's third law, a ∝ (P² M)^(1/3)", "bold"),
        ", has posterior probability ",
        (format_probability(probability), "bold"),
        "." if probability > 0.5 else ": it was not found in this run. Try another seed.",
    )
    estimates = posterior.best_model.coefficients().set_index("term")["estimate"]
    if LAW in estimates:
        text.append(f"\nIts constant is {estimates[LAW]:.5f}; the orbit of the Earth gives ")
        text.append(f"{DAYS_PER_YEAR ** (-2 / 3):.5f}.")
        others = [name for name in posterior.best_model.features if name != LAW]
        if others:
            shift = sum(estimates[name] * parse_feature(name).evaluate(planets) for name in others)
            subject = "other term of the best model changes"
            if len(others) > 1:
                subject = "other terms of the best model change"
            text.append(f"\nThe {subject} no orbit by more than ")
            text.append(f"{abs(shift / axis).max():.1%}.")
    return text


def _write_files(posterior: "Posterior", planets: Any, axis: Any, out: Path) -> dict[str, Path]:
    out.mkdir(parents=True, exist_ok=True)
    report, picture = out / "dbrm-demo.html", out / "dbrm-demo.png"
    posterior.report(report)
    posterior.plot.overview(planets, axis).savefig(picture, dpi=150)
    return {"Report": report, "Picture": picture}
