r"""Gaussian evidence as a function of model size and residual fraction alone.

For every coefficient prior of this package the Gaussian log evidence of a model
with :math:`p` columns depends on the data only through the residual fraction
:math:`f = \mathrm{RSS}/\mathrm{TSS} = 1 - R^2`. A `ScoreTable` writes it as

.. math:: \log p(y \mid M) = c_p + a_p \log f + b f + h_p(-\log f),

with :math:`h_p` a Chebyshev series (mixtures of g-priors; empty otherwise), so
that all priors cost the same inside the compiled loops.
"""

from dataclasses import dataclass
from math import log
from typing import final

import numpy as np

from dbrm._kernels.enumeration import score_one
from dbrm._typing import FloatArray, Matrix

__all__ = ["ScoreTable", "closed_form_table"]


@final
@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Coefficients of the score, one row for each number of columns ``0 .. s``.

    ``constant`` is ``-inf`` where the prior is undefined for a model of that size.
    ``low`` and ``high`` bound :math:`-\\log f`, the Chebyshev argument.
    """

    constant: FloatArray
    log_slope: FloatArray
    linear: float
    chebyshev: Matrix
    low: float
    high: float

    def value(self, fraction: float, row: int) -> float:
        """Score of one model; the plain twin of the compiled `score_one`."""
        if not np.isfinite(self.constant[row]):
            return -np.inf
        return float(score_one.py_func(fraction, row, *self.arguments))

    @property
    def arguments(self) -> tuple[FloatArray, FloatArray, float, Matrix, float, float]:
        """The arrays in the order in which the kernels take them."""
        return (
            self.constant,
            self.log_slope,
            self.linear,
            self.chebyshev,
            self.low,
            self.high,
        )


def closed_form_table(
    constant: FloatArray, log_slope: FloatArray, linear: float, floor: float
) -> ScoreTable:
    """A table without the Chebyshev part."""
    empty = np.zeros((constant.size, 0))
    return ScoreTable(constant, log_slope, linear, empty, 0.0, -log(floor))
