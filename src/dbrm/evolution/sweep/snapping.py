r"""Simple numbers inside a law: each is moved to the shortest one within its error.

The numbers have approximately a normal distribution around their estimates, with the inverse of
Gauss and Newton's information as covariance, the law's coefficient and intercept free. Once a
number is moved the others follow by their conditional means, and have their conditional covariance.
"""

from collections.abc import Callable
from math import log

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.features.numbers import count_digits, shortest_within

__all__ = ["snapped_numbers", "squares_left"]

# Least relative error of a number: rounding hides what is smaller.
_ROUNDING = 1e-11
# Shares of the errors within which short numbers are tried, and digits of one that is not short.
_SHARES, _MOST_DIGITS = (2.0, 1.0, 0.3, 0.1, 0.03), 12


def snapped_numbers(
    numbers: FloatArray,
    fixed: Mask,
    value: Callable[[FloatArray], Column],
    slopes: Callable[[FloatArray], Matrix],
    response: Column,
) -> FloatArray:
    """Short numbers in the place of those that are not fixed; the given ones if these fit worse.

    Of those within some shares of the errors the ones whose loss of fit and digits cost least.

    Parameters
    ----------
    value, slopes
        The law's column at some numbers, and its derivatives by them.
    """
    column = value(numbers)
    left, slope = squares_left(column, response)
    spread = np.column_stack([np.ones(column.size), column])
    basis, _ = np.linalg.qr(spread / np.maximum(np.linalg.norm(spread, axis=0), 1e-300))
    derivatives = slope * slopes(numbers)
    derivatives = derivatives - basis @ (basis.T @ derivatives)
    if not (np.isfinite(left) and np.all(np.isfinite(derivatives))):
        return numbers
    free = max(response.size - numbers.size - 2, 1)
    lengths = np.maximum(np.linalg.norm(derivatives, axis=0), 1e-150)
    unit = derivatives / lengths
    covariance = np.linalg.pinv(unit.T @ unit, hermitian=True) * left / free
    covariance /= np.outer(lengths, lengths)
    index = np.arange(numbers.size)
    covariance[index, index] += (_ROUNDING * numbers) ** 2
    covariance[fixed, :] = covariance[:, fixed] = 0.0
    least = 1e-20 * float(np.sum((response - response.mean()) ** 2))
    best, lowest = numbers, _MOST_DIGITS * log(10.0) * numbers.size
    for share in _SHARES:
        short = _shortened(numbers, share**2 * covariance, fixed)
        if not np.all(np.isfinite(short)):
            # Numbers that hardly matter have no errors that could be computed.
            continue
        after, _ = squares_left(value(short), response)
        loss = 0.5 * response.size * np.log(max(after, least) / max(left, least))
        cost = float(loss) + log(10.0) * sum(count_digits(number) for number in short.tolist())
        if cost < lowest:
            best, lowest = short, cost
    return best


def _shortened(numbers: FloatArray, covariance: Matrix, fixed: Mask) -> FloatArray:
    """Short numbers within their errors."""
    short = numbers.copy()
    # The surest first: they are the ones that are recognised.
    with np.errstate(all="ignore"):
        order = np.argsort(np.sqrt(np.diag(covariance)) / np.abs(numbers), kind="stable")
    for j in order:
        variance = covariance[j, j]
        if fixed[j] or not variance > 0.0:
            continue
        number = shortest_within(float(short[j]), float(np.sqrt(variance)))
        short += covariance[:, j] / variance * (number - short[j])
        short[j] = number
        covariance = covariance - np.outer(covariance[:, j], covariance[j]) / variance
    return short


def squares_left(column: Column, response: Column) -> tuple[float, float]:
    """Squares that a column beside an intercept leaves, and its coefficient."""
    if not np.all(np.isfinite(column)):
        return np.inf, 0.0
    centred, wanted = column - column.mean(), response - response.mean()
    squares = float(centred @ centred)
    slope = float(centred @ wanted) / squares if squares > 0.0 else 0.0
    rest = wanted - slope * centred
    return float(rest @ rest), slope
