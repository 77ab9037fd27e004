"""The summary: tables and sentences that fit a terminal."""

import textwrap
from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbrm.report.findings import find
from dbrm.report.preparation import preparation_facts
from dbrm.report.rerun import failed_evaluations
from dbrm.report.wording import format_probability

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["covariate_table", "feature_table", "model_table", "summarise"]


_WIDTH = 100
# Pairs less probable than this are not named, and no more than so many.
_WORTH_NAMING, _MOST_PAIRS = 0.1, 5


def feature_table(posterior: "Posterior", top: int) -> Table:
    """The most probable features."""
    table = _table("Features")
    table.add_column("feature", overflow="fold")
    table.add_column("inclusion", justify="right")
    table.add_column("complexity", justify="right")
    for row in posterior.features.head(top).itertuples():
        table.add_row(Text(row.feature), format_probability(row.inclusion), str(row.complexity))
    return table


def covariate_table(posterior: "Posterior", top: int) -> Table:
    """Covariates by their share of the variation."""
    table = _table("Covariates")
    table.add_column("covariate", overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column("share", justify="right")
    table.add_column("direction")
    for row in posterior.covariates.head(top).itertuples():
        if row.direction == "none" and row.Index:
            continue
        table.add_row(
            Text(row.covariate),
            format_probability(row.probability),
            f"{100 * row.share:.1f} %",
            row.direction,
        )
    return table


def latent_table(posterior: "Posterior", top: int) -> Table:
    """The most probable latent effects."""
    table = _table("Latent effects")
    table.add_column("effect", overflow="fold")
    table.add_column("inclusion", justify="right")
    table.add_column("hyperparameters", overflow="fold")
    for row in posterior.latent.head(top).itertuples():
        values = ", ".join(f"{name} {value:.3g}" for name, value in row.hyperparameters.items())
        table.add_row(Text(row.effect), format_probability(row.inclusion), Text(values))
    return table


def model_table(posterior: "Posterior", top: int) -> Table:
    """The most probable models."""
    table = _table("Models")
    table.add_column("features", overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column("log evidence", justify="right")
    for row in posterior.models.head(top).itertuples():
        names = " + ".join((*row.features, *getattr(row, "latent", ()))) or "(intercept only)"
        table.add_row(Text(names), format_probability(row.probability), f"{row.log_evidence:.2f}")
    return table


def summarise(posterior: "Posterior", top: int) -> str:
    """The results as text: best formula, features, models, and what to know about the run."""
    buffer = StringIO()
    console = Console(file=buffer, width=_WIDTH, highlight=False)
    best, findings = posterior.best_model, find(posterior)
    console.print(f"Best model (probability {format_probability(best.probability)}):")
    console.print(f"  {best.formula}", soft_wrap=True, markup=False)
    for finding in findings:
        if finding.level == "bad":
            buffer.write(_wrap(f"Warning: {finding.title}. {finding.text}"))
    console.print()
    console.print(feature_table(posterior, top))
    console.print()
    console.print(covariate_table(posterior, top))
    console.print()
    if not posterior.latent.empty:
        console.print(latent_table(posterior, top))
        console.print()
    console.print(model_table(posterior, min(top, 5)))
    console.print()
    if together := interaction_words(posterior):
        buffer.write(_wrap(together))
    buffer.write(_wrap(_effort(posterior)))
    for topic, text in preparation_facts(posterior.recipe):
        buffer.write(_wrap(f"{topic.capitalize()}: {text}."))
    for finding in findings:
        if finding.level != "bad":
            buffer.write(_wrap(f"{finding.title}. {finding.text}"))
    for count, meaning in failed_evaluations(posterior):
        buffer.write(_wrap(f"{count:,} evaluations: {meaning}."))
    return buffer.getvalue().rstrip() + "\n"


def interaction_words(posterior: "Posterior") -> str:
    """Which pairs of covariates act together, as a sentence; nothing if none is probable."""
    table = posterior.interactions
    table = table[table["probability"] >= _WORTH_NAMING]
    pairs = [
        f"{row.first} and {row.second} ({format_probability(row.probability)})"
        for row in table.itertuples()
    ]
    if not pairs:
        return ""
    shown = pairs[:_MOST_PAIRS]
    if len(pairs) > len(shown):
        shown.append(f"and {len(pairs) - len(shown)} more pairs")
    return f"Covariates that act together, with their probability: {'; '.join(shown)}."


def _effort(posterior: "Posterior") -> str:
    record = posterior.record
    chains = "1 chain" if record.n_chains == 1 else f"{record.n_chains} chains"
    searched = "" if record.exhaustive else f" in {chains}"
    return (
        f"{record.n_evaluated:,} model evaluations{searched}, {record.seconds:.1f} s; "
        f"{len(posterior.models):,} models kept. {record.sweep}"
    ).rstrip()


def _wrap(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False) + "\n"


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
