"""How well averaged predictions meet responses: R² or AUC and their like, with intervals.

It sees predictions and responses, not models. Intervals come from resampling the rows: they say
how much a number would change with other rows of the same kind, and nothing about the optimism
of numbers on training rows.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats

from dbrm._typing import Column, Matrix
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
    mean = checks.mean(rows)
    defined = np.isfinite(mean)
    predicted, observed = mean[defined], rows.response[defined]
    if checks.is_binary(rows):
        measures = _of_classes(predicted, observed)
    else:
        measures = _of_numbers(predicted, observed)
    weights = _resampled(observed.size)
    found = []
    for name, measure in measures.items():
        values = np.array([measure(row) for row in weights])
        lower, upper = np.nanquantile(values, [0.025, 0.975])
        found.append((name, measure(np.ones(observed.size)), lower, upper))
    if not checks.is_binary(rows):
        found.append(("inside 95 % interval", *_coverage(checks, rows)))
    return pd.DataFrame(found, columns=["measure", "value", "lower", "upper"])


def confusion_table(predicted: Column, observed: Column) -> "pd.DataFrame":
    """Counts of observed classes (rows) by the more probable predicted ones (columns)."""
    import pandas as pd

    counts = np.zeros((2, 2), dtype=np.int64)
    np.add.at(counts, (observed.astype(np.int64), (predicted > 0.5).astype(np.int64)), 1)
    return pd.DataFrame(
        counts, index=["observed 0", "observed 1"], columns=["predicted 0", "predicted 1"]
    )


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


def _of_classes(predicted: Column, observed: Column) -> dict[str, Measure]:
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
