r"""Log evidence of all subsets of a population by one quadratic expansion of the likelihood.

With weights :math:`w_i = -\ell_i''(\eta_i)` and working responses
:math:`z_i = \eta_i + \ell_i'(\eta_i)/w_i` at the fit of one model,

.. math:: \ell(\beta) \approx c - \tfrac12 \sum_i w_i (z_i - x_i'\beta)^2,

so that every model is a subset of one weighted Gram matrix. For deciding which models to fit,
never reported.
"""

from typing import Any

import numpy as np

from dbrm._kernels.enumeration import prior_of_all, residuals_of_all
from dbrm._kernels.glm import NORMAL_LOG_GAMMA, TABLE, linearise_in, maximise, place
from dbrm._kernels.glm_linalg import cross_products
from dbrm._kernels.glm_problem import GlmProblem
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN
from dbrm._kernels.piecewise import glm_score_of_all
from dbrm._typing import FloatArray, Mask, Matrix
from dbrm.evidence.design import Design, independent_columns

__all__ = ["RIDGE", "approximate_all", "times", "typical_precision"]

# Precision of the standardised slopes of a fit that only serves as a starting point: gives
# separated classes a maximum.
RIDGE = 0.1
# Added to the diagonal of the unit Gram matrix: columns that look dependent where classes are
# nearly separated may not be.
_GRAM_RIDGE = 1e-7
# Least residual sum of squares, as a share of the smallest found.
_LEAST_RESIDUAL = 1e-3


def approximate_all(
    design: Design, problem: GlmProblem, opaque: Any, centre: Mask, max_size: int
) -> FloatArray:
    """Log evidence of all subsets up to a constant, from the expansion at the fit of `centre`.

    ``-inf`` for subsets larger than `max_size`. An unknown dispersion of a Gaussian or gamma
    response is profiled in the same sum of squares. Of a normal prior, whose determinants are not
    those of subsets of a Gram matrix, the diagonal is used.
    """
    work = problem.work
    shape = _fit_ridge(design, problem, opaque, centre)
    linearise_in(opaque, shape, work.eta)
    weight = work.weight.copy()
    right = weight * (work.eta - design.offset) + work.score
    live = weight > 0
    total = float(np.sum(right[live] ** 2 / weight[live]))
    gram, cross = design.gram(weight), times(design, right)
    n_fixed = int(problem.rows.n_fixed)
    if not (np.isfinite(gram).all() and np.isfinite(cross).all() and np.isfinite(total)):
        # Nothing can be said from here.
        return np.full(1 << (cross.size - n_fixed), -np.inf)
    gram, cross, left = _free_of_fixed(gram, cross, total, n_fixed)
    rescaled = problem.rows.family in (GAUSSIAN, GAMMA)
    factor = shape if rescaled else 1.0
    shrinkage = np.zeros(cross.size)
    if problem.prior != TABLE:
        penalty = _penalty(problem, opaque, cross.size) / factor
        shrinkage = 0.5 * np.log(penalty / (np.diag(gram) + penalty))
        gram = gram + np.diag(penalty)
    residuals = _residuals(gram, cross, left, max_size)
    explained = left - residuals
    if rescaled and np.isnan(problem.rows.shape):
        floor = max(float(np.min(residuals)) * _LEAST_RESIDUAL, np.finfo(float).tiny)
        value = -0.5 * problem.rows.constants.n * np.log(np.maximum(residuals, floor))
    else:
        value = 0.5 * factor * explained
    value = np.where(np.isfinite(residuals), value, -np.inf)
    if problem.prior != TABLE:
        prior = prior_of_all(shrinkage, np.zeros(cross.size + 1), np.zeros(1))
        return np.asarray(value + prior)
    log_information = float(np.log(factor * np.sum(weight)))
    wald = np.where(np.isfinite(residuals), factor * np.maximum(explained, 0.0), 0.0)
    return np.asarray(glm_score_of_all(value, log_information, wald, problem.table))


def _fit_ridge(design: Design, problem: GlmProblem, opaque: Any, mask: Mask) -> float:
    """Fit the independent columns of a mask into the work space; returns the shape."""
    work, n_fixed = problem.work, int(problem.rows.n_fixed)
    wanted = np.concatenate([np.arange(n_fixed), n_fixed + np.flatnonzero(mask)])
    gram = problem.unit_gram[np.ix_(wanted, wanted)]
    kept = wanted[independent_columns(gram, 1e-6, max(design.n_live // 3, 1))]
    inside = np.zeros(mask.size, dtype=np.bool_)
    inside[kept[kept >= n_fixed] - n_fixed] = True
    k, _ = place(opaque, inside, typical_precision(problem))
    if problem.prior == TABLE:
        work.penalty[n_fixed:k] = RIDGE
    _, _, shape, _ = maximise(opaque, k, np.nan, problem.start.shape)
    return float(shape)


def _penalty(problem: GlmProblem, opaque: Any, size: int) -> FloatArray:
    """Prior precisions of all free columns."""
    n_fixed = int(problem.rows.n_fixed)
    k, _ = place(opaque, np.ones(size, dtype=np.bool_), typical_precision(problem))
    return np.array(problem.work.penalty[n_fixed:k])


def _free_of_fixed(
    gram: Matrix, cross: FloatArray, total: float, n_fixed: int
) -> tuple[Matrix, FloatArray, float]:
    """Cross products of the free columns and the response once the fixed columns are fitted."""
    fixed, free = slice(0, n_fixed), slice(n_fixed, None)
    both = np.column_stack([gram[fixed, free], cross[fixed]])
    solved = np.linalg.lstsq(gram[fixed, fixed], both, rcond=None)[0]
    left = total - float(cross[fixed] @ solved[:, -1])
    cross = cross[free] - gram[free, fixed] @ solved[:, -1]
    return gram[free, free] - gram[free, fixed] @ solved[:, :-1], cross, left


def _residuals(gram: Matrix, cross: FloatArray, left: float, max_size: int) -> FloatArray:
    """Residual sum of squares of all subsets; infinite for those that are too large."""
    unit = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    gram = gram / np.outer(unit, unit) + _GRAM_RIDGE * np.eye(unit.size)
    residuals = residuals_of_all(gram, cross / unit, left, max_size, 0.0, 0.0)
    return np.where(residuals < np.inf, np.maximum(residuals, 0.0), np.inf)


def times(design: Design, vector: FloatArray) -> FloatArray:
    """Inner products of all columns with a vector; compiled sums, as in `Design.gram`."""
    out = np.zeros(len(design.flat))
    cross_products(design.flat, np.arange(len(design.flat)), len(design.flat), vector, out)
    return out


def typical_precision(problem: GlmProblem) -> float:
    """Prior precision of the slopes, its prior mean where it is unknown."""
    if problem.prior == NORMAL_LOG_GAMMA:
        return float(problem.prior_shape / problem.prior_rate)
    return float(problem.prior_rate)
