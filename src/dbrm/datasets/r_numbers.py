"""How R reads and prints decimal numbers, where the paper's preprocessing depends on it.

Some columns of the paper's data went through text once: read by R, printed with seven
digits, read again. Repeating that exactly needs R's own rounding in both directions.
"""

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["print_and_read"]

# Bits of the extended precision in which R (on x86) divides by the power of ten.
EXTENDED = 64


def print_and_read(column: Sequence[str]) -> list[float]:
    """Round like R's ``format``: as many decimals as the neediest entry's seven digits."""
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
