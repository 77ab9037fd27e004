"""Tables that fit a terminal."""

from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbrm.report.findings import few_rows
from dbrm.report.wording import describe_status, format_probability
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.posterior import Posterior, RunRecord

__all__ = ["feature_table", "model_table", "summarise"]

# Predictions from models that hold less than this share are worth a note.
_ENOUGH_AVERAGED = 0.95


def feature_table(posterior: "Posterior", top: int) -> Table:
    """The most probable features."""
    table = _table("Features")
    table.add_column("feature", overflow="fold")
    table.add_column("inclusion", justify="right")
    table.add_column("complexity", justify="right")
    for row in posterior.features.head(top).itertuples():
        table.add_row(Text(row.feature), format_probability(row.inclusion), str(row.complexity))
    return table


def latent_table(posterior: "Posterior", top: int) -> Table:
    """The latent effects on offer."""
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
    """The findings as text: best formula, features, models, and what to know about the run."""
    buffer = StringIO()
    console = Console(file=buffer, width=100, highlight=False)
    best = posterior.best_model
    console.print(f"Best model (probability {format_probability(best.probability)}):")
    console.print(f"  {best.formula}", soft_wrap=True, markup=False)
    if scarce := few_rows(posterior):
        console.print(scarce, markup=False)
    console.print()
    console.print(feature_table(posterior, top))
    console.print()
    if not posterior.latent.empty:
        console.print(latent_table(posterior, top))
        console.print()
    console.print(model_table(posterior, min(top, 5)))
    console.print()
    for line in _notes(posterior):
        console.print(line, markup=False)
    return buffer.getvalue().rstrip() + "\n"


def _notes(posterior: "Posterior") -> list[str]:
    record = posterior.record
    notes = [
        f"{record.n_evaluated:,} model evaluations in {record.n_chains} chains, "
        f"{record.seconds:.1f} s; {len(posterior.models):,} models kept."
    ]
    notes += _misses(record)
    if record.algorithm != "enumerate":
        notes.append(posterior.diagnostics.verdict())
    for name, (tried, accepted) in record.moves.items():
        notes.append(f"Moves '{name}': {tried:,} tried, {accepted / max(tried, 1):.1%} accepted.")
    if posterior.lost_mass > 1e-6:
        notes.append(f"Models not kept hold at most {posterior.lost_mass:.2g} of the probability.")
    if posterior.averaged_share < _ENOUGH_AVERAGED:
        notes.append(
            f"Predictions average over the {posterior.n_averaged:,} most probable models, which "
            f"hold {posterior.averaged_share:.0%} of the probability; max_averaged= allows more."
        )
    glm = posterior._source.glm
    classes = glm is not None and glm.family.has_trials
    for code, count in sorted(record.status_counts.items()):
        if code != Status.OK:
            meaning = describe_status(Status(code), classes=classes)
            notes.append(f"{count:,} evaluations: {meaning}.")
    return notes


def _misses(record: "RunRecord") -> list[str]:
    """What the run was to bring and did not."""
    notes = []
    if record.ended == "agreement":
        notes.append("The run ended early because its chains agreed.")
    elif record.ended:
        notes.append(
            f"The run was interrupted ({record.ended}): {record.n_finished} of {record.n_chains} "
            "chains in it came to their end."
        )
    for chain, failure in record.failures.items():
        notes.append(f"Chain {chain} failed and is not in it: {failure.splitlines()[-1]}")
    return notes


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
