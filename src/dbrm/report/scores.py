"""How well rows are predicted, as the report says it: measures and a confusion table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm.posterior import confusion_table

if TYPE_CHECKING:
    from dbrm.posterior import Posterior, Rows

__all__ = ["Scores", "describe_scores", "measured_rows"]

# What rows are called.
_TRAINING, _GIVEN, _HELD_OUT = "training rows", "given rows", "held-out rows"


@final
@dataclass(frozen=True, slots=True)
class Scores:
    """Measures of predictions.

    Parameters
    ----------
    sets
        What the rows are, and how many: the heads of the columns.
    measures
        For each measure its name, and value and limits for each set of rows.
    confusion
        For each set its name and counts: observed by predicted.
    words
        What the numbers mean, and what they do not.
    """

    sets: list[tuple[str, int]]
    measures: list[tuple[str, list[dict[str, float]]]]
    confusion: list[tuple[str, list[list[int]]]]
    words: str


def measured_rows(
    posterior: "Posterior", rows: "Rows | None", test: "Rows | None"
) -> dict[str, "Rows"]:
    """Rows to measure predictions on, by what they are; the training rows are recognised."""
    found = {}
    if rows is not None:
        found[_TRAINING if posterior.took_part(rows) else _GIVEN] = rows
    return found if test is None else found | {_HELD_OUT: test}


def describe_scores(posterior: "Posterior", measured: dict[str, "Rows"]) -> Scores:
    """Measures of every set of rows, side by side."""
    checks = posterior.checks
    tables = {name: checks.score(rows) for name, rows in measured.items()}
    measures: dict[str, list[dict[str, float]]] = {}
    for table in tables.values():
        for row in table.itertuples():
            values: dict[str, Any] = {key: getattr(row, key) for key in ("value", "lower", "upper")}
            measures.setdefault(row.measure, []).append(values)
    confusion = []
    for name, rows in measured.items():
        if checks.is_binary(rows):
            mean = checks.mean(rows)
            defined = np.isfinite(mean)
            counts = confusion_table(mean[defined], rows.response[defined])
            confusion.append((name, counts.to_numpy().tolist()))
    return Scores(
        sets=[(name, rows.response.size) for name, rows in measured.items()],
        measures=list(measures.items()),
        confusion=confusion,
        words=_words(measured),
    )


def _words(measured: dict[str, "Rows"]) -> str:
    if not measured:
        return ""
    if _HELD_OUT in measured and _TRAINING in measured:
        return (
            "Numbers on held-out rows are what to expect of new rows like them; those on training "
            "rows are optimistic, because the same rows chose the formulas."
        )
    if _TRAINING not in measured:
        return (
            "These are not the training rows: if none of them took part in the fit, the numbers "
            "are what to expect of new rows like them."
        )
    return (
        "These are the rows that chose the formulas, so the numbers are optimistic: new rows will "
        "be predicted a little worse. report(..., test=(X, y)) shows rows that were held out."
    )
