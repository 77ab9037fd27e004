"""Numbers inside features with few digits: readable, and near-equal ones become equal."""

from collections.abc import Callable
from math import log

import numpy as np

from dbrm.features.numbers import count_digits, short_numbers

__all__ = ["shortest"]

# What rounding may cost (nats): as many digits as that are enough, and fewer may cost more.
_LOSS, _MOST_LOSS = 0.25, 1.5


def shortest(
    value: float, share: Callable[[float], float], n_rows: int, *, zero: bool = True
) -> float:
    r"""Round a number to the digits that it is worth; to zero only if that is allowed.

    Among the numbers no longer than the first that costs at most a quarter nat, that of the least
    :math:`\text{cost} + d \log 10`, with :math:`d` digits.

    Parameters
    ----------
    share
        Share of the residual's squares that is explained with a number.
    """
    if value == 0.0 or not np.isfinite(value):
        return value
    best, found, least = np.log1p(-share(value)), value, np.inf
    trials = [number for number in short_numbers(value) if number != 0.0]
    for rounded in [0.0, *trials] if zero else trials:
        loss = 0.5 * n_rows * (np.log1p(-share(rounded)) - best)
        cost = loss + log(10.0) * count_digits(rounded)
        if loss <= _MOST_LOSS and cost < least:
            found, least = rounded, cost
        if loss <= _LOSS:
            break
    return found
