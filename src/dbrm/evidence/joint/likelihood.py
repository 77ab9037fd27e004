r"""A log likelihood as a function of linear predictors and ancillary parameters.

With :math:`m` linear predictors for each row and ancillary parameters :math:`a`,

.. math:: \ell(a, B), \qquad \eta_{ki} = \sum_j x_{ij} B_{jk} + o_i, \quad k = 1, \ldots, m,

where nothing is said about how the rows enter. Parameters stand in the order :math:`a`, then the
:math:`m` coefficients of the first column, of the second, and so on. There is no intercept among
the coefficients: one is an ancillary parameter. Sees neither priors nor models.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._kernels.joint import weighted_products
from dbrm._typing import Column, FloatArray, Matrix

__all__ = ["JointLikelihood", "JointPoint", "RowPoint"]


class JointPoint(ABC):
    """Log likelihood at one point, with its derivatives.

    Attributes
    ----------
    value
        The log likelihood, ``-inf`` where there is none.
    score
        Derivatives in the linear predictors, predictors by rows.
    ancillary_score
        Derivatives in the ancillary parameters.
    """

    value: float
    score: Matrix
    ancillary_score: FloatArray

    @property
    @abstractmethod
    def row_information(self) -> Matrix:
        """Information of each row about its own predictors, predictors by rows; positive."""

    @abstractmethod
    def information(self, columns: Matrix) -> Matrix:
        """Negative second derivatives in all parameters; `columns` by rows of the data."""


class JointLikelihood(ABC):
    """The log likelihood of one response.

    Attributes
    ----------
    n_rows
        Number of rows.
    n
        Number of observations, as priors count them.
    n_predictors
        Number of linear predictors of each row.
    shift
        What a constant in the predictors (columns) does to the ancillary parameters (rows):
        adding ``c`` to the predictors of all rows is the same as adding ``shift @ c`` to them.
    intercept
        Which ancillary parameter is the intercept of the first predictor; ``None`` if none is.
    """

    n_rows: int
    n: float
    n_predictors: int = 1
    shift: Matrix
    intercept: int | None = None

    @property
    def affordable_fits(self) -> int:
        """How many models are fitted at a time: fewer where each has many coefficients."""
        return 2_000 if self.n_predictors == 1 else max(500 // self.n_predictors**2, 50)

    @property
    def exchangeable_precision(self) -> Matrix:
        """Precision matrix of effects on the predictors that are alike for all of them."""
        return np.eye(self.n_predictors)

    @abstractmethod
    def start(self) -> FloatArray:
        """Ancillary parameters where Newton's method begins, with predictors of zero."""

    @abstractmethod
    def at(self, ancillary: FloatArray, eta: Matrix) -> JointPoint:
        """Value and derivatives at a point; predictors by rows."""

    def unit_information(self, columns: Matrix) -> Matrix:
        """Information of one observation about the coefficients, where all rows are alike."""
        null = self.start()
        information = self.at(null, np.zeros((self.n_predictors, self.n_rows))).information(columns)
        return np.asarray(information[null.size :, null.size :] / self.n)

    def approach(
        self, columns: Matrix, offset: Column, start: FloatArray, precision: Matrix
    ) -> FloatArray:
        """Parameters near the penalised maximum, by compiled steps where a family has them."""
        del columns, offset, precision
        return start


@final
@dataclass(frozen=True, eq=False)
class RowPoint(JointPoint):
    r"""A log likelihood that is a sum over the rows, :math:`\sum_i \ell_i(a, \eta_{1i}, \ldots)`.

    Parameters
    ----------
    weight
        :math:`-\partial^2 \ell_i / \partial\eta_{ki} \partial\eta_{li}`: predictors by predictors
        by rows.
    cross
        :math:`-\partial^2 \ell_i / \partial a_r \partial\eta_{ki}`: ancillary parameters by
        predictors by rows.
    ancillary_information
        :math:`-\partial^2 \ell / \partial a_r \partial a_s`.
    """

    value: float
    score: Matrix
    ancillary_score: FloatArray
    weight: FloatArray
    cross: FloatArray
    ancillary_information: Matrix

    @cached_property
    def row_information(self) -> Matrix:
        diagonal = np.einsum("kki->ki", self.weight)
        return np.asarray(np.maximum(diagonal, np.finfo(np.float64).tiny))

    def information(self, columns: Matrix) -> Matrix:
        a, q, (m, n) = self.ancillary_score.size, len(columns), self.score.shape
        out = np.empty((a + q * m, a + q * m))
        out[:a, :a] = self.ancillary_information
        for k in range(m):
            own = slice(a + k, None, m)
            out[:a, own] = weighted_products(self.cross[:, k].copy(), np.ones(n), columns)
            out[own, :a] = out[:a, own].T
            for other in range(k + 1):
                block = weighted_products(columns, self.weight[k, other], columns)
                out[own, a + other :: m] = block
                out[a + other :: m, own] = block.T
        return out
