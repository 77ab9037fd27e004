r"""Limits of a model's mean at new rows whose columns are inside their training ranges.

A product of two long-tailed columns may be a thousand times larger at the corner of the training
box, where both are large, than in any training row. With :math:`[a, b]` the range of the means
that a model fitted to the training rows, its mean at a new row is held within

.. math:: \bigl[a - \tfrac14(b - a)(1 + d)^{10},\; b + \tfrac14(b - a)(1 + d)^{10}\bigr] ,

where :math:`d` is how far the columns of a linear model, which goes on linearly, are outside their
training ranges, in ranges; from half a range on there is no limit, and predictions warn
(`dbrm.posterior.extrapolation`). Other models predict a row outside the box as one at its edge,
:math:`d = 0`. Limits of a model of the root of the response are roots of the limits of its mean.

This module sees ranges and new rows, not coefficients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix
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
    names, follows
        Covariates, and which of them (columns) each model follows outside their ranges.
    ranges
        Training ranges of the covariates.
    squares
        Models of the root of the response, whose means are its squares; ``None`` for none.
    """

    fitted: Matrix
    names: tuple[str, ...]
    follows: Masks
    ranges: Ranges
    squares: Mask | None = None

    @classmethod
    def of(
        cls,
        fitted: Matrix,
        always: Sequence[Feature],
        features: Sequence[Feature],
        models: Sequence[IntArray],
        ranges: Ranges,
        is_linear: Mask,
        squares: Mask | None = None,
    ) -> "Limits":
        """Limits of models over these features."""
        names = sorted({name for f in (*always, *features) for name in f.covariates})
        inside = {name for f in always for name in f.covariates}
        parts = np.array([[n in f.covariates for n in names] for f in features], dtype=np.bool_)
        parts = parts.reshape(len(features), len(names))
        fixed = np.array([name in inside for name in names], dtype=np.bool_)
        uses = np.array([fixed | parts[members].any(axis=0) for members in models], dtype=np.bool_)
        follows = uses.reshape(len(models), len(names)) & is_linear[:, None]
        return cls(fitted, tuple(names), follows, ranges, squares)

    def at(self, table: Table) -> tuple[Matrix, Matrix]:
        """Lowest and highest mean of each model (rows) at each new row, or root of a mean.

        One column for all rows where all of them are inside the box.
        """
        distance = np.zeros((len(self.follows), 1))
        for place, name in enumerate(self.names):
            outside = outside_by(self.ranges[covariate(name).text], table.column(name))
            if outside.any():
                own = np.where(self.follows[:, place, None], outside, 0.0)
                distance = np.maximum(distance, own)
        low, high = self.fitted[:, :1], self.fitted[:, 1:]
        if self.squares is not None:
            own = self.squares[:, None]
            low, high = (np.where(own, np.maximum(end, 0.0) ** 2, end) for end in (low, high))
        with np.errstate(invalid="ignore"):
            reach = _RANGES * (high - low) * (1.0 + np.minimum(distance, FAR)) ** _DEGREE
        reach = np.where(distance < FAR, reach, np.inf)
        low, high = low - reach, high + reach
        if self.squares is None:
            return low, high
        low, high = (np.where(own, np.sqrt(np.maximum(end, 0.0)), end) for end in (low, high))
        return low, high


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
