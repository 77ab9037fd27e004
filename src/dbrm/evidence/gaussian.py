r"""The Gaussian engine: evidence from the Gram matrix, independent of the number of rows.

Columns are centred (the intercept is always in), freed of the always-in columns and
scaled to unit length; the response likewise, to unit total sum of squares. One Gram
matrix per population then gives the residual fraction of every mask, its rounding
error added, and a `ScoreTable` turns it into log evidence. Reported models are
recomputed from the rows by Householder QR, which does not square the condition number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import e, inf, log, pi
from typing import final

import numpy as np
import scipy.linalg

from dbrm._kernels.enumeration import residuals_of_all, score_of_all
from dbrm._kernels.gaussian import GaussianContext, evaluate_many
from dbrm._kernels.screening import score_row
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import (
    AbstractEngine,
    AbstractPrepared,
    CountCallback,
    ModelFit,
    ScoreTest,
)
from dbrm.evidence.coefficient_priors.base import CoefficientPrior, GaussianShape
from dbrm.evidence.families import Gaussian
from dbrm.evidence.least_squares import (
    DEPENDENCE_TOLERANCE,
    GramMatrix,
    TriangularRows,
    least_squares,
    of_one_size,
    residual_fraction,
)
from dbrm.evidence.links import find_link
from dbrm.evidence.predictor import AbstractPredictorLikelihood, predictor_likelihood
from dbrm.evidence.score import ScoreTable
from dbrm.evidence.short_coefficients import ShortCoefficients
from dbrm.evidence.zero_intercept import log_factor_of_zero
from dbrm.status import Status

__all__ = [
    "SMALLEST_FRACTION",
    "SMALLEST_SPREAD",
    "GaussianEngine",
    "GaussianPopulation",
]

# Relative rounding error of the entries of a Gram matrix.
ROUNDING = 1e-15
# Residual fractions below this are rounding noise of the Gram matrix.
SMALLEST_FRACTION = 1e-12
# And those below this are rounding noise of the rows themselves.
ROUNDING_OF_ROWS = 1e-20
# A column that varies less than this, relative to its size, is constant to rounding.
SMALLEST_SPREAD = 1e-10
# Nats that a model may gain over others by the digits of its coefficients beside noise.
_OF_DIGITS = 18.0
_EPSILON = np.finfo(np.float64).eps


@final
@dataclass(frozen=True, eq=False)
class GaussianEngine(AbstractEngine):
    """Exact Gaussian log evidence under one coefficient prior.

    Parameters
    ----------
    response
        The response, one value per row.
    prior
        The prior of the coefficients.
    weights
        Frequency weights: a weight of two is the row twice. ``None`` for ones.
    always
        Columns that every model contains besides the intercept.
    offset
        Known part of the mean.
    zero_intercept
        Prior probability that the intercept is zero. A fit is that of the more probable of both.
    short_coefficients
        The prior of coefficients that may be short numbers; ``None`` if none is more plausible
        than others. Models are compared in populations as if intercept and coefficients were any
        numbers; `log_evidence`, `log_evidence_of` and fits, from the rows, know of both.
    """

    response: Column
    prior: CoefficientPrior
    weights: Column | None = None
    always: Matrix | None = None
    offset: Column | None = None
    zero_intercept: float = 0.0
    short_coefficients: ShortCoefficients | None = None
    refines = True
    settling_limit = 20

    @property
    def n_rows(self) -> int:
        return int(self.response.size)

    @cached_property
    def _root(self) -> FloatArray | None:
        return None if self.weights is None else np.sqrt(self.weights)

    @cached_property
    def _own_response(self) -> Column:
        """The response without its known part."""
        return self.response if self.offset is None else self.response - self.offset

    @cached_property
    def _row_weights(self) -> Column:
        return np.ones(self.n_rows) if self.weights is None else self.weights

    @cached_property
    def _fixed(self) -> Matrix:
        """Orthonormal basis of intercept and always-in columns, in weighted rows."""
        ones = np.ones(self.n_rows) if self._root is None else self._root
        ones = ones / np.linalg.norm(ones)
        if self.always is None:
            return ones[:, None]
        block, _ = self._centred(self.always)
        scale = np.linalg.norm(block, axis=0)
        q, r, _ = scipy.linalg.qr(
            block / np.where(scale > 0, scale, 1), mode="economic", pivoting=True
        )
        kept = np.abs(np.diag(r)) > np.sqrt(DEPENDENCE_TOLERANCE)
        return np.column_stack([ones, q[:, kept]])

    @property
    def n_always(self) -> int:
        """Number of linearly independent always-in columns besides the intercept."""
        return int(self._fixed.shape[1]) - 1

    @cached_property
    def _target(self) -> tuple[FloatArray, float, float]:
        """Weighted response freed of the fixed columns, its TSS about the mean, and its scale.

        The response is divided by its largest deviation first, so that neither huge nor
        tiny units overflow when squared.
        """
        y = self._own_response
        weights = self._row_weights
        centre = float(np.average(y / 2, weights=weights)) * 2
        unit = float(np.max(np.abs(y - centre), initial=0.0, where=weights > 0))
        if not unit > 0:
            unit = max(float(np.max(np.abs(y), initial=0.0)) * _EPSILON, np.finfo(float).tiny)
        centred = (y - centre) / unit
        rows = centred if self._root is None else centred * self._root
        total = float(rows @ rows)
        rows = rows - self._fixed @ (self._fixed.T @ rows)
        return rows, max(total, float(np.finfo(float).tiny)), unit

    @cached_property
    def shape(self) -> GaussianShape:
        """Sample size, total sum of squares and residual floor of this response."""
        _, total, unit = self._target
        n = float(self.n_rows if self.weights is None else self.weights.sum())
        with np.errstate(over="ignore"):
            used = True if self.weights is None else self.weights > 0
            largest = np.max(np.abs(self.response), initial=0.0, where=used) / unit
            floor = max(SMALLEST_FRACTION, _EPSILON**2 * n * largest**2 / total)
            if not total > np.finfo(float).tiny:
                # Nothing varies: no model explains more than the intercept does.
                floor = 1.0
            scaled = np.float64(total) * unit * unit
        bounded = float(min(max(scaled, np.finfo(float).tiny), np.finfo(float).max))
        return GaussianShape(n=n, total=bounded, floor=float(min(floor, 1.0)))

    def _table(self, most: int) -> ScoreTable:
        sizes = np.arange(self.n_always, self.n_always + most + 1)
        return self.prior.score_table(sizes, self.shape)

    def _centred(self, columns: Matrix) -> tuple[Matrix, IntArray]:
        """Columns about their means, in weighted rows, scaled by powers of two (exactly).

        Also the exponents of the latter.
        """
        block = np.array(columns, dtype=np.float64, order="F")
        _, exponents = np.frexp(np.max(np.abs(block), axis=0, initial=0.0))
        block = np.asarray(np.ldexp(block, -exponents), dtype=np.float64)
        weights = self._row_weights
        block -= weights @ block / weights.sum()
        if self._root is not None:
            block *= self._root[:, None]
        return block, exponents

    def _free(self, columns: Matrix) -> Matrix:
        """Columns in weighted rows, freed of intercept and always-in columns, unit length."""
        return self._freed(columns)[0]

    def _freed(self, columns: Matrix) -> tuple[Matrix, FloatArray]:
        """As `_free`, and the decimal logarithms of their lengths, infinite where none is left."""
        block, exponents = self._centred(columns)
        spread = np.linalg.norm(block, axis=0)
        block -= self._fixed @ (self._fixed.T @ block)
        # Once more: one projection leaves rounding noise of the size of the first residue.
        block -= self._fixed @ (self._fixed.T @ block)
        left = np.linalg.norm(block, axis=0)
        # Nothing but rounding is left of a constant (its size is about one here), or of a
        # combination of the always-in columns.
        noise = SMALLEST_SPREAD * np.sqrt(self.shape.n)
        vanished = (spread <= noise) | (left**2 <= DEPENDENCE_TOLERANCE * spread**2)
        left = np.where(vanished, inf, left)
        block /= left
        return block, np.log10(left) + exponents * np.log10(2.0)

    def take(self, rows: IntArray) -> "GaussianEngine":
        weights, always, offset = (
            None if values is None else values[rows]
            for values in (self.weights, self.always, self.offset)
        )
        response = self.response[rows]
        return replace(self, response=response, weights=weights, always=always, offset=offset)

    def prepare(self, columns: Matrix) -> "GaussianPopulation":
        return self.prepare_beside(columns, 0)

    def prepare_beside(self, columns: Matrix, n_settled: int) -> "GaussianPopulation":
        block = self._free(columns)
        rows, total, _ = self._target
        if n_settled:
            basis, _ = np.linalg.qr(block[:, :n_settled])
            block = _beside(basis, block[:, n_settled:])
            rows = rows - basis @ (basis.T @ rows)
        scale = np.sqrt(total)
        return GaussianPopulation(
            gram=block.T @ block,
            cross=block.T @ (rows / scale),
            left=float(rows @ rows) / total,
            floor=self.shape.floor,
            table=self._table(columns.shape[1]).beyond(n_settled),
        )

    def fraction(self, columns: Matrix) -> tuple[float, Status]:
        """Residual fraction of the model with these columns, by Householder QR of the rows."""
        rows, total, _ = self._target
        return residual_fraction(self._free(columns), rows / np.sqrt(total))

    def log_evidence(self, columns: Matrix) -> tuple[float, Status]:
        """Log evidence of one model from its rows."""
        fraction, status = self.fraction(columns)
        value, status = self._score(fraction, status, columns.shape[1])
        if self.has_row_terms and value > -inf:
            value += float(self._row_terms_of_one(columns, fraction).change[0])
        return value, status

    def _score(self, fraction: float, status: Status, size: int) -> tuple[float, Status]:
        if status is not Status.OK:
            return -inf, status
        floor, table = self.shape.floor, self._table(size)
        value = table.value(max(fraction, floor), size)
        if not value > -inf:
            return value, Status.UNDEFINED
        if fraction > floor:
            return value, status
        if floor > SMALLEST_FRACTION:
            # The response itself has no more digits.
            return value, Status.PERFECT_FIT
        # From the rows perfect fits are told apart: an approximation to seven digits is not the
        # law. Below the floor the log evidence is linear in the logarithm of the fraction.
        slope = value - table.value(e * floor, size)
        return value + slope * log(floor / max(fraction, ROUNDING_OF_ROWS)), Status.PERFECT_FIT

    def log_evidence_of(self, columns: Matrix, masks: Masks) -> tuple[FloatArray, StatusArray]:
        """Log evidence of several models over the same columns, by one QR of their rows.

        The triangular factor stands in for the rows: it has the same inner products to
        rounding, without their squared condition number.
        """
        about_mean = self._about_mean(columns)
        fractions = about_mean.left(masks)
        values, statuses = np.empty(len(masks)), np.empty(len(masks), dtype=np.uint8)
        for row, (fraction, mask) in enumerate(zip(fractions.tolist(), masks, strict=True)):
            status = Status.OK if fraction < inf else Status.RANK_DEFICIENT
            values[row], statuses[row] = self._score(fraction, status, int(mask.sum()))
        if self.has_row_terms:
            known = np.flatnonzero(values > -inf)
            terms = self._row_terms(columns, about_mean, masks[known], fractions[known])
            values[known] += terms.change
        return values, statuses

    @property
    def has_row_terms(self) -> bool:
        return bool(self.zero_intercept) or self.short_coefficients is not None

    @property
    def row_terms_at_most(self) -> float:
        return _OF_DIGITS if self.short_coefficients is not None else 0.0

    def _row_terms_of_one(self, columns: Matrix, fraction: float) -> "_RowTerms":
        everything = np.ones((1, columns.shape[1]), dtype=np.bool_)
        about_mean = self._about_mean(columns)
        return self._row_terms(columns, about_mean, everything, np.array([fraction]))

    def _row_terms(
        self, columns: Matrix, about_mean: TriangularRows, masks: Masks, fractions: FloatArray
    ) -> "_RowTerms":
        """What intercept and digits change, for models of known residual fractions."""
        change, left = self._of_digits(about_mean, masks, fractions, 1), np.full(len(masks), inf)
        intercept = np.ones(len(masks), dtype=np.bool_)
        if self.zero_intercept:
            about_zero = self._about_zero(columns)
            n_always = about_zero.log_lengths.size - masks.shape[1]
            always_in = np.ones((len(masks), n_always), dtype=np.bool_)
            masks = np.hstack([always_in, masks])
            left = about_zero.left(masks)
            without = self._of_digits(about_zero, masks, left, 0, n_always)
            sizes = masks.sum(axis=1) - n_always
            triples = zip(left.tolist(), fractions.tolist(), sizes.tolist(), strict=True)
            without += [self._log_factor_of_zero(*triple) for triple in triples]
            weights = np.log([1.0 - self.zero_intercept, self.zero_intercept])
            intercept = without + weights[1] <= change + weights[0]
            change = np.logaddexp(change + weights[0], without + weights[1])
        return _RowTerms(change, left, intercept)

    def _about_mean(self, columns: Matrix) -> TriangularRows:
        """Columns and response about their means, without always-in columns, of which the squares
        of the response are one in all.
        """
        rows, total, unit = self._target
        block, log_lengths = self._freed(columns)
        log_unit = np.log10(unit) + 0.5 * np.log10(total)
        return TriangularRows.of(block, rows / np.sqrt(total), log_lengths - log_unit)

    def _about_zero(self, columns: Matrix) -> TriangularRows:
        """The same about zero, always-in columns that do not depend on each other first."""
        root = np.ones(self.n_rows) if self._root is None else self._root
        block = np.hstack([self._independent_always, columns])
        _, exponents = np.frexp(np.max(np.abs(block), axis=0, initial=0.0))
        block = np.ldexp(block, -exponents) * root[:, None]
        lengths = np.maximum(np.linalg.norm(block, axis=0), np.finfo(float).tiny)
        _, total, unit = self._target
        log_unit = np.log10(unit) + 0.5 * np.log10(total)
        log_lengths = np.log10(lengths) + exponents * np.log10(2.0) - log_unit
        target = self._own_response / unit * root / np.sqrt(total)
        return TriangularRows.of(block / lengths, target, log_lengths)

    @cached_property
    def _independent_always(self) -> Matrix:
        """Always-in columns, none of which is a combination of the others."""
        if self.always is None:
            return np.empty((self.n_rows, 0))
        root = np.ones(self.n_rows) if self._root is None else self._root
        block = self.always * root[:, None]
        block = block / np.maximum(np.max(np.abs(block), axis=0), np.finfo(float).tiny)
        _, r, order = scipy.linalg.qr(block, mode="economic", pivoting=True)
        kept = np.abs(np.diag(r)) > np.sqrt(DEPENDENCE_TOLERANCE)
        return self.always[:, np.sort(order[: kept.size][kept])]

    def _of_digits(
        self,
        rows: TriangularRows,
        masks: Masks,
        shares: FloatArray,
        intercept: int,
        n_always: int = 0,
    ) -> FloatArray:
        """Log factors of the digits of coefficients, of models that leave these shares.

        The first `n_always` columns of the masks have none.
        """
        changes = np.zeros(len(masks))
        for models, members in of_one_size(masks) if self.short_coefficients is not None else ():
            size = members.shape[1] - n_always
            degrees = self.shape.n - self.n_always - size - intercept
            if size == 0 or degrees < 1.0:
                continue
            estimates, inverses = rows.estimates(members)
            with np.errstate(all="ignore"):
                log_sizes = np.log10(np.abs(estimates)) - rows.log_lengths[members]
                relative = inverses / (estimates[:, :, None] * estimates[:, None, :])
                left = np.maximum(shares[models], ROUNDING_OF_ROWS) / degrees
                relative *= left[:, None, None]
            assert self.short_coefficients is not None
            changes[models] = self.short_coefficients.log_factors(
                log_sizes[:, n_always:], relative[:, n_always:, n_always:], degrees
            )
        return changes

    @cached_property
    def _through_origin(self) -> tuple[GaussianShape, float]:
        """The response about zero, and the share of its sum of squares that is about its mean."""
        y = self._own_response
        _, total, unit = self._target
        weights = self._row_weights
        used = weights > 0
        with np.errstate(over="ignore"):
            squares = max(float(weights[used] @ (y[used] / unit) ** 2), total)
            about_zero = np.float64(squares) * unit * unit
        bounded = min(max(float(about_zero), self.shape.total), np.finfo(float).max)
        share = total / squares
        floor = self.shape.floor * share
        return GaussianShape(self.shape.n, float(bounded), floor, of_mean=0.0), share

    def _log_factor_of_zero(self, left: float, fraction: float, size: int) -> float:
        """Log Bayes factor of no intercept; what is left is not less than rounding leaves."""
        if not left < inf:
            return -inf
        floor = self.shape.floor
        least = floor if floor > SMALLEST_FRACTION else ROUNDING_OF_ROWS
        excess = max(left, least) / max(fraction, least) - 1.0
        return log_factor_of_zero(max(excess, 0.0), self.shape.n, self.n_always + size)

    def fit_many(self, columns: Matrix, masks: Masks) -> list[ModelFit]:
        """Fit several models over the same columns, those of one size at a time.

        Their Gram matrices are blocks of one, which squares the condition number: models whose
        columns nearly depend on each other, or that fit almost perfectly, are fitted one by one
        from the rows.
        """
        fits: list[ModelFit | None] = [None] * len(masks)
        if self.n_always == 0 and not self.has_row_terms:
            sizes = masks.sum(axis=1)
            gram = GramMatrix.of(self._own_response, columns, self._row_weights)
            for size in np.unique(sizes[sizes > 0]).tolist():
                models = np.flatnonzero(sizes == size)
                members = np.nonzero(masks[models])[1].reshape(-1, size)
                for model, fit in zip(models, self._fit_alike(gram, members), strict=True):
                    fits[model] = fit
        return [fit or self.fit(columns[:, mask]) for fit, mask in zip(fits, masks, strict=True)]

    def _fit_alike(self, gram: GramMatrix, members: IntArray) -> Iterator[ModelFit | None]:
        """Fits of models of one size; none where one Gram matrix is not accurate enough."""
        size, n = members.shape[1], self.shape.n
        table = self._table(size)
        inverses, slopes, fractions, accurate = gram.solve(members)
        for own, inverse, slope, fraction, usable in zip(
            members, inverses, slopes, fractions.tolist(), accurate, strict=True
        ):
            value = table.value(fraction, size) if usable else -inf
            if not value > -inf:
                yield None
                continue
            summary = self.prior.summary(size, fraction, self.shape)
            means = gram.means[own]
            covariance = np.empty((size + 1, size + 1))
            covariance[1:, 1:] = summary.shrinkage * inverse
            covariance[0, 1:] = covariance[1:, 0] = -covariance[1:, 1:] @ means
            covariance[0, 0] = 1.0 / n - means @ covariance[1:, 0]
            slopes_now = summary.shrinkage * slope
            variance = fraction * self.shape.total / n
            yield ModelFit(
                log_evidence=value,
                log_likelihood=-0.5 * n * (log(2 * pi * variance) + 1),
                coefficients=np.concatenate([[gram.mean - means @ slopes_now], slopes_now]),
                covariance=covariance,
                dispersion=summary.variance,
                degrees_of_freedom=summary.degrees_of_freedom,
                status=Status.OK,
            )

    def fit(self, columns: Matrix) -> ModelFit:
        fraction, status = self.fraction(columns)
        value, status = self._score(fraction, status, columns.shape[1])
        intercept, shape = True, self.shape
        if self.has_row_terms and value > -inf:
            terms = self._row_terms_of_one(columns, fraction)
            value, intercept = value + float(terms.change[0]), bool(terms.intercept[0])
            if not intercept:
                shape, share = self._through_origin
                fraction = max(float(terms.left[0]), self.shape.floor) * share
        fraction = min(max(fraction, shape.floor), 1.0)
        always = np.empty((self.n_rows, 0)) if self.always is None else self.always
        design = np.hstack([always, columns])
        summary = self.prior.summary(design.shape[1], fraction, shape)
        weights = self._row_weights
        y = self._own_response
        coefficients, covariance = least_squares(
            design, y, weights, summary.shrinkage, intercept=intercept
        )
        variance = fraction * shape.total / self.shape.n
        log_likelihood = -0.5 * self.shape.n * (np.log(2 * np.pi * variance) + 1)
        return ModelFit(
            log_evidence=value,
            log_likelihood=float(log_likelihood),
            coefficients=coefficients,
            covariance=covariance,
            dispersion=summary.variance,
            degrees_of_freedom=summary.degrees_of_freedom,
            status=status,
        )

    def project(self, columns: Matrix) -> FloatArray:
        weights = self._row_weights
        y = self._own_response
        return least_squares(columns, y, weights, 1.0)[0]

    def likelihood(self) -> AbstractPredictorLikelihood:
        return predictor_likelihood(
            Gaussian(),
            find_link("identity"),
            self.response,
            weights=self.weights,
            offset=self.offset,
        )

    def score_test(self, columns: Matrix) -> ScoreTest:
        rows, total, _ = self._target
        fitted = np.zeros_like(rows)
        if columns.shape[1]:
            basis, _ = np.linalg.qr(self._free(columns))
            fitted = basis @ (basis.T @ rows)
            rows = rows - fitted
        size = columns.shape[1]
        table, floor = self._table(size + 1), self.shape.floor
        squares = float(rows @ rows)
        fraction = max(squares / total, floor)
        base = table.value(fraction, size)

        def change(left: FloatArray, extra: int) -> FloatArray:
            if not np.isfinite(table.constant[[size, size + extra]]).all():
                return np.full(left.size, -inf)
            scores = score_row(fraction * left, size + extra, floor, *table.arguments)
            return np.asarray(scores - base)

        if self._root is None:
            return ScoreTest(rows, change, squares, fitted)
        # The score of a column is its product with the weighted residual.
        weighted = rows * self._root
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = np.where(self._root > 0, fitted / self._root, 0.0)
        return ScoreTest(weighted, change, squares, fitted, np.asarray(self.weights))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RowTerms:
    """What the rows say of models.

    Parameters
    ----------
    change
        Of their log evidence, as compared with that of any intercept and coefficients.
    left
        What they leave without an intercept, as shares of the total sum of squares.
    intercept
        Which rather have one.
    """

    change: FloatArray
    left: FloatArray
    intercept: Mask


@final
@dataclass(frozen=True, eq=False)
class GaussianPopulation(AbstractPrepared):
    """The Gram matrix of one population and the score of its prior."""

    gram: Matrix
    cross: FloatArray
    left: float
    floor: float
    table: ScoreTable
    enumeration_limit = 20

    @property
    def size(self) -> int:
        return int(self.cross.size)

    @cached_property
    def context(self) -> GaussianContext:
        size = self.size
        return GaussianContext(
            self.gram,
            self.cross,
            self.left,
            DEPENDENCE_TOLERANCE,
            ROUNDING,
            self.floor,
            *self.table.arguments,
            np.empty((size, size + 2)),
            np.empty(size, dtype=np.int64),
        )

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        values, statuses = evaluate_many(self.context, np.ascontiguousarray(masks))
        return values, statuses

    def log_evidence_of_all(
        self,
        max_size: int,
        report: CountCallback | None = None,  # noqa: ARG002
    ) -> tuple[FloatArray, StatusArray]:
        fractions = residuals_of_all(
            self.gram, self.cross, self.left, max_size, DEPENDENCE_TOLERANCE, ROUNDING
        )
        values = score_of_all(fractions, self.floor, *self.table.arguments)
        statuses = np.zeros(values.size, dtype=np.uint8)
        statuses[fractions <= self.floor] = Status.PERFECT_FIT
        statuses[values == -inf] = Status.UNDEFINED
        statuses[np.isnan(fractions)] = Status.RANK_DEFICIENT
        return values, statuses


def _beside(basis: Matrix, block: Matrix) -> Matrix:
    """What an orthonormal basis leaves of columns of unit length, again of unit length."""
    block = block - basis @ (basis.T @ block)
    block -= basis @ (basis.T @ block)
    left = np.linalg.norm(block, axis=0)
    return np.asarray(block / np.where(left**2 <= DEPENDENCE_TOLERANCE, inf, left))
