r"""Log evidence of all subsets of a population by one quadratic expansion of the likelihood.

With weights :math:`w_i = -\ell_i''(\eta_i)` and working responses
:math:`z_i = \eta_i + \ell_i'(\eta_i)/w_i` at the fit of one model,

.. math:: \ell(\beta) \approx c - \tfrac12 \sum_i w_i (z_i - x_i'\beta)^2,

so that every model is a subset of one weighted Gram matrix. For deciding which models to fit,
and for models whose errors are known to be small. Sees sums over the rows, wherever they are.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._kernels.enumeration import prior_of_all, residuals_of_all
from dbrm._kernels.piecewise import glm_score_of_all
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evidence.design import independent_columns
from dbrm.evidence.gaussian import SMALLEST_FRACTION, GaussianPopulation
from dbrm.evidence.least_squares import DEPENDENCE_TOLERANCE
from dbrm.evidence.score import closed_form_table

__all__ = ["GRAM_RIDGE", "RIDGE", "Expansion", "columns_to_expand"]

# Precision of the standardised slopes of a fit that only serves as a starting point: gives
# separated classes a maximum.
RIDGE = 0.1
# Added to the diagonal of the unit Gram matrix: columns that look dependent where classes are
# nearly separated may not be.
GRAM_RIDGE = 1e-7
# Least residual sum of squares, as a share of the smallest found.
_LEAST_RESIDUAL = 1e-3
# Share of its length that a column of the fit must have beside the others.
_INDEPENDENT = 1e-6


def columns_to_expand(unit_gram: Matrix, wanted: IntArray, n_rows: int) -> IntArray:
    """Those of the wanted columns that are independent enough to be fitted together."""
    gram = unit_gram[np.ix_(wanted, wanted)]
    return np.asarray(wanted[independent_columns(gram, _INDEPENDENT, max(n_rows // 3, 1))])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    r"""Weighted cross products of columns and working response at one fit.

    Parameters
    ----------
    gram, cross, total
        :math:`X'WX`, :math:`X'Wz` and :math:`z'Wz`, the intercept being column 0.
    n_fixed
        Number of the leading columns that every model contains.
    table
        Prior as a function of likelihood, Wald statistic and size, as `glm_score_of_all` takes it.
    constant
        Log likelihood that the expansion has where its residuals vanish.
    factor
        Of the sum of squares in the log likelihood: the inverse dispersion.
    profiled
        Number of observations if the dispersion is profiled in the sum of squares, else ``None``.
    penalty
        Precisions of the free columns under a normal prior, else ``None``. Of its determinants,
        which are not those of subsets of a Gram matrix, the diagonal is used.
    """

    gram: Matrix
    cross: FloatArray
    total: float
    n_fixed: int
    table: tuple[Any, ...]
    constant: float = 0.0
    factor: float = 1.0
    profiled: float | None = None
    penalty: FloatArray | None = None

    def approximate_all(self, max_size: int, n_settled: int = 0) -> FloatArray:
        """Log evidence of all subsets up to a constant; ``-inf`` if larger than `max_size`.

        The first `n_settled` of the columns that are not fixed are in every model, and are not
        counted. Their own prior precision is left out.
        """
        n_fixed = self.n_fixed + n_settled
        finite = np.isfinite(self.gram).all() and np.isfinite(self.cross).all()
        if not finite or not np.isfinite(self.total):
            # Nothing can be said from here.
            return np.full(1 << (self.cross.size - n_fixed), -np.inf)
        gram, cross, left = self._free_of(n_fixed)
        if self.penalty is not None:
            penalty = self.penalty[n_settled:] / self.factor
            shrinkage = 0.5 * np.log(penalty / (np.diag(gram) + penalty))
            gram = gram + np.diag(penalty)
        residuals = _residuals(gram, cross, left, max_size)
        if self.profiled is not None:
            floor = max(float(np.min(residuals)) * _LEAST_RESIDUAL, np.finfo(float).tiny)
            value = -0.5 * self.profiled * np.log(np.maximum(residuals, floor))
        else:
            value = self.constant - 0.5 * self.factor * residuals
        value = np.where(np.isfinite(residuals), value, -np.inf)
        if self.penalty is not None:
            prior = prior_of_all(shrinkage, np.zeros(cross.size + 1), np.zeros(1))
            return np.asarray(value + prior)
        log_information = float(np.log(self.factor * self.gram[0, 0]))
        before = self._free_of(self.n_fixed)[2] if n_settled else left
        explained = np.where(np.isfinite(residuals), before - residuals, 0.0)
        wald = self.factor * np.maximum(explained, 0.0)
        # By size, without the sizes below that of the settled columns.
        table = tuple(
            part[n_settled:] if isinstance(part, np.ndarray) else part for part in self.table
        )
        return np.asarray(glm_score_of_all(value, log_information, wald, table))

    def to_gaussian(self) -> GaussianPopulation:
        """The same as a population with a Gaussian response, for loops over masks.

        For families without a dispersion, and priors that see nothing but the likelihood. The log
        likelihood is a linear function of the residual fraction.
        """
        gram, cross, left = self._free_of(self.n_fixed)
        before = np.maximum(np.diag(self.gram)[self.n_fixed :], np.finfo(float).tiny)
        vanished = np.diag(gram) <= DEPENDENCE_TOLERANCE * before
        unit = np.where(vanished, np.inf, np.sqrt(np.maximum(np.diag(gram), 0.0)))
        constant = np.asarray(self.table[0]) + self.constant
        return GaussianPopulation(
            gram=np.ascontiguousarray(gram / np.outer(unit, unit)),
            cross=cross / unit / np.sqrt(left),
            left=1.0,
            floor=SMALLEST_FRACTION,
            table=closed_form_table(constant, np.zeros(constant.size), linear=-0.5 * left),
        )

    def _free_of(self, n_first: int) -> tuple[Matrix, FloatArray, float]:
        """Cross products of the columns and the response once the first ones are fitted."""
        fixed, free = slice(0, n_first), slice(n_first, None)
        gram, cross = self.gram, self.cross
        both = np.column_stack([gram[fixed, free], cross[fixed]])
        solved = np.linalg.lstsq(gram[fixed, fixed], both, rcond=None)[0]
        left = self.total - float(cross[fixed] @ solved[:, -1])
        cross = cross[free] - gram[free, fixed] @ solved[:, -1]
        return gram[free, free] - gram[free, fixed] @ solved[:, :-1], cross, left


def _residuals(gram: Matrix, cross: FloatArray, left: float, max_size: int) -> FloatArray:
    """Residual sum of squares of all subsets; infinite for those that are too large."""
    unit = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    gram = gram / np.outer(unit, unit) + GRAM_RIDGE * np.eye(unit.size)
    residuals = residuals_of_all(gram, cross / unit, left, max_size, 0.0, 0.0)
    return np.where(residuals < np.inf, np.maximum(residuals, 0.0), np.inf)
