"""Numbers inside features with few digits: readable, and near-equal ones become equal."""

from collections.abc import Callable
from math import floor, log10

import numpy as np

from dbrm._typing import Column, Matrix

__all__ = ["explained_share", "shortest"]

# What rounding may cost (nats).
_LOSS = 0.1
_MOST_DIGITS = 12
# A column with a smaller share of its squares outside the model is inside.
_FLAT = 1e-10
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
    """Share of a residual's squares that a column explains beside a model.

    `span` are the centred orthonormal columns of the model; the residual is centred and
    orthogonal to them. Zero if there is nothing to explain it with.
    """
    squares, total, inside = float(column @ column), float(column.sum()), span.T @ column
    left = squares - total * total / column.size - float(inside @ inside)
    if not _FLAT * squares < left < np.inf:
        return 0.0
    share = float(residual @ column) ** 2 / (left * float(residual @ residual))
    return min(share, _MOST)
