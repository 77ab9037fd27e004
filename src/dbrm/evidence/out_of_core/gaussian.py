r"""The Gaussian engine for rows in blocks: one pass per population, then as with few rows.

Columns are shifted by their means over a sample of the rows, and divided by a power of two,
before their products are summed: with :math:`z = (x - a) / 2^e`,

.. math:: \sum (z - \bar z)(z - \bar z)' = \sum z z' - n \bar z \bar z' ,

where nothing cancels, because :math:`\bar z` is as small as the sample's mean is accurate.
Reported models are recomputed from a triangular factor of the rows, again from one pass
(Householder QR block by block), which does not square the condition number.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask, Masks, Matrix
from dbrm.data import AbstractRows, Block
from dbrm.evidence.base import ModelFit
from dbrm.evidence.coefficient_priors.base import CoefficientPrior, GaussianShape
from dbrm.evidence.design import independent_columns
from dbrm.evidence.gaussian import (
    DEPENDENCE_TOLERANCE,
    SMALLEST_FRACTION,
    SMALLEST_SPREAD,
    GaussianPopulation,
    residual_fraction,
    solve_centred,
)
from dbrm.evidence.out_of_core.base import (
    AbstractColumns,
    AbstractOutOfCoreEngine,
    Joined,
    add_up,
    standardised,
)
from dbrm.status import Status

__all__ = ["OutOfCoreGaussianEngine"]

_EPSILON = np.finfo(np.float64).eps
_TINY = float(np.finfo(np.float64).tiny)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Ones, shifted columns and the shifted response of a block, in weighted rows."""

    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray

    def __call__(self, block: Block) -> Matrix:
        n, made = block.n_rows, self.columns.make(block)
        rows = standardised(n, made, self.location, self.scale, spare=1)
        y, offset = block.extras["response"], block.extras.get("offset")
        rows[:, -1] = ((y if offset is None else y - offset) - self.location[-1]) / self.scale[-1]
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
    """Triangular factor of the rows of a block, which columns are finite, and observations."""

    rows: _Rows

    def __call__(self, block: Block) -> tuple[Matrix, Mask, float]:
        rows = self.rows(block)
        sound = np.isfinite(rows).all(axis=0)
        rows[:, ~sound] = 0.0
        weights = block.extras.get("weights")
        n = float(block.n_rows if weights is None else weights.sum())
        return _triangle(rows), np.asarray(sound), n


def _triangle(rows: Matrix) -> Matrix:
    return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)


