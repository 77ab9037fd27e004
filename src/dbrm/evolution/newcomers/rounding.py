"""Numbers inside features with few digits: readable, and near-equal ones become equal."""

from collections.abc import Callable
from math import floor, log10

import numpy as np

__all__ = ["shortest"]

# What rounding may cost (nats).
_LOSS = 0.25
_MOST_DIGITS = 12


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
