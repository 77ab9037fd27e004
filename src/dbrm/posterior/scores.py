"""How well averaged predictions meet responses: R² or AUC and their like, with intervals.

It sees predictions and responses, not models. Intervals say how much a number would change with
other rows of the same kind, and nothing about the optimism of numbers on training rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from dbrm._typing import Column, IntArray, Matrix
from dbrm.posterior.concordance import concordance_interval
from dbrm.posterior.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

    from dbrm.posterior.checks import Checks

__all__ = ["confusion_table", "roc_curve", "score_table"]

# Resamples of the rows behind an interval, and most rows that are resampled.
_RESAMPLES, _MOST_ROWS = 400, 10_000
# Most rows whose intervals are computed.
_MOST_INTERVALS = 1_000

# Value of a measure when rows count with these weights.
Measure = Callable[[Column], float]


def score_table(checks: "Checks", rows: Rows) -> "pd.DataFrame":
    """See `dbrm.posterior.checks.Checks.scores`."""
    import pandas as pd

    rows = _sample(rows)
    kind = checks.kind_of(rows)
    if kind == "survival":
        found = [("concordance", *_concordance(checks, rows))]
    elif kind == "classes":
        chances = checks.probabilities(rows)
        defined = np.isfinite(chances[:, 0])
        measures = _of_classes(chances[defined], rows.response[defined], checks.has_order)
        found = _with_limits(measures, int(defined.sum()))
    else:
        mean = checks.mean(rows)
        defined = np.isfinite(mean)
        predicted, observed = mean[defined], rows.response[defined]
        of_kind = _of_zeros_and_ones if kind == "binary" else _of_numbers
        found = _with_limits(of_kind(predicted, observed), observed.size)
        if kind == "numbers":
            found.append(("inside 95 % interval", *_coverage(checks, rows)))
    return pd.DataFrame(found, columns=["measure", "value", "lower", "upper"])


def _with_limits(
    measures: dict[str, Measure], n_rows: int
) -> list[tuple[str, float, float, float]]:
    """Name, value and limits of each measure."""
    weights = _resampled(n_rows)
    found = []
    for name, measure in measures.items():
        values = np.array([measure(row) for row in weights])
        lower, upper = np.nanquantile(values, [0.025, 0.975])
        found.append((name, measure(np.ones(n_rows)), float(lower), float(upper)))
    return found


def confusion_table(
    predicted: IntArray, observed: IntArray, classes: Sequence[object] = (0, 1)
) -> "pd.DataFrame":
    """Counts of observed classes (rows) by predicted ones (columns); both by their numbers."""
    import pandas as pd

    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (observed, predicted), 1)
    heads = [[f"{what} {label}" for label in classes] for what in ("observed", "predicted")]
    return pd.DataFrame(counts, index=heads[0], columns=heads[1])


def roc_curve(predicted: Column, observed: Column) -> tuple[Column, Column]:
    """Shares of zeros and of ones with a prediction above each threshold, from none to all."""
    order = np.argsort(-predicted, kind="stable")
    last = np.append(np.diff(predicted[order]) != 0, True)
    ones = np.cumsum(observed[order])[last]
    zeros = np.cumsum(1.0 - observed[order])[last]
    return np.append(0.0, zeros / zeros[-1]), np.append(0.0, ones / ones[-1])


def _of_numbers(predicted: Column, observed: Column) -> dict[str, Measure]:
    square, size = (observed - predicted) ** 2, np.abs(observed - predicted)

    def r_squared(weights: Column) -> float:
        centre = np.average(observed, weights=weights)
        total = weights @ (observed - centre) ** 2
        return float(1.0 - weights @ square / total) if total > 0 else float("nan")

    return {
        "R²": r_squared,
        "root mean squared error": lambda w: float(np.sqrt(np.average(square, weights=w))),
        "mean absolute error": lambda w: float(np.average(size, weights=w)),
    }


def _of_zeros_and_ones(predicted: Column, observed: Column) -> dict[str, Measure]:
    values, place = np.unique(predicted, return_inverse=True)
    tiny = np.finfo(float).tiny
    chance = np.where(observed > 0.5, predicted, 1.0 - predicted)
    log_score, brier = -np.log(np.maximum(chance, tiny)), (observed - predicted) ** 2
    right = ((predicted > 0.5) == (observed > 0.5)).astype(float)

    def auc(weights: Column) -> float:
        ones = np.bincount(place, weights=weights * observed, minlength=values.size)
        zeros = np.bincount(place, weights=weights * (1.0 - observed), minlength=values.size)
        below = np.cumsum(zeros) - 0.5 * zeros
        pairs = ones.sum() * zeros.sum()
        return float(ones @ below / pairs) if pairs > 0 else float("nan")

    return {
        "AUC": auc,
        "Brier score": lambda w: float(np.average(brier, weights=w)),
        "log score": lambda w: float(np.average(log_score, weights=w)),
        "right at 1/2": lambda w: float(np.average(right, weights=w)),
    }


def _of_classes(chances: Matrix, observed: Column, ordered: bool) -> dict[str, Measure]:
    """Measures of the probabilities of classes (columns) against the numbers of those observed."""
    number = observed.astype(np.int64)
    seen = number[:, None] == np.arange(chances.shape[1])
    chance = np.maximum(chances[seen], np.finfo(float).tiny)
    losses = {
        "right class": (chances.argmax(axis=1) == number).astype(float),
        "log score": -np.log(chance),
        "Brier score": np.sum((chances - seen) ** 2, axis=1),
    }
    if ordered:
        cumulative = np.cumsum(chances - seen, axis=1)[:, :-1]
        losses["ranked probability score"] = np.sum(cumulative**2, axis=1)
    return {name: partial(_average, loss) for name, loss in losses.items()}


def _average(values: Column, weights: Column) -> float:
    return float(np.average(values, weights=weights))


def _concordance(checks: "Checks", rows: Rows) -> tuple[float, float, float]:
    risk = checks.risk(rows)
    defined = np.isfinite(risk)
    event = np.ones(risk.size) if rows.event is None else rows.event
    return concordance_interval(rows.response[defined], event[defined] == 1, risk[defined])


def _coverage(checks: "Checks", rows: Rows) -> tuple[float, float, float]:
    """Share of responses inside their 95 % intervals, with its Jeffreys interval."""
    if rows.response.size > _MOST_INTERVALS:
        rows = rows.take(np.linspace(0, rows.response.size - 1, _MOST_INTERVALS).astype(np.int64))
    lower, upper = checks.interval(rows, 0.95)
    hits = int(((rows.response >= lower) & (rows.response <= upper)).sum())
    n = rows.response.size
    ends = scipy.stats.beta.ppf([0.025, 0.975], hits + 0.5, n - hits + 0.5)
    return hits / n, float(ends[0]), float(ends[1])


def _resampled(n: int) -> Matrix:
    """How often each row is drawn, by resample; the same every time."""
    rng = np.random.default_rng(0)
    return rng.multinomial(n, np.full(n, 1.0 / n), size=_RESAMPLES).astype(np.float64)


def _sample(rows: Rows) -> Rows:
    n = rows.response.size
    if n <= _MOST_ROWS:
        return rows
    return rows.take(np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64))
