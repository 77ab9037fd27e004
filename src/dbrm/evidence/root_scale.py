r"""The square root of a response whose effects and errors grow with it.

A Gaussian model of :math:`z = \sqrt{y + c}` says of the response itself
:math:`y = z^2 - c`, with the mean and the standard deviation

.. math:: E\,y = \mu^2 + \sigma^2 - c , \qquad \mathrm{sd}(y) \approx 2 \mu \sigma .

It sees responses, never columns.
"""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from dbrm.evidence.coefficient_priors.classical import KnownVariance
from dbrm.evidence.gaussian import GaussianEngine

__all__ = ["RootScale"]

# What is added where there are zeros: this share of the smallest other value (Anscombe 1948 for
# counts), and at least this share of the mean.
_OF_SMALLEST, _OF_MEAN = 0.375, 0.01
# A value below this share of the mean counts as a zero, whose root would be infinitely precise.
_ZERO = 1e-6
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

        The Jacobian of :math:`n` rows counts as that of :math:`k`, the power of the unit of the
        response in the evidence,

        .. math:: \frac{k}{n} \sum_i \log \frac{1}{2 \sqrt{y_i + c}} ,

        so that units do not matter: :math:`n - 1` where the prior of the intercept is flat (Box and
        Cox 1964, Sec. 3), :math:`n` under criteria such as BIC. A known variance has units of
        its own, and no root.
        """
        weights = np.ones(engine.n_rows) if engine.weights is None else engine.weights
        n, used = float(weights.sum()), weights > 0.0
        y = engine.response[used]
        if engine.offset is not None or n < _FEWEST_ROWS or not y.min() >= 0.0 or not y.any():
            return None
        extreme = not np.finfo(float).tiny < engine.shape.total < np.finfo(float).max
        if extreme or isinstance(engine.prior, KnownVariance):
            return None
        origin, mean = 0.0, float(np.average(y, weights=weights[used]))
        zeros = y <= _ZERO * mean
        if zeros.any():
            origin = max(_OF_SMALLEST * float(y[~zeros].min()), _OF_MEAN * mean)
        low, high = np.quantile(np.sqrt(y + origin), [0.05, 0.95])
        if high < _LEAST_BEND * low:
            return None
        root = np.sqrt(np.maximum(engine.response, 0.0) + origin)
        share = _power_of_unit(engine) / n
        log_jacobian = -share * float(weights[used] @ np.log(2.0 * root[used]))
        own = GaussianEngine(root, engine.prior, engine.weights, engine.always)
        return cls(own, origin, log_jacobian)


def _power_of_unit(engine: GaussianEngine) -> float:
    """The power with which the evidence falls when the response is multiplied by a number."""
    shape, nothing = engine.shape, np.zeros(1, dtype=np.int64)

    def null(total: float) -> float:
        own = replace(shape, total=total)
        return float(engine.prior.score_table(nothing, own).value(1.0, 0))

    return (null(1.0) - null(4.0)) / float(np.log(2.0))
