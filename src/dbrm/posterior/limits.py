r"""Limits of a model's mean at new rows whose columns are inside their training ranges.

A product of two long-tailed columns may be a thousand times larger at the corner of the training
box, where both are large, than in any training row. With :math:`[a, b]` the range of the means
that a model fitted to the training rows, its mean at a new row is held within

.. math:: \bigl[a - \tfrac14(b - a)(1 + d)^{10},\; b + \tfrac14(b - a)(1 + d)^{10}\bigr] ,

where :math:`d` is how far the columns of the model are outside their training ranges, in
ranges, zero inside the box. From half a range on there is no limit, so that a correct formula can
be extrapolated; predictions warn there (`dbrm.posterior.extrapolation`).

This module sees ranges and new rows, not coefficients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Masks, Matrix
from dbrm.data import Table
from dbrm.evidence import Link, ModelFit
from dbrm.features import Feature, Ranges, covariate

__all__ = ["FAR", "Limits", "fitted_ranges", "outside_by"]

# Ranges by which a mean may exceed the fitted ones, and how that grows outside the box.
_RANGES, _DEGREE = 0.25, 10
#: A row is far outside if a column exceeds its training range by this number of ranges.
FAR = 0.5
# Training rows from which the range of fitted means is taken.
_MOST_ROWS = 1_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Limits of the means of models, for new rows.

    Parameters
    ----------
    fitted
        Lowest and highest mean of each model over the training rows.
    names, uses
        Covariates, and which of them (columns) each model uses.
    ranges
        Training ranges of the covariates.
    """

    fitted: Matrix
    names: tuple[str, ...]
    uses: Masks
    ranges: Ranges

    @classmethod
    def of(
        cls,
        fitted: Matrix,
        always: Sequence[Feature],
        features: Sequence[Feature],
        models: Sequence[IntArray],
        ranges: Ranges,
    ) -> "Limits":
        """Limits of models over these features."""
        names = sorted({name for f in (*always, *features) for name in f.covariates})
        inside = {name for f in always for name in f.covariates}
        parts = np.array([[n in f.covariates for n in names] for f in features], dtype=np.bool_)
        parts = parts.reshape(len(features), len(names))
        fixed = np.array([name in inside for name in names], dtype=np.bool_)
        uses = np.array([fixed | parts[members].any(axis=0) for members in models], dtype=np.bool_)
        return cls(fitted, tuple(names), uses.reshape(len(models), len(names)), ranges)

    def at(self, table: Table) -> tuple[Matrix, Matrix]:
        """Lowest and highest mean of each model (rows) at each new row.

        One column for all rows where all of them are inside the box.
        """
        distance = np.zeros((len(self.uses), 1))
        for place, name in enumerate(self.names):
            outside = outside_by(self.ranges[covariate(name).text], table.column(name))
            if outside.any():
                own = np.where(self.uses[:, place, None], outside, 0.0)
                distance = np.maximum(distance, own)
        low, high = self.fitted[:, :1], self.fitted[:, 1:]
        with np.errstate(invalid="ignore"):
            reach = _RANGES * (high - low) * (1.0 + np.minimum(distance, FAR)) ** _DEGREE
        reach = np.where(distance < FAR, reach, np.inf)
        return low - reach, high + reach


def outside_by(limits: tuple[float, float], column: Column) -> FloatArray:
    """How far values are outside a range, in units of its length."""
    low, high = limits
    beyond = np.maximum(np.maximum(low - column, column - high), 0.0)
    length = high - low
    return np.asarray(beyond / length if length > 0 else np.where(beyond > 0, np.inf, 0.0))


def fitted_ranges(
    always: Matrix,
    columns: Matrix,
    models: Sequence[IntArray],
    fits: Sequence[ModelFit],
    link: Link | None,
) -> Matrix:
    """Lowest and highest mean of each model over training rows, without offsets.

    A model with latent effects has no limits: its mean is not that of its columns. Nor are any
    needed under a link whose means have a limit of their own.

    Parameters
    ----------
    always
        The constant and the columns of every model.
    columns, models
        The other columns, and for each model the positions of its own.
    """
    out = np.empty((len(models), 2))
    out[:] = -np.inf, np.inf
    if link is not None and link.mean_interval[1] < np.inf:
        return out
    rows = np.linspace(0, len(always) - 1, min(len(always), _MOST_ROWS)).astype(np.int64)
    always, columns = always[rows], columns[rows]
    fixed = always.shape[1]
    with np.errstate(all="ignore"):
        for row, (members, fit) in enumerate(zip(models, fits, strict=True)):
            if fit.latent is None:
                eta = always @ fit.coefficients[:fixed]
                eta = eta + columns[:, members] @ fit.coefficients[fixed:]
                mean = eta if link is None else link.mean(eta)
                out[row] = np.min(mean), np.max(mean)
    return np.where(np.isfinite(out), out, [-np.inf, np.inf])
