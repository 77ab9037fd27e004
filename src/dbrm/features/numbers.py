"""Numbers inside features: how long they are, and which short one is as good.

A weight such as 0.49998 with a standard error of 0.0001 may as well be a half.
"""

from collections.abc import Iterator
from math import ceil, floor, isfinite, log, log10, pi

__all__ = ["count_digits", "short_numbers", "shortest_within"]

# A multiple of pi or of a sixth counts as so many digits; both up to this size.
_AS_DIGITS, _LARGEST = 2, 30.0
_PARTS_OF_PI, _PARTS = (1, 2, 3, 4, 6), (3, 6)
# Relative distance of two numbers that are equal up to rounding.
_EQUAL = 1e-12
_MOST_DIGITS = 12
# Furthest that a number is moved, in standard errors.
_FURTHEST = 2.0


def count_digits(value: float) -> int:
    r"""Significant decimal digits of a number: none of zero and one, two of :math:`\pi/2`.

    At most two for multiples of thirds and sixths and of :math:`\pi` and its simple parts.
    """
    if value in (0.0, 1.0, -1.0):
        return 0
    mantissa = f"{abs(value):.{_MOST_DIGITS - 1}e}".partition("e")[0].replace(".", "").rstrip("0")
    if len(mantissa) > _AS_DIGITS and _is_simple(abs(value)):
        return _AS_DIGITS
    return len(mantissa)


def short_numbers(value: float) -> Iterator[float]:
    """Numbers near a value, shortest first: rounded ones, and simple parts of one and of pi."""
    first = -floor(log10(abs(value)))
    yield from (round(value, places) for places in range(first, first + _AS_DIGITS))
    if abs(value) <= _LARGEST:
        for unit in (*(pi / part for part in _PARTS_OF_PI), *(1.0 / part for part in _PARTS)):
            if (count := round(value / unit)) != 0:
                yield count * unit
    yield from (round(value, places) for places in range(first + _AS_DIGITS, first + _MOST_DIGITS))


def shortest_within(value: float, spread: float) -> float:
    r"""The number :math:`c` near a value :math:`v` that is worth its digits.

    It minimises :math:`\frac12 (c - v)^2 / s^2 + d(c) \log 10`, with the standard error :math:`s`
    of the value and the digits :math:`d` of the number, within two standard errors.
    """
    if value == 0.0 or not isfinite(value) or not spread > 0.0:
        return value
    best, least = value, ceil(_FURTHEST**2 / 2.0) + _MOST_DIGITS * log(10.0)
    for number in short_numbers(value):
        distance = abs(number - value) / spread
        cost = 0.5 * distance**2 + count_digits(number) * log(10.0)
        if number != 0.0 and distance <= _FURTHEST and cost < least:
            best, least = number, cost
    return best


def _is_simple(value: float) -> bool:
    if value > _LARGEST:
        return False
    units = (*(pi / part for part in _PARTS_OF_PI), *(1.0 / part for part in _PARTS))
    return any(
        round(value / unit) > 0 and abs(value - round(value / unit) * unit) <= _EQUAL * value
        for unit in units
    )
