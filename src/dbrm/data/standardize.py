"""Centre and scale columns: by training means and deviations, to unit length, or for reading.

Columns are shrunk by a power of two or by their largest value before anything is squared, so
that 1e300 and 1e-300 are harmless. It sees numbers, no user input.
"""

from collections.abc import Sequence
from math import isfinite, nan, sqrt
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, Matrix
from dbrm.data.table import is_binary
from dbrm.errors import InvalidDataError

__all__ = ["Scale", "apply_scaling", "learn_scaling", "moments", "to_unit_length"]

Scale = Literal["standard"] | None
Floats = TypeVar("Floats", bound=npt.NDArray[np.floating[Any]])


def moments(column: Column, *, ddof: int = 0, exact: bool = False) -> tuple[float, float]:
    """Return mean and standard deviation (divisor n - ddof); NaN or infinite if they overflow.

    With `exact` the column is shrunk by a power of two, which changes no digit, else by its
    largest absolute value. The two differ in the last bit, and results must not.
    """
    with np.errstate(all="ignore"):
        largest = float(np.max(np.abs(column)))
        unit = float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1)) if exact else largest
        relative = column / unit
        return float(np.mean(relative)) * unit, float(np.std(relative, ddof=ddof)) * unit


def learn_scaling(values: Matrix) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation (divisor n - 1) per column; 0 and 1 if binary.

    Columns of zeros and ones are left alone, so that products of indicators stay indicators.
    """
    pairs = [
        (0.0, 1.0) if is_binary(column) else moments(column, ddof=1, exact=True)
        for column in values.T
    ]
    return tuple(mean for mean, _ in pairs), tuple(sd for _, sd in pairs)


def apply_scaling(
    values: Matrix, names: Sequence[str], means: Sequence[float], sds: Sequence[float]
) -> None:
    """Subtract the means and divide by the deviations, in place."""
    for name, column, mean, sd in zip(names, values.T, means, sds, strict=True):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            column -= mean
            column /= sd
        if not (isfinite(sd) and np.isfinite(column).all()):
            msg = (
                f"Column {name!r} cannot be standardised in double precision (mean {mean!r}, "
                f"standard deviation {sd!r}): its values are too large or too small. "
                "Change its unit, or use scale=None."
            )
            raise InvalidDataError(msg)


def to_unit_length(
    columns: Floats, *, smallest: float = 0.0, fill: float = nan, in_place: bool = False
) -> Floats:
    """Centre columns and scale them to unit length.

    Parameters
    ----------
    columns
        Rows by columns, of any size, in single or double precision; changed if `in_place`.
    smallest
        A column is constant if its standard deviation is at most this share of its largest
        absolute value.
    fill
        What constant columns, and columns that are not finite, become.
    """
    with np.errstate(all="ignore"):
        largest = np.maximum(np.max(columns, axis=0), -np.min(columns, axis=0))
        scale = np.where(largest > 0.0, largest, nan)
        unit: Floats = np.divide(columns, scale, out=columns if in_place else None)
        unit -= unit.mean(axis=0)
        length = np.sqrt(np.einsum("nk,nk->k", unit, unit))
        varies = length > smallest * sqrt(len(columns))
        np.divide(unit, np.where(varies, length, nan), out=unit)
    unit[:, ~varies] = fill
    return unit
