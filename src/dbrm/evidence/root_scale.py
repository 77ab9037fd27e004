r"""The square root of a response whose effects and errors grow with it.

A Gaussian model of :math:`z = \sqrt{y + c}` says of the response itself
:math:`y = z^2 - c`, with the mean and the standard deviation

.. math:: E\,y = \mu^2 + \sigma^2 - c , \qquad \mathrm{sd}(y) \approx 2 \mu \sigma .

It sees responses, never columns.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm.evidence.gaussian import GaussianEngine

__all__ = ["RootScale"]

# What is added where there are zeros: this share of the smallest other value (Anscombe 1948 for
# counts), and at least this share of the mean.
_OF_SMALLEST, _OF_MEAN = 0.375, 0.01
# A root that is nearly straight says nothing new: its slopes at the 5 % and 95 % quantiles differ
# by less than this factor.
_LEAST_BEND = 1.5
_FEWEST_ROWS = 20


@final
@dataclass(frozen=True, eq=False)
class RootScale:
    r"""A Gaussian engine for the root of a response.

    Parameters
    ----------
    engine
        With the response :math:`\sqrt{y + c}`.
    origin
        :math:`c`.
    log_jacobian
        What makes its log evidences those of :math:`y`.
    """

    engine: GaussianEngine
    origin: float
    log_jacobian: float

    @classmethod
    def of(cls, engine: GaussianEngine) -> Self | None:
        r"""The root of this engine's response; none where it has none, or a nearly straight one.

        With a flat prior of the intercept, whose unit is that of the response, the Jacobian of
        :math:`n` rows counts as that of :math:`n - 1` (Box and Cox 1964, Sec. 3),

        .. math:: \frac{n - 1}{n} \sum_i \log \frac{1}{2 \sqrt{y_i + c}} .
        """
        y = engine.response
        weights = np.ones(y.size) if engine.weights is None else engine.weights
        n = float(weights.sum())
        if engine.offset is not None or n < _FEWEST_ROWS or not y.min() >= 0.0 or not y.any():
            return None
        origin = 0.0
        if y.min() == 0.0:
            mean = float(np.average(y, weights=weights))
            origin = max(_OF_SMALLEST * float(y[y > 0.0].min()), _OF_MEAN * mean)
        root = np.sqrt(y + origin)
        low, high = np.quantile(root, [0.05, 0.95])
        if high < _LEAST_BEND * low:
            return None
        log_jacobian = -(1.0 - 1.0 / n) * float(weights @ np.log(2.0 * root))
        own = GaussianEngine(root, engine.prior, engine.weights, engine.always)
        return cls(own, origin, log_jacobian)
