r"""Missing numbers from chained equations: several completed tables, and a rule for new rows.

Every column with missing values has a normal linear regression on all other columns, in which
missing values are those of the round before. For the training rows the response is a predictor,
too, and values are drawn: error variance and coefficients from their posterior under a flat
prior, then the values (method "norm" of van Buuren and others 2006). Draws are kept inside the
range that was observed. New rows get conditional means from regressions without the response,
frozen at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.data.schema import ListOf, Real, Record, Text
from dbrm.errors import InvalidDataError

__all__ = ["IMPUTER", "Imputer", "draw_completed", "learn_imputer"]

# Rounds of the chained equations.
_ROUNDS = 10
# Ridge of the regressions, relative to the variance of the predictors.
_RIDGE = 1e-6

#: What `Imputer.to_dict` writes.
IMPUTER = Record(
    {
        "targets": ListOf(Text(), "targets"),
        "predictors": ListOf(Text(), "predictors"),
        "coefficients": ListOf(ListOf(Real()), "targets"),
        "ranges": ListOf(ListOf(Real(), 2), "targets"),
        "start": ListOf(Real(), "targets"),
    }
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Imputer:
    """Conditional means of missing numbers in new rows.

    Parameters
    ----------
    targets
        Input columns that had missing values in training.
    predictors
        Columns of the table that are made from other input columns.
    coefficients
        One row for each target: intercept, predictors, targets (its own is zero).
    ranges, start
        Smallest and largest value of each target in training, and its mean.
    """

    targets: tuple[str, ...]
    predictors: tuple[str, ...]
    coefficients: Matrix
    ranges: Matrix
    start: FloatArray

    def complete(self, predictors: Matrix, targets: Matrix) -> Matrix:
        """Fill missing values of the targets (rows by targets) with conditional means."""
        missing = np.isnan(targets)
        values = np.where(missing, self.start, targets)
        for _ in range(_ROUNDS if missing.any() else 0):
            for j in np.flatnonzero(missing.any(axis=0)):
                rows = missing[:, j]
                design = np.column_stack([np.ones(rows.sum()), predictors[rows], values[rows]])
                values[rows, j] = np.clip(design @ self.coefficients[j], *self.ranges[j])
        return values

    def to_dict(self) -> dict[str, Any]:
        """The imputer as JSON types."""
        return {
            "targets": list(self.targets),
            "predictors": list(self.predictors),
            "coefficients": self.coefficients.tolist(),
            "ranges": self.ranges.tolist(),
            "start": self.start.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Imputer":
        """Rebuild an imputer from the result of `to_dict`."""
        coefficients = np.array(content["coefficients"], dtype=np.float64)
        width = 1 + len(content["predictors"]) + len(content["targets"])
        if coefficients.shape != (len(content["targets"]), width):
            msg = "Not a recipe written by Recipe.to_dict: its imputer does not fit together."
            raise InvalidDataError(msg)
        return cls(
            tuple(content["targets"]),
            tuple(content["predictors"]),
            coefficients,
            np.array(content["ranges"], dtype=np.float64),
            np.array(content["start"], dtype=np.float64),
        )


def learn_imputer(
    targets: tuple[str, ...], values: Matrix, predictors: tuple[str, ...], others: Matrix
) -> Imputer:
    """Regressions of the targets on the others and on each other, without the response.

    `values` (with NaN) and `others` have the training rows.
    """
    ranges = np.column_stack([np.nanmin(values, axis=0), np.nanmax(values, axis=0)])
    start, width = np.nanmean(values, axis=0), 1 + others.shape[1] + values.shape[1]
    found = Imputer(targets, predictors, np.zeros((len(targets), width)), ranges, start)
    found.coefficients[:, 0] = start
    for _ in range(_ROUNDS):
        filled = found.complete(others, values)
        for j in range(len(targets)):
            seen = ~np.isnan(values[:, j])
            design = _design(others, filled, j)
            mean, _, _ = _regress(design[seen], values[seen, j])
            found.coefficients[j] = mean
    return found


def draw_completed(
    rng: np.random.Generator, values: Matrix, others: Matrix, response: Column, number: int
) -> list[Matrix]:
    """Draw completed targets for the training rows, `number` times independently."""
    outside = np.column_stack([others, response])
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    missing = np.isnan(values)
    completed = []
    for _ in range(number):
        filled = values.copy()
        for j in range(values.shape[1]):
            seen = values[~missing[:, j], j]
            filled[missing[:, j], j] = rng.choice(seen, int(missing[:, j].sum()))
        for _ in range(_ROUNDS):
            for j in np.flatnonzero(missing.any(axis=0)).tolist():
                rows, design = missing[:, j], _design(outside, filled, j)
                mean, root, squares = _regress(design[~rows], values[~rows, j])
                degrees = max(float((~rows).sum() - design.shape[1]), 1.0)
                deviation = np.sqrt(squares / rng.chisquare(degrees))
                slopes = mean + deviation * (root @ rng.normal(size=mean.size))
                drawn = design[rows] @ slopes + deviation * rng.normal(size=rows.sum())
                filled[rows, j] = np.clip(drawn, low[j], high[j])
        completed.append(filled)
    return completed


def _design(others: Matrix, targets: Matrix, left_out: int) -> Matrix:
    """Ones, other columns and targets, with zeros for the target itself."""
    beside = targets.copy()
    beside[:, left_out] = 0.0
    return np.column_stack([np.ones(len(targets)), others, beside])


def _regress(design: Matrix, response: Column) -> tuple[FloatArray, Matrix, float]:
    """Coefficients, a root of their covariance in units of the error, and residual squares."""
    gram = design.T @ design
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    empty = np.diag(gram) == 0.0
    unit = gram / np.outer(scale, scale) + _RIDGE * np.eye(len(gram))
    unit[empty, empty] = 1.0
    factor = np.linalg.cholesky(np.linalg.inv(unit)) / scale[:, None]
    factor[empty] = 0.0
    mean = factor @ (factor.T @ (design.T @ response))
    return mean, factor, float(np.sum((response - design @ mean) ** 2))
