r"""Piecewise polynomials, one row per model size, and the GLM score that uses them.

A row holds one polynomial for each of its equally wide panels, in powers of the
position :math:`t \in [-1, 1]` inside the panel. Degree and width are chosen by the
builder (`dbrm.evidence.coefficient_priors.tabulate`) so that evaluation costs no more
than the logarithm that precedes it.
"""

import numba as nb
import numpy as np

from dbrm._kernels.bits import popcount

__all__ = ["COEFFICIENTS", "glm_score_of_all", "glm_score_one", "piecewise_one"]

# Coefficients of a panel.
COEFFICIENTS = 10


@nb.njit(cache=True, nogil=True, inline="always")
def piecewise_one(argument, row, pieces, inverse_width):
    """Value of one row at `argument >= 0`; clamped to the last panel."""
    position = argument * inverse_width
    panel = min(np.uint64(position), np.uint64(pieces.shape[1] - 1))
    t = min(2.0 * (position - panel) - 1.0, 1.0)
    square = t * t
    c = pieces[np.uint64(row), panel]
    # Written out, with even and odd powers apart: half the time of a loop.
    even = (((c[8] * square + c[6]) * square + c[4]) * square + c[2]) * square + c[0]
    odd = (((c[9] * square + c[7]) * square + c[5]) * square + c[3]) * square + c[1]
    return even + t * odd


@nb.njit(cache=True, nogil=True)
def glm_score_one(
    log_likelihood,
    log_information,
    wald,
    row,
    constant,
    information_slope,
    wald_slope,
    log_wald_slope,
    bend,
    pieces,
    inverse_width,
):
    r"""Log evidence of a GLM from its maximised likelihood and its Wald statistic.

    See `dbrm.evidence.score.GlmTable` for the formula.
    """
    if constant[row] == -np.inf:
        return -np.inf
    value = log_likelihood + constant[row] + wald_slope[row] * wald
    if information_slope != 0.0:
        value += information_slope * log_information
    if log_wald_slope[row] != 0.0:
        value += log_wald_slope[row] * np.log(max(wald, bend[row]))
        value -= 0.5 * (min(wald, bend[row]) - bend[row])
    if pieces.shape[1] > 0:
        value += piecewise_one(np.log1p(wald), row, pieces, inverse_width)
    return value


@nb.njit(cache=True, nogil=True)
def glm_score_of_all(log_likelihood, log_information, wald, table):
    """`glm_score_one` of every subset; ``-inf`` where there is no likelihood."""
    values = np.empty(log_likelihood.size)
    constant, information_slope, wald_slope, log_wald_slope, _, pieces, _ = table
    if not (wald_slope.any() or log_wald_slope.any() or pieces.shape[1] > 0):
        level = information_slope * log_information if information_slope != 0.0 else 0.0
        for subset in range(values.size):
            values[subset] = log_likelihood[subset] + constant[popcount(subset)] + level
        return values
    for subset in range(values.size):
        if log_likelihood[subset] > -np.inf:
            values[subset] = glm_score_one(
                log_likelihood[subset], log_information, wald[subset], popcount(subset), *table
            )
        else:
            values[subset] = -np.inf
    return values
