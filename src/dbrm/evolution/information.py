r"""What a made feature must carry: variation in more than a handful of rows.

A function can turn a harmless column into a dummy of one row: ``erf(x)`` of lengths in
millimetres is one everywhere but at an outlier, and its coefficient, 1e11, is that row's
residual divided by rounding error. For a column with centred values :math:`d_i` and rows of
weight :math:`w_i` the effective number of rows is

.. math:: \frac{(\sum_i w_i d_i^2)^2}{\sum_i w_i d_i^4} ,

:math:`n` divided by the kurtosis: about :math:`k` for a dummy of :math:`k` rows. Covariates
are the user's own and may be as they are; so may what is made of them by products and
unbounded functions, as far as a factor, or the response, is already that concentrated: laws
reach into the tails of the data. It sees features and columns, no models.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm._typing import Column
from dbrm.evidence import AbstractEngine, GaussianEngine
from dbrm.features import ColumnCache, Covariate, Feature, Standardized, walk
from dbrm.status import Status

__all__ = ["InformationRule", "effective_rows"]

# Fewest effective rows of a made feature; of few rows at most this share.
_HANDFUL, _SHARE = 3.0, 0.25
# Least range of a bounded function's values, as a share of the whole range of the function.
_SATURATED = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class InformationRule:
    """Refuses features that carry information from a handful of rows only.

    Parameters
    ----------
    weights
        Number of observations that each row stands for.
    response_concentrated
        Whether the response itself varies in a handful of rows.
    """

    weights: Column
    response_concentrated: bool = False

    @classmethod
    def of(cls, engine: AbstractEngine, *, sampled: bool = False) -> Self:
        """The rule for a response; rows of a sample count as one each."""
        seen = engine.likelihood()
        weights = np.ones_like(seen.total) if sampled else seen.total
        rule = cls(weights)
        # Beyond the identity link a long tail of the response is none of the predictor.
        exact = isinstance(engine, GaussianEngine)
        return cls(weights, exact and rule.is_concentrated(seen.mean))

    @property
    def least(self) -> float:
        """Fewest effective rows."""
        return min(_HANDFUL, _SHARE * float(np.sum(self.weights)))

    def is_concentrated(self, column: Column) -> bool:
        """Whether a column varies in a handful of rows only."""
        return effective_rows(column, self.weights) < self.least

    def status(self, feature: Feature, columns: ColumnCache) -> Status:
        """Judge a feature whose sub-expressions have these finite columns."""
        concentrated: dict[str, bool] = {}
        for node in walk(feature):
            column = columns[node.text]
            concentrated[node.text] = self.is_concentrated(column)
            if isinstance(node, Covariate | Standardized):
                continue
            extent = np.inf if node.transform is None else node.transform.extent
            bounded = extent < np.inf
            if bounded and float(np.ptp(column)) < _SATURATED * extent:
                return Status.SATURATED
            inherited = self.response_concentrated or any(
                concentrated[child.text] for child in node.children
            )
            if concentrated[node.text] and (bounded or not inherited):
                return Status.FEW_ROWS
        return Status.OK


def effective_rows(column: Column, weights: Column) -> float:
    """Return the effective number of rows among which a column varies; 0 for a constant."""
    with np.errstate(all="ignore"):
        total = float(np.sum(weights))
        largest = float(np.max(np.abs(column)))
        relative = column / largest
        squares = (relative - float(weights @ relative) / total) ** 2
        peak = float(np.max(squares))
        if not 0.0 < peak < np.inf:
            return 0.0
        # Scaled again: fourth powers of tiny deviations would vanish.
        squares /= peak
        weighted = weights * squares
        return float(np.sum(weighted)) ** 2 / float(weighted @ squares)
