"""Scores of many one-column extensions of one model, for screening."""

import numba as nb
import numpy as np

from dbrm._kernels.enumeration import score_one

__all__ = ["score_row"]


@nb.njit(cache=True, nogil=True)
def score_row(
    fractions,
    row,
    floor,
    constant,
    log_slope,
    complement_slope,
    shift,
    linear,
    ceiling,
    pieces,
    scale,
    inverse_width,
):
    """Log evidence at each residual fraction for models of one size."""
    values = np.empty(fractions.size)
    for i in range(fractions.size):
        values[i] = score_one(
            max(fractions[i], floor),
            row,
            constant,
            log_slope,
            complement_slope,
            shift,
            linear,
            ceiling,
            pieces,
            scale,
            inverse_width,
        )
    return values
