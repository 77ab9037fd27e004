"""Log evidence of models whose maxima were found elsewhere, on a graphics processor.

The priors are evaluated as for models that were fitted here, by the same functions.
"""

import numba as nb
import numpy as np

from dbrm._kernels.glm import (
    DEPENDENT,
    NORMAL,
    OK,
    PERFECT_FIT,
    UNDEFINED,
    choose,
    independent,
)
from dbrm._kernels.glm_dispersion import log_likelihood, profile_shape
from dbrm._kernels.glm_problem import problem_of
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN
from dbrm._kernels.piecewise import glm_score_one

__all__ = ["dependent_many", "profile_many", "score_many"]


@nb.njit(cache=True, nogil=True)
def dependent_many(opaque, masks):
    """Which models have linearly dependent columns."""
    problem = problem_of(opaque)
    found = np.empty(masks.shape[0], dtype=np.bool_)
    for row in range(masks.shape[0]):
        found[row] = not independent(problem, choose(problem, masks[row]))
    return found


@nb.njit(cache=True, nogil=True)
def profile_many(opaque, values):
    """Shapes of gamma and Gaussian responses, which follow from the values; or the given one."""
    problem = problem_of(opaque)
    rows = problem.rows
    shapes = np.empty(values.size)
    for row in range(values.size):
        shapes[row] = rows.shape
        if rows.shape != rows.shape:
            shapes[row] = profile_shape(
                rows.family, rows.constants, values[row], rows.mean, rows.total, rows.mean, 1.0
            )
    return shapes


@nb.njit(cache=True, nogil=True)
def score_many(opaque, sizes, values, shapes, totals, walds, normal):
    """Log evidence and status of models from their values at the maximum.

    ``sizes`` are numbers of free columns, ``totals`` and ``walds`` total weight and Wald statistic
    at unit dispersion, ``normal`` what a normal prior adds to the likelihood.
    """
    problem = problem_of(opaque)
    rows = problem.rows
    scores = np.empty(values.size)
    statuses = np.empty(values.size, dtype=np.uint8)
    scaled = rows.family == GAMMA or rows.family == GAUSSIAN
    for row in range(values.size):
        likelihood = log_likelihood(rows.family, rows.constants, values[row], shapes[row])
        status = OK
        if 2.0 * (rows.constants.saturated - values[row]) < rows.constants.floor:
            status = PERFECT_FIT
        if problem.prior == NORMAL:
            score = likelihood + normal[row]
        else:
            scale = shapes[row] if scaled else 1.0
            score = glm_score_one(
                likelihood,
                np.log(scale * totals[row]),
                scale * walds[row],
                sizes[row],
                *problem.table,
            )
        score += problem.dispersion
        if not abs(score) < np.inf:
            score = -np.inf
            status = DEPENDENT if problem.prior == NORMAL else UNDEFINED
        scores[row] = score
        statuses[row] = status
    return scores, statuses
