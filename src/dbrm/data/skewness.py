r"""Which covariates are offered on the log scale: those above zero with a long upper tail.

A column qualifies if no training value is negative, ten or more positive ones are different, its
skewness is at least `LARGE`, and that of its logarithms is smaller. If some values are zero,
a shift comes first, :math:`\log(x + s)` with :math:`s` the smallest positive value, to two digits:
one for counts. None of this depends on the unit.
"""

from typing import NamedTuple

import numpy as np

from dbrm._typing import Column

__all__ = ["LogScale", "find_log_scale"]

# Skewness, the third standardised moment; that of an exponential distribution is 2.
LARGE = 1.0
_FEWEST_VALUES = 10


class LogScale(NamedTuple):
    r"""The column :math:`\log(\max(x, a) + s)` of a covariate, with `floor` a and `shift` s."""

    floor: float
    shift: float = 0.0


def find_log_scale(values: Column) -> LogScale | None:
    """Return the smallest value of a column that qualifies, and its shift; None for others."""
    if values.size == 0 or values.min() < 0.0:
        return None
    positive = np.unique(values[values > 0.0])
    if positive.size < _FEWEST_VALUES:
        return None
    smallest = float(values.min())
    shift = float(f"{positive[0]:.2g}") if smallest == 0.0 else 0.0
    skewness = _skewness(values / values.max())
    if skewness < LARGE or abs(_skewness(np.log(values + shift))) >= skewness:
        return None
    return LogScale(smallest, shift)


def _skewness(values: Column) -> float:
    centred = values - values.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean((centred / spread) ** 3)) if spread > 0.0 else 0.0
