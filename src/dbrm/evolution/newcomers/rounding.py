"""Numbers inside features with few digits: readable, and near-equal ones become equal."""

from collections.abc import Callable
from math import floor, log10

import numpy as np

from dbrm._typing import Column, Matrix

__all__ = ["explained_share", "shortest"]

# What rounding may cost (nats).
_LOSS = 0.1
_MOST_DIGITS = 12
# A column whose part outside the model is smaller than this share of its size is inside.
_FLAT = 1e-7
# Below one, so that the logarithm of what is left is finite.
_MOST = 1.0 - 1e-12


def shortest(
    value: float, share: Callable[[float], float], n_rows: int, *, zero: bool = True
) -> float:
    """Round a number to the fewest digits that keep the fit; to zero only if that is allowed.

    Parameters
    ----------
    share
        Share of the residual's squares that is explained with a number.
    """
    if value == 0.0 or not np.isfinite(value):
        return value
    best = share(value)
    first = -floor(log10(abs(value)))
    trials = [round(value, places) for places in range(first, first + _MOST_DIGITS)]
    for rounded in [0.0, *trials] if zero else trials:
        if 0.5 * n_rows * (np.log1p(-share(rounded)) - np.log1p(-best)) <= _LOSS:
            return rounded
    return value


def explained_share(column: Column, residual: Column, span: Matrix) -> float:
    """Share of a centred residual's squares that a column explains beside a model.

    `span` are the centred orthonormal columns of the model. Zero if there is nothing to explain
    it with.
    """
    with np.errstate(all="ignore"):
        centred = column - column.mean()
        centred = centred - span @ (span.T @ centred)
        squares = float(centred @ centred)
        if not squares > _FLAT**2 * float(column @ column):
            return 0.0
        share = float((residual @ centred) ** 2 / (squares * (residual @ residual)))
    return min(share, _MOST) if share >= 0.0 else 0.0
