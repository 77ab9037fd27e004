"""Numbers inside features: how long they are, and which short one is as good.

A weight such as 0.49998 with a standard error of 0.0001 may as well be a half.
"""

from collections.abc import Iterator
from math import ceil, floor, isfinite, log, log10, pi

import numpy as np

from dbrm._typing import FloatArray

__all__ = [
    "count_digits",
    "is_recognised",
    "numbers_of_a_decade",
    "short_numbers",
    "shortest_within",
    "spell_short_number",
]

# Simple parts: digits of one of them, and of a multiple up to the largest.
_PARTS = {
    **{1.0 / part: (2, 2) for part in (3, 6)},
    pi: (2, 2),
    **{pi / part: (2, 3) for part in (2, 3, 4, 6)},
}
_LARGEST_MULTIPLE = 9
# Relative distance of two numbers that are equal up to rounding.
_EQUAL = 1e-12
_MOST_DIGITS = 12
# And of one that is spelt.
_SPELT = 1e-9
# Furthest that a number is moved, in standard errors.
_FURTHEST = 2.0
# Largest probability that a random number is taken for a short one, and for one times or over pi.
_CHANCE, _CHANCE_OF_PI = 1.0 / 8.0, 1.0 / 12.0


def count_digits(value: float) -> int:
    r"""Significant decimal digits of a number: none of zero and one, two of :math:`\pi/2`.

    At most two for up to nine thirds, sixths or :math:`\pi`, three for :math:`3\pi/2` and its like.
    """
    if value in (0.0, 1.0, -1.0):
        return 0
    mantissa = f"{abs(value):.{_MOST_DIGITS - 1}e}".partition("e")[0].replace(".", "").rstrip("0")
    parts = (
        digits[count > 1]
        for part, digits in _PARTS.items()
        if 0 < (count := round(abs(value) / part)) <= _LARGEST_MULTIPLE
        and abs(abs(value) - count * part) <= _EQUAL * abs(value)
    )
    return min(len(mantissa), *parts, _MOST_DIGITS)


def short_numbers(value: float) -> Iterator[float]:
    """Numbers near a value, shortest first: rounded ones, and simple parts of one and of pi."""
    first = -floor(log10(abs(value)))
    yield from (round(value, places) for places in range(first, first + 2))
    for part in _PARTS:
        if 0 < abs(count := round(value / part)) <= _LARGEST_MULTIPLE:
            yield count * part
    yield from (round(value, places) for places in range(first + 2, first + _MOST_DIGITS))


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


def numbers_of_a_decade() -> tuple[FloatArray, FloatArray]:
    r"""Short numbers from one to ten, whatever their power of ten, and their log probabilities.

    Those of one or two digits, thirds and sixths, and these times or over :math:`\pi`, which counts
    as one digit more. Their probabilities fall by ten with every digit, of which one has none.
    """
    tenths = [count / 10 for count in range(10, 100)]
    parts = [count / part for part in (3, 6) for count in range(1, _LARGEST_MULTIPLE + 1)]
    digits: dict[float, int] = {}
    for number in (*tenths, *parts):
        own = count_digits(number)
        for factor, cost in ((1.0, own), (pi, max(own, 1) + 1), (1.0 / pi, max(own, 1) + 1)):
            value = _mantissa(number * factor)
            if not any(abs(value - known) <= _EQUAL * known for known in digits):
                digits[value] = cost
    numbers = np.array(sorted(digits))
    log_weights = -log(10.0) * np.array([digits[number] for number in numbers.tolist()])
    return numbers, log_weights - np.logaddexp.reduce(log_weights)


def spell_short_number(value: float) -> str:
    """One of these numbers as text, such as ``0.5``, ``2*pi``, ``5/6`` or ``1/(6*pi)``."""
    spelt = []
    for factor, over, under in ((1.0, [], []), (pi, ["pi"], []), (1.0 / pi, [], ["pi"])):
        for part in (1, 3, 6):
            number = abs(value) / factor * part
            short = f"{float(f'{number:.1e}'):g}"
            if abs(number - float(short)) <= _SPELT * number:
                top = over if over and short == "1" else [short, *over]
                bottom = under if part == 1 else [str(part), *under]
                divisor = f"({'*'.join(bottom)})" if len(bottom) > 1 else "".join(bottom)
                spelt.append("/".join(filter(None, ("*".join(top), divisor))))
    return ("-" if value < 0.0 else "") + min(spelt, key=len) if spelt else f"{value:.6g}"


def _mantissa(value: float) -> float:
    """The number times the power of ten that brings it to at least one and below ten."""
    return float(value / 10.0 ** floor(log10(value) + _EQUAL))


def is_recognised(value: float, error: float) -> bool:
    r"""Whether an estimate is a short number, or one times or over pi, and hardly by chance.

    A number :math:`c` of :math:`d` digits lies within two standard errors :math:`s` of the estimate
    :math:`v`. Of such numbers there are :math:`N_d = 9 \cdot 10^{d - 1}` between a number and ten
    times it, and one where :math:`d = 0`; a value that has nothing to do with them comes as near to
    one with a probability of about

    .. math:: \frac{4 s N_d}{\lvert v \rvert \log 10} .
    """
    if value == 0.0 or not (isfinite(value) and isfinite(error)):
        return False
    spread = max(error, _EQUAL * abs(value))
    families = ((1.0, _CHANCE), (pi, _CHANCE_OF_PI), (1.0 / pi, _CHANCE_OF_PI))
    for factor, limit in families:
        digits = count_digits(shortest_within(value * factor, spread * factor))
        among = 9.0 * 10.0 ** (digits - 1) if digits else 1.0
        if 4.0 * spread * among <= limit * abs(value) * log(10.0):
            return True
    return False
