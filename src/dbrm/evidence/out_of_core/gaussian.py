r"""The Gaussian engine for rows in blocks: a few rows that are equivalent to all of them.

Whatever the Gaussian evidence needs of the rows is in their cross products. With :math:`Z` the
weighted rows of ones, columns and response, any :math:`R` with :math:`R'R = Z'Z` has them too, and
a reflection makes its first column constant. Its rows are then a small table with one weight,
for which `dbrm.evidence.gaussian.GaussianEngine` does the rest.

Columns are shifted by their means over a sample of the rows, and divided by a power of two, before
their products are summed: nothing cancels when they are centred. Reported models come from a
triangular factor of the rows, again from one pass (Householder QR block by block), which does not
square the condition number.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask, Masks, Matrix
from dbrm.data import AbstractRows, Block
from dbrm.evidence.base import ModelFit
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.gaussian import GaussianEngine, GaussianPopulation
from dbrm.evidence.out_of_core.base import AbstractColumns, AbstractOutOfCoreEngine, Joined, add_up

__all__ = ["OutOfCoreGaussianEngine"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Ones, shifted columns and the shifted response of a block, in weighted rows."""

    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray

    def __call__(self, block: Block) -> Matrix:
        y, offset = block.extras["response"], block.extras.get("offset")
        made = [*self.columns.make(block), y if offset is None else y - offset]
        rows = np.empty((block.n_rows, 1 + len(made)), order="F")
        rows[:, 0] = 1.0
        with np.errstate(all="ignore"):
            for j, column in enumerate(made):
                np.subtract(column, self.location[j], out=rows[:, j + 1])
                rows[:, j + 1] /= self.scale[j]
        weights = block.extras.get("weights")
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return rows


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Products:
    """Cross products of the rows of a block; a column that is not finite spoils its own only."""

    rows: _Rows

    def __call__(self, block: Block) -> Matrix:
        rows = self.rows(block)
        with np.errstate(all="ignore"):
            return np.asarray(rows.T @ rows)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Triangle:
    """Triangular factor of the rows of a block, and which columns are finite."""

    rows: _Rows

    def __call__(self, block: Block) -> tuple[Matrix, Mask]:
        rows = self.rows(block)
        sound = np.isfinite(rows).all(axis=0)
        rows[:, ~sound] = 0.0
        return _triangle(rows), np.asarray(sound)


def _count(block: Block) -> float:
    weights = block.extras.get("weights")
    return float(block.n_rows if weights is None else weights.sum())


def _triangle(rows: Matrix) -> Matrix:
    return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class OutOfCoreGaussianEngine(AbstractOutOfCoreEngine):
    """Exact Gaussian log evidence from rows in blocks.

    Parameters
    ----------
    rows
        The rows with their response.
    sample
        Some of the rows, from which columns get their shift and scale.
    prior
        The prior of the coefficients.
    always
        Columns that every model contains besides the intercept.
    """

    rows: AbstractRows
    sample: Block
    prior: CoefficientPrior
    always: AbstractColumns

    @cached_property
    def _n(self) -> float:
        """Number of observations, weights counted."""
        return float(add_up(self.rows.map(_count, ())))

    def prepare(self, columns: AbstractColumns) -> GaussianPopulation:
        work = self._rows_of(columns)
        products = add_up(self.rows.map(_Products(work), work.columns.needs))
        bad = ~np.isfinite(np.diag(products))
        products[bad] = products[:, bad] = 0.0
        engine, free = self._equivalent(work, _root(products))
        return engine.prepare(free)

    def _fit_together(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        work = self._rows_of(columns)
        triangle = np.zeros((0, work.scale.size + 1))
        sound = np.ones(triangle.shape[1], dtype=np.bool_)
        for part, finite in self.rows.map(_Triangle(work), work.columns.needs):
            triangle = _triangle(np.vstack([triangle, part]))
            sound &= finite
        triangle[:, ~sound] = 0.0
        engine, free = self._equivalent(work, triangle)
        return engine.fit_many(free, masks)

    def _rows_of(self, columns: AbstractColumns) -> _Rows:
        """The rows of always-in columns and these, shifted and scaled by their sample."""
        both = Joined(self.always, columns)
        y, offset = self.sample.extras["response"], self.sample.extras.get("offset")
        made = [*both.make(self.sample), y if offset is None else y - offset]
        location, scale = np.zeros(len(made)), np.ones(len(made))
        for j, column in enumerate(made):
            largest = float(np.max(np.abs(column), initial=0.0))
            if 0 < largest < inf:
                scale[j] = np.ldexp(1.0, min(int(np.frexp(largest)[1]), 1000))
                location[j] = float(np.mean(column / scale[j])) * scale[j]
        return _Rows(both, location, scale)

    def _equivalent(self, work: _Rows, factor: Matrix) -> tuple[GaussianEngine, Matrix]:
        """An engine whose few rows have the cross products of all rows, and its free columns."""
        # Equal weights of a power of two of rows add up to the number of observations exactly.
        size = 1 << int(np.ceil(np.log2(len(factor))))
        rows = np.vstack([factor, np.zeros((size - len(factor), factor.shape[1]))])
        n = self._n
        rows = _reflect(rows, np.full(size, np.sqrt(n / size))) / np.sqrt(n / size)
        # A column that vanishes is constant, without a rounding error.
        values = np.where(
            np.any(factor != 0.0, axis=0)[1:], work.location + work.scale * rows[:, 1:], 0.0
        )
        a = self.always.size
        engine = GaussianEngine(
            values[:, -1],
            self.prior,
            weights=np.full(size, n / size),
            always=values[:, :a] if a else None,
        )
        return engine, values[:, a:-1]


def _root(products: Matrix) -> Matrix:
    """A matrix with these cross products, which may be singular; each column to its own digits."""
    unit = np.sqrt(np.maximum(np.diag(products), 0.0))
    divisor = np.where(unit > 0.0, unit, 1.0)
    scaled = products / np.outer(divisor, divisor)
    values, vectors = np.linalg.eigh(scaled)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * unit)


def _reflect(rows: Matrix, wanted: FloatArray) -> Matrix:
    """Reflect the rows so that the first column becomes the one wanted, of the same length."""
    normal = rows[:, 0] - wanted
    length = float(normal @ normal)
    return rows if length == 0.0 else rows - np.outer(normal, 2.0 / length * (normal @ rows))
