"""Intervals of the real line, for checks, messages and tests."""

from dataclasses import dataclass
from math import inf, isnan
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask
from dbrm.errors import InvalidSettingError

__all__ = ["REALS", "Interval"]

# Irregular on purpose: symmetric or integer points could hide a mistake.
_PROBES = np.array([-2.31, -1.17, -0.62, 0.13, 0.29, 0.71, 1.37, 2.93])


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of the real line.

    Parameters
    ----------
    low, high
        The end points; infinite ones allowed.
    low_closed, high_closed
        Whether the end point belongs to the interval.

    Examples
    --------
    >>> print(Interval(0.0, 1.0, low_closed=True))
    [0, 1)
    """

    low: float = -inf
    high: float = inf
    low_closed: bool = False
    high_closed: bool = False

    def __post_init__(self) -> None:
        if isnan(self.low) or isnan(self.high) or not self.low < self.high:
            msg = f"Interval needs low < high; got low={self.low!r}, high={self.high!r}."
            raise InvalidSettingError(msg)

    def contains(self, values: FloatArray) -> Mask:
        """Return for each value whether it lies inside; NaN never does."""
        above = values >= self.low if self.low_closed else values > self.low
        below = values <= self.high if self.high_closed else values < self.high
        return np.asarray(above & below, dtype=np.bool_)

    def probes(self) -> FloatArray:
        """Return a few distinct inner points."""
        if self.low == -inf and self.high == inf:
            return _PROBES.copy()
        if self.high == inf:
            return np.asarray(self.low + np.exp(_PROBES))
        if self.low == -inf:
            return np.asarray(self.high - np.exp(_PROBES))
        return np.asarray(self.low + (self.high - self.low) / (1.0 + np.exp(_PROBES)))

    def __str__(self) -> str:
        left = "[" if self.low_closed else "("
        right = "]" if self.high_closed else ")"
        return f"{left}{self.low:g}, {self.high:g}{right}"


# Includes the infinite numbers, so that overflows keep their value.
REALS = Interval(-inf, inf, low_closed=True, high_closed=True)
