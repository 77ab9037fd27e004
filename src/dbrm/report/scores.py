"""How well rows are predicted, as the report says it: measures and a confusion table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm._typing import IntArray
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
    classes
        Labels of the classes of a confusion table.
    confusion
        For each set its name and counts: observed by predicted.
    words
        What the numbers mean, and what they do not.
    """

    sets: list[tuple[str, int]]
    measures: list[tuple[str, list[dict[str, float]]]]
    classes: tuple[object, ...]
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
    classes = posterior.classes or (0, 1)
    confusion = []
    for name, rows in measured.items():
        if (predicted := _predicted_classes(posterior, rows)) is not None:
            defined = predicted >= 0
            seen = rows.response[defined].astype(np.int64)
            counts = confusion_table(predicted[defined], seen, classes)
            confusion.append((name, counts.to_numpy().tolist()))
    return Scores(
        sets=[(name, rows.response.size) for name, rows in measured.items()],
        measures=list(measures.items()),
        classes=classes,
        confusion=confusion,
        words=_words(measured),
    )


def _predicted_classes(posterior: "Posterior", rows: "Rows") -> IntArray | None:
    """Number of the most probable class of each row, -1 where no model is defined."""
    checks = posterior.checks
    match checks.kind_of(rows):
        case "binary":
            chances = checks.mean(rows)
            return np.where(np.isfinite(chances), chances > 0.5, -1).astype(np.int64)
        case "classes":
            chances = checks.probabilities(rows)
            best = np.argmax(np.nan_to_num(chances), axis=1)
            return np.where(np.isfinite(chances[:, 0]), best, -1).astype(np.int64)
    return None


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
