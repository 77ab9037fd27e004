"""Centre and scale columns, with the means and deviations of the training rows.

Columns of zeros and ones are left alone: they are switches, and a product of two
switches should stay one. It sees matrices and names, no user input.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.data.table import is_binary
from dbrm.errors import InvalidDataError

__all__ = ["Scale", "learn_scaling", "standardise"]

Scale = Literal["standard"] | None


def learn_scaling(values: Matrix) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation (divisor n - 1) per column; 0 and 1 if binary."""
    moments = [(0.0, 1.0) if is_binary(column) else _moments(column) for column in values.T]
    return tuple(mean for mean, _ in moments), tuple(sd for _, sd in moments)


def standardise(
    values: Matrix, names: Sequence[str], means: Sequence[float], sds: Sequence[float]
) -> None:
    """Subtract the means and divide by the deviations, in place."""
    for name, column, mean, sd in zip(names, values.T, means, sds, strict=True):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            column -= mean
            column /= sd
        if not (np.isfinite(sd) and np.isfinite(column).all()):
            msg = (
                f"Column {name!r} cannot be standardised in double precision (mean {mean!r}, "
                f"standard deviation {sd!r}): its values are too large or too small. "
                "Change its unit, or use scale=None."
            )
            raise InvalidDataError(msg)


def _moments(column: Column) -> tuple[float, float]:
    # A power of two changes no digit, and keeps squares of 1e300 or 1e-300 in range.
    exponent = int(np.frexp(np.abs(column).max())[1])
    shrunk = np.ldexp(column, -exponent)
    with np.errstate(over="ignore"):
        mean, sd = np.ldexp([shrunk.mean(), shrunk.std(ddof=1)], exponent)
    return float(mean), float(sd)
