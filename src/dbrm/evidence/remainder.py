r"""A remainder: all covariates at once, each a little, beside the features of a Gaussian model.

.. math:: y = \beta_0 + \sum_{F \in M} \beta_F F + \sum_j b_j z_j + \varepsilon, \qquad
    b_j \sim N(0, \tau \sigma^2),

with columns :math:`z_j` about their means, in units whose squares add up to one in the average
row, so that :math:`\tau` is the prior ratio of the variances of remainder and noise. The
:math:`b_j` are integrated out: with :math:`V = I + \tau Z Z'` the evidence of a model is that of
the rows :math:`V^{-1/2} y` and :math:`V^{-1/2} F`, times :math:`|V|^{-1/2}`. The intercept stays
as it is, because :math:`Z' 1 = 0`.

It sees columns, never features. Rows of an integer weight are repeated.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Masks, Matrix
from dbrm.evidence.base import AbstractPrepared, ModelFit
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.gaussian import GaussianEngine
from dbrm.evidence.variance_components import Quadratic

__all__ = ["Remainder", "RemainderFit", "gaussian_quadratic"]

# Smallest share of the variance of a response that is not rounding.
_ROUNDING = 1e-24


@final
@dataclass(frozen=True, slots=True)
class RemainderFit:
    """A model with its remainder.

    Parameters
    ----------
    fit
        Of intercept and columns; the intercept is that of columns `z` about their means.
    effects, effects_covariance
        Posterior mean of the effects of the remainder, and their scale matrix.
    shared
        Scale matrix of the effects (rows) and the coefficients (columns).
    shift
        Posterior mean of coefficients and effects minus what is given here.
    """

    fit: ModelFit
    effects: FloatArray
    effects_covariance: Matrix
    shared: Matrix
    shift: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Remainder:
    """The singular value decomposition of the columns, and the response.

    Parameters
    ----------
    rows
        Rows of the table, those of weight two twice.
    response, prior
        Of these rows; and the prior of the coefficients beside the remainder.
    means, units
        Of the columns.
    left, singular, right
        Of the columns about their means, in these units.
    """

    rows: IntArray
    response: Column
    prior: CoefficientPrior
    means: FloatArray
    units: FloatArray
    left: Matrix
    singular: FloatArray
    right: Matrix

    @classmethod
    def of(cls, engine: GaussianEngine, columns: Matrix, units: FloatArray) -> Self:
        """The remainder of these columns; `units` are meant up to a common factor."""
        rows, response = _observations(engine)
        means = columns[rows].mean(axis=0)
        block = (columns[rows] - means) / units
        size = float(np.sqrt(np.sum(block**2) / rows.size))
        left, singular, right = _decompose(block / size)
        return cls(rows, response, engine.prior, means, units * size, left, singular, right)

    def prepare(self, columns: Matrix, ratio: float) -> AbstractPrepared:
        """Columns of the table, ready for models that contain the remainder, too."""
        return self._engine(ratio).prepare(self._whiten(columns[self.rows], ratio))

    def log_evidence(self, prepared: AbstractPrepared, masks: Masks, ratio: float) -> FloatArray:
        """Log evidence of models over prepared columns; minus infinity where there is none."""
        return prepared.log_evidence(masks)[0] - 0.5 * float(np.log(self._spread(ratio)).sum())

    def fit(self, columns: Matrix, ratio: float) -> RemainderFit:
        r"""Fit the model with exactly these columns.

        Given the coefficients the effects have mean :math:`A (y - F \beta)` and scale matrix
        :math:`\tau (I - A Z)`, with :math:`A = \tau Z' V^{-1}`.
        """
        own = columns[self.rows]
        fit = self._engine(ratio).fit(self._whiten(own, ratio))
        gains = ratio * self.singular / self._spread(ratio)
        moved = self.right.T @ (gains[:, None] * (self.left.T @ own))
        plain = self.right.T @ (gains * (self.left.T @ self.response))
        slopes = fit.covariance[1:]
        shared = -moved @ slopes
        within = ratio * np.eye(self.means.size)
        within -= self.right.T @ ((ratio * gains * self.singular)[:, None] * self.right)
        return RemainderFit(
            fit=fit,
            effects=plain - moved @ fit.coefficients[1:],
            effects_covariance=within - shared[:, 1:] @ moved.T,
            shared=shared,
            shift=np.zeros(fit.coefficients.size + self.means.size),
        )

    def _spread(self, ratio: float) -> FloatArray:
        return np.asarray(1.0 + ratio * self.singular**2)

    def _whiten(self, columns: Matrix, ratio: float) -> Matrix:
        shrunk = 1.0 - 1.0 / np.sqrt(self._spread(ratio))
        return np.asarray(columns - self.left @ (shrunk[:, None] * (self.left.T @ columns)))

    def _engine(self, ratio: float) -> GaussianEngine:
        return GaussianEngine(self._whiten(self.response[:, None], ratio)[:, 0], self.prior)


def gaussian_quadratic(
    engine: GaussianEngine, columns: Matrix, units: FloatArray, beside: Matrix
) -> Quadratic:
    """Products of the columns in their units and the response, beside columns of a model.

    The response and the columns are what regressions on these leave of them.
    """
    rows, response = _observations(engine)
    known = np.hstack([np.ones((rows.size, 1)), _standardised(beside[rows])])
    basis = np.linalg.qr(known)[0]
    block = (columns[rows] - columns[rows].mean(axis=0)) / units
    block -= basis @ (basis.T @ block)
    left = response - basis @ (basis.T @ response)
    # Of a perfect fit rounding is left, or nothing.
    least = _ROUNDING * float(np.sum((response - response.mean()) ** 2))
    total = max(float(left @ left), least)
    return Quadratic(block.T @ block, block.T @ left, total, float(rows.size - known.shape[1]))


def _observations(engine: GaussianEngine) -> tuple[IntArray, Column]:
    """Rows of the table, those of weight two twice, and the response without the offset."""
    weights = np.ones(engine.n_rows) if engine.weights is None else engine.weights
    rows = np.repeat(np.arange(engine.n_rows), weights.astype(np.int64))
    response = engine.response if engine.offset is None else engine.response - engine.offset
    return rows, response[rows]


def _standardised(columns: Matrix) -> Matrix:
    sds = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(sds > 0.0, sds, 1.0))


def _decompose(block: Matrix) -> tuple[Matrix, FloatArray, Matrix]:
    """Singular value decomposition; of a long table by that of its products."""
    if block.shape[0] <= block.shape[1]:
        left, singular, right = np.linalg.svd(block, full_matrices=False)
        # What is left of columns that depend on others is rounding noise.
        kept = singular > 1e-8 * singular[0]
        return left[:, kept], singular[kept], right[kept]
    values, vectors = np.linalg.eigh(block.T @ block)
    kept = values > 1e-12 * values[-1]
    singular = np.sqrt(values[kept])
    return block @ (vectors[:, kept] / singular), singular, vectors[:, kept].T
