"""How R prints, reads and draws numbers, where the paper's data depend on it.

Some columns of the paper's data went through text once: read by R, printed with seven
digits, read again. Repeating that exactly needs R's own rounding in both directions. The
rows of Example 7 were drawn by R before version 3.6, which seeds the Mersenne Twister by a
linear congruential generator and turns a uniform number into an index by rounding down.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dbrm._typing import IntArray

__all__ = ["print_and_read", "r_sample"]

# Bits of the extended precision in which R (on x86) divides by the power of ten.
EXTENDED = 64

MULTIPLIER = 69069
MODULUS = 2**32
WARM_UP = 50
TWISTER_WORDS = 624
# 1 / (2^32 - 1), the constant with which R scales the twister's words.
TO_UNIT = 2.3283064365386963e-10


def print_and_read(column: Sequence[str]) -> list[float]:
    """Round like R's ``format``: the decimals that seven digits of any entry need, for all."""
    decimals = max(_decimals_of_seven_digits(float(text)) for text in column)
    return [
        # What is printed in full comes back as it was.
        float(f"{_read(text):.{decimals}f}") if _decimals(text) > decimals else float(text)
        for text in column
    ]


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _decimals_of_seven_digits(value: float) -> int:
    mantissa, exponent = f"{value:.6e}".split("e")
    return max(0, _decimals(mantissa.rstrip("0")) - int(exponent))


def _read(text: str) -> float:
    """Read a positive decimal, rounding to extended precision first and to a double second.

    The result may be the neighbour of the nearest double: R reads 5.2563415 as slightly
    less, and so prints 5.256341.
    """
    exact = Fraction(text)
    shift = EXTENDED - 1 - exact.numerator.bit_length() + exact.denominator.bit_length()
    if exact * 2**shift < 2 ** (EXTENDED - 1):
        shift += 1
    return float(Fraction(round(exact * 2**shift), 2**shift))


def r_sample(n: int, size: int, *, seed: int) -> IntArray:
    """Draw ``set.seed(seed); sample(n, size)`` of R < 3.6, counted from 0."""
    twister = _seed_twister(seed)
    pool = np.arange(n)
    drawn = np.empty(size, dtype=np.int64)
    for turn, remaining in enumerate(range(n, n - size, -1)):
        position = int(remaining * (int(twister.random_raw()) * TO_UNIT))
        drawn[turn] = pool[position]
        pool[position] = pool[remaining - 1]
    return drawn


def _seed_twister(seed: int) -> np.random.MT19937:
    word, words = seed % MODULUS, []
    for _ in range(WARM_UP + 1 + TWISTER_WORDS):
        word = (MULTIPLIER * word + 1) % MODULUS
        words.append(word)
    # The first word after the warm-up is the position, which R overwrites with "used up".
    key = np.array(words[WARM_UP + 1 :], dtype=np.uint32)
    twister = np.random.MT19937()
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": key, "pos": TWISTER_WORDS},
    }
    return twister