def _largest(block: Block) -> FloatArray:
    """Largest absolute response of the rows that count."""
    y, weights = block.extras["response"], block.extras.get("weights")
    size = np.abs(y) if weights is None else np.abs(y[weights > 0])
    return np.array([np.max(size, initial=0.0)])


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
    def _largest(self) -> float:
        return float(np.max(list(self.rows.map(_largest, ()))))

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

    def prepare(self, columns: AbstractColumns) -> GaussianPopulation:
        work = self._rows_of(columns)
        moments = add_up(self.rows.map(_Products(work), work.columns.needs))
        with np.errstate(all="ignore"):
            bad = ~np.isfinite(np.diag(moments))
        moments[bad] = moments[:, bad] = 0.0
        n = moments[0, 0]
        means = moments[0, 1:] / n
        centred = moments[1:, 1:] - n * np.outer(means, means)
        spread = np.maximum(np.diag(centred), 0.0)
        constant = spread <= SMALLEST_SPREAD**2 * n
        constant[-1] = False
        unit = np.where(constant, inf, np.sqrt(np.maximum(spread, _TINY)))
        gram = centred / np.outer(unit, unit)
        a, free = self.always.size, slice(self.always.size, -1)
        kept = independent_columns(gram[:a, :a], DEPENDENCE_TOLERANCE, a)
        if kept.size:
            solved = np.linalg.solve(gram[np.ix_(kept, kept)], gram[kept])
            gram = gram - gram[:, kept] @ solved
        left = np.maximum(np.diag(gram), 0.0)
        vanished = constant | (left <= DEPENDENCE_TOLERANCE)
        unit = np.where(vanished, inf, np.sqrt(np.maximum(left, _TINY)))[free]
        shape = self._shape(n, spread[-1], work.scale[-1])
        sizes = np.arange(kept.size, kept.size + columns.size + 1)
        return GaussianPopulation(
            gram=np.ascontiguousarray(gram[free, free] / np.outer(unit, unit)),
            cross=gram[free, -1] / unit,
            left=float(left[-1]),
            floor=shape.floor,
            table=self.prior.score_table(sizes, shape),
        )

    def _shape(self, n: float, total: float, unit: float) -> GaussianShape:
        """As `GaussianEngine.shape`, from the sum of squares in units of the response."""
        total = max(total, _TINY)
        largest = self._largest / unit
        floor = max(SMALLEST_FRACTION, _EPSILON**2 * n * largest**2 / total)
        with np.errstate(over="ignore"):
            scaled = np.float64(total) * unit * unit
        bounded = float(min(max(scaled, _TINY), np.finfo(float).max))
        return GaussianShape(n=float(n), total=bounded, floor=float(min(floor, 1.0)))

    def _fit_together(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        work = self._rows_of(columns)
        triangle = np.zeros((0, columns.size + self.always.size + 2))
        sound = np.ones(triangle.shape[1], dtype=np.bool_)
        n = 0.0
        for part, finite, count in self.rows.map(_Triangle(work), work.columns.needs):
            triangle = _triangle(np.vstack([triangle, part]))
            sound &= finite
            n += count
        triangle[:, ~sound] = 0.0
        # The first row is the total of all rows; the others stand for rows about their means.
        means = triangle[0, 1:] / triangle[0, 0]
        fitted = _Fitted(self, work, n, means, triangle[1:, 1:])
        return [fitted.fit(mask) for mask in masks]


@final
class _Fitted:
    """Models over the columns of one triangular factor, which stands in for the rows."""

    def __init__(
        self,
        engine: OutOfCoreGaussianEngine,
        work: _Rows,
        n: float,
        means: FloatArray,
        centred: Matrix,
    ) -> None:
        self._engine, self._work = engine, work
        self._n, self._means, self._centred = n, means, centred
        target = centred[:, -1]
        self._sum_of_squares = max(float(target @ target), _TINY)
        self._shape = engine._shape(self._n, self._sum_of_squares, work.scale[-1])
        a = engine.always.size
        always = _to_unit(centred[:, :a], np.sqrt(self._n) * SMALLEST_SPREAD)
        kept = independent_columns(always.T @ always, DEPENDENCE_TOLERANCE, a)
        basis, _ = np.linalg.qr(always[:, kept])
        self._n_always = int(kept.size)
        free = _to_unit(centred[:, a:-1], np.sqrt(self._n) * SMALLEST_SPREAD)
        for _ in range(2):
            free = free - basis @ (basis.T @ free)
        self._free = _to_unit(free, np.sqrt(DEPENDENCE_TOLERANCE))
        self._target = target - basis @ (basis.T @ target)

    def fit(self, mask: Mask) -> ModelFit:
        engine, work, shape = self._engine, self._work, self._shape
        target = self._target / np.sqrt(self._sum_of_squares)
        fraction, status = residual_fraction(self._free[:, mask], target)
        value, status = self._score(fraction, status, int(mask.sum()))
        fraction = min(max(fraction, shape.floor), 1.0)
        a = engine.always.size
        inside = np.concatenate([np.arange(a), a + np.flatnonzero(mask)])
        summary = engine.prior.summary(inside.size, fraction, shape)
        unit, y_unit = work.scale[inside], float(work.scale[-1])
        # In units of the scale: what was subtracted is part of the mean again.
        means = self._means[inside] + work.location[inside] / unit
        mean = float(self._means[-1] + work.location[-1] / y_unit)
        coefficients, covariance = solve_centred(
            self._centred[:, inside],
            self._centred[:, -1],
            means,
            mean,
            self._n,
            summary.shrinkage,
        )
        back = np.concatenate([[1.0], 1.0 / unit])
        variance = fraction * shape.total / shape.n
        with np.errstate(over="ignore"):
            coefficients = coefficients * back * y_unit
            covariance = covariance * np.outer(back, back)
        return ModelFit(
            log_evidence=value,
            log_likelihood=float(-0.5 * shape.n * (np.log(2 * np.pi * variance) + 1)),
            coefficients=coefficients,
            covariance=covariance,
            dispersion=summary.variance,
            degrees_of_freedom=summary.degrees_of_freedom,
            status=status,
        )

    def _score(self, fraction: float, status: Status, size: int) -> tuple[float, Status]:
        if status is not Status.OK:
            return -inf, status
        if fraction <= self._shape.floor:
            fraction, status = self._shape.floor, Status.PERFECT_FIT
        sizes = np.arange(self._n_always, self._n_always + size + 1)
        value = self._engine.prior.score_table(sizes, self._shape).value(fraction, size)
        return value, status if value > -inf else Status.UNDEFINED


def _to_unit(columns: Matrix, least: float) -> Matrix:
    """Columns of unit length; zero where no more than `least` is left of them."""
    length = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(length <= least, inf, np.maximum(length, _TINY)))
