r"""Which covariates are offered on the log scale: positive ones with a long upper tail.

A column qualifies if all training values are positive, ten or more of them are different, their
skewness is at least `LARGE`, and their logarithms are less skewed. Neither depends on the unit.
"""

import numpy as np

from dbrm._typing import Column

__all__ = ["find_log_floor"]

# Skewness, the third standardised moment; that of an exponential distribution is 2.
LARGE = 1.0
_FEWEST_VALUES = 10


def find_log_floor(values: Column) -> float | None:
    """Return the smallest value of a column that qualifies, None for any other."""
    if values.size == 0 or not values.min() > 0.0 or np.unique(values).size < _FEWEST_VALUES:
        return None
    skewness = _skewness(values / values.max())
    if skewness < LARGE or abs(_skewness(np.log(values))) >= skewness:
        return None
    return float(values.min())


def _skewness(values: Column) -> float:
    centred = values - values.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean((centred / spread) ** 3)) if spread > 0.0 else 0.0
