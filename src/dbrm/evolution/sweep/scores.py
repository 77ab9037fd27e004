r"""Scores of many columns at once, beside one model or several.

`PairProducts` scores all pairwise products of two sets of columns without forming the products.
For columns :math:`x, z` and a centred residual :math:`r`, the share of the residual that
:math:`xz` explains follows from three matrix products:

.. math:: \frac{(\sum_i r_i x_i z_i)^2}
    {\{\sum_i x_i^2 z_i^2 - (\sum_i x_i z_i)^2 / n\} \sum_i r_i^2} .

`Baselines` scores columns beside a model and beside the same model without one of its features:
a basis :math:`Q` of the whole model contains those of the others, so that one matrix product
:math:`(Q, r_1, \ldots, r_m)^T C` scores the columns :math:`C` beside all of them.

Columns may be in single precision: scores say where to look, and the best are scored again.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.data import to_unit_length
from dbrm.evidence import ScoreTest
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.levels import Index, Scored

__all__ = ["Baselines", "PairProducts"]

_BLOCK, _ROWS = 256, 512
# Products that keep less than this share of their raw variance are constant to rounding.
_LEAST_VARIANCE = 1e-9
# Share of a column's variance outside a span below which it counts as inside, by precision.
_IN_SPAN = {4: 1e-5, 8: 1e-6}


@final
class PairProducts:
    """All products of a column of one set and a column of another, as correlates of residuals.

    Columns should be of order one. The variances of the products, which no residual changes,
    are computed once, in double precision: one number for every product. Without a second set
    the products are those of all pairs of the first, each once.
    """

    def __init__(self, left: Scored, right: Scored | None = None) -> None:
        self._left = _finite(left)
        self._right = self._left if right is None else _finite(right)
        self._blocks = [
            (start, start if right is None else 0) for start in range(0, left.shape[1], _BLOCK)
        ]
        self._inverse = [self._inverse_variance(*block) for block in self._blocks]
        if right is None:
            for inverse in self._inverse:
                inverse[np.tril_indices(len(inverse), -1)] = 0.0

    def _inverse_variance(self, start: int, first: int) -> Scored:
        left, right = self._left[:, start : start + _BLOCK], self._right[:, first:]
        sums, raw = np.zeros((2, left.shape[1], right.shape[1]))
        for row in range(0, len(left), _ROWS):
            x = left[row : row + _ROWS].astype(np.float64)
            z = right[row : row + _ROWS].astype(np.float64)
            sums += x.T @ z
            raw += (x * x).T @ (z * z)
        sums *= sums
        sums /= len(left)
        variance = np.subtract(raw, sums, out=sums)
        raw *= _LEAST_VARIANCE
        raw += np.finfo(left.dtype).tiny
        inverse = np.zeros(variance.shape, dtype=left.dtype)
        np.divide(1.0, variance, out=inverse, where=variance > raw, casting="same_kind")
        return inverse

    def shares(self, residual: Scored) -> Iterator[tuple[int, int, Scored]]:
        """Explained shares of a centred residual of unit length, in blocks.

        Yields the first columns of the block, of ``left`` and of ``right``, then shares. Where a
        product is constant or not finite the share is zero.
        """
        residual = residual.astype(self._left.dtype)
        for (start, first), inverse in zip(self._blocks, self._inverse, strict=True):
            block = self._left[:, start : start + _BLOCK]
            share = (block * residual[:, None]).T @ self._right[:, first:]
            share *= share
            share *= inverse
            yield start, first, np.minimum(share, 1.0, out=share)


def _finite(columns: Scored) -> Scored:
    """The columns, those that are not finite replaced by zero, of which nothing comes."""
    sound = np.isfinite(columns).all(axis=0)
    return columns if sound.all() else np.where(sound, columns, columns.dtype.type(0.0))


@final
class Baselines:
    """What candidates are added to: a model, whole or without one of its features.

    Parameters
    ----------
    model
        Columns of the model, on all rows of the problem's table.
    left_out
        For each baseline the column that is left out; ``None`` for the whole model.
    """

    def __init__(self, problem: Problem, model: Matrix, left_out: Sequence[int | None]) -> None:
        self._fixed = np.hstack([problem.always_columns, model])
        n_always = problem.always_columns.shape[1]
        self._inside: list[list[int]] = []
        self.score_tests: list[ScoreTest] = []
        for j in left_out:
            kept = [k for k in range(model.shape[1]) if k != j]
            self._inside.append([*range(n_always), *(n_always + k for k in kept)])
            self.score_tests.append(problem.engine.score_test(model[:, kept]))
        self._project(slice(None))

    def on(self, rows: Index) -> "Baselines":
        """The same baselines, for candidates on some of the rows."""
        if rows.size == len(self._fixed):
            return self
        thinned = copy(self)
        thinned._project(rows)
        return thinned

    def _project(self, rows: Index | slice) -> None:
        """A basis of the whole model, how those of its parts lie in it, and the residuals."""
        self._basis, triangle = np.linalg.qr(to_unit_length(self._fixed[rows], fill=0.0))
        self._turns = [np.linalg.qr(triangle[:, inside])[0] for inside in self._inside]
        self.residuals = np.empty((len(self._basis), len(self._turns)))
        for k, (score_test, turn) in enumerate(zip(self.score_tests, self._turns, strict=True)):
            residual = score_test.residual[rows]
            self.residuals[:, k] = self._unit_residual(residual, self._basis @ turn)

    @staticmethod
    def _unit_residual(residual: Column, basis: Matrix) -> Column:
        """The residual about its mean and outside the basis, of unit length, or zero."""
        residual = residual - residual.mean()
        residual = residual - basis @ (basis.T @ residual)
        norm = float(np.linalg.norm(residual))
        return residual / norm if norm > 0 else residual

    def shares(self, columns: Scored) -> FloatArray:
        """Explained share of each residual (rows) by each column, which has unit length.

        NaN where a column lies in the span of the model or is not finite, or nothing is left.
        """
        stacked = np.hstack([self._basis, self.residuals]).astype(columns.dtype)
        with np.errstate(all="ignore"):
            products = (columns.T @ stacked).astype(np.float64).T
        inside, along = np.vsplit(products, [self._basis.shape[1]])
        shares = np.full(along.shape, np.nan)
        for k, turn in enumerate(self._turns):
            if not np.any(self.residuals[:, k]):
                continue
            with np.errstate(all="ignore"):
                turned = turn.T @ inside
                left = 1.0 - np.einsum("kn,kn->n", turned, turned)
                usable = left > _IN_SPAN[columns.itemsize]
                shares[k] = np.where(usable, np.minimum(along[k] ** 2 / left, 1.0), np.nan)
        return shares

    def outside(self, columns: Scored) -> FloatArray:
        """Share of each column, which has unit length, outside the span of the whole model."""
        with np.errstate(all="ignore"):
            inside = (columns.T @ self._basis.astype(columns.dtype)).astype(np.float64).T
            return np.asarray(1.0 - np.einsum("kn,kn->n", inside, inside))
