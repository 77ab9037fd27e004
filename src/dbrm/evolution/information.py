r"""What a made feature must carry: variation in more than a handful of rows.

A function can turn a harmless column into a dummy of one row: ``erf(x)`` of lengths in
millimetres is one everywhere but at an outlier, and its coefficient, 1e11, is that row's
residual divided by rounding error. For a column with centred values :math:`d_i` and rows of
weight :math:`w_i` the effective number of rows is

.. math:: \frac{(\sum_i w_i d_i^2)^2}{\sum_i w_i d_i^4} ,

:math:`n` divided by the kurtosis: about :math:`k` for a dummy of :math:`k` rows. Bounded
functions must have more than a handful of them, and so must products in which a bounded function
or a two-valued column picks rows, unless the response has no more itself. What a bounded function
:math:`g` with fitted numbers inside adds to the other factors :math:`f` of a product, :math:`f g`
without its projection on :math:`f` and a constant, must have twice as many: of thousands of narrow
windows one holds two far rows with large responses, and it multiplies the next far row. Other
powers and products may have long tails, as the data have, and laws reach into them: they are
refused where all but a handful of rows have the same value to six digits, unless that is so of the
response, too. A periodic function
whose argument steps over more than half a wave from row to row, at a handful of rows or more, is a
table of random numbers there, and one of thousands of them fits whatever is left: it is refused.
Covariates are the user's own and may be as they are. It sees features and columns, no models.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm._typing import Column
from dbrm.evidence import AbstractEngine, GaussianEngine
from dbrm.evolution.function_shapes import Kind, shape_of
from dbrm.features import (
    ColumnCache,
    Covariate,
    Feature,
    Modification,
    Product,
    Projection,
    walk,
)
from dbrm.status import Status

__all__ = ["InformationRule", "effective_rows", "has_long_tail"]

# Fewest effective rows of a made feature; of few rows at most this share.
_HANDFUL, _SHARE = 8.0, 0.25
# Fewest of what a bounded function with fitted numbers adds to the other factors of a product; of a
# response that has few itself at most this share.
_ADDED, _OF_RESPONSE = 16.0, 0.5
# The same for a response that has no more than a handful itself.
_TAIL_HANDFUL = 3.0
# Deviations from the median below this share of the largest one are none.
_SAME = 1e-6
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
    response_is_a_dummy, response_has_a_tail
        Whether the response itself varies in a handful of rows only; whether it has only a handful
        of effective rows.
    response_rows
        How many it has.
    """

    weights: Column
    response_is_a_dummy: bool = False
    response_has_a_tail: bool = False
    response_rows: float = np.inf

    @classmethod
    def of(cls, engine: AbstractEngine, *, sampled: bool = False) -> Self:
        """The rule for a response; rows of a sample count as one each."""
        seen = engine.likelihood()
        weights = np.ones_like(seen.total) if sampled else seen.total
        rule = cls(weights)
        # Beyond the identity link a long tail of the response is none of the predictor.
        exact = isinstance(engine, GaussianEngine)
        return cls(
            weights,
            response_is_a_dummy=exact and rule.is_a_dummy(seen.mean),
            response_has_a_tail=exact and has_long_tail(seen.mean, weights),
            response_rows=effective_rows(seen.mean, weights) if exact else np.inf,
        )

    @property
    def least(self) -> float:
        """Fewest effective rows."""
        handful = _TAIL_HANDFUL if self.response_has_a_tail else _HANDFUL
        return min(handful, _SHARE * float(np.sum(self.weights)))

    @property
    def least_added(self) -> float:
        """Fewest effective rows of what a bounded function adds to the other factors."""
        most = min(_ADDED, _SHARE * float(np.sum(self.weights)))
        return min(most, _OF_RESPONSE * self.response_rows)

    def is_a_dummy(self, column: Column) -> bool:
        """Whether all but a handful of rows have the same value."""
        # A dummy of k rows has about k effective rows, and the median takes time.
        if effective_rows(column, self.weights) > 3.0 * self.least:
            return False
        apart = np.abs(column - _median(column))
        return float(self.weights @ (apart > _SAME * np.max(apart))) < self.least

    def status(self, feature: Feature, columns: ColumnCache) -> Status:
        """Judge a feature whose sub-expressions have these finite columns."""
        for node in walk(feature):
            if node.transform is None or not node.transform.bounded:
                continue
            column = columns[node.text]
            if self._aliased(node, columns):
                return Status.ALIASED
            if float(np.ptp(column)) < _SATURATED * node.transform.extent:
                return Status.SATURATED
            if effective_rows(column, self.weights) < self.least:
                return Status.FEW_ROWS
        if (
            isinstance(feature, Product)
            and not self.response_has_a_tail
            and self._picks_few_rows(feature, columns)
        ):
            return Status.FEW_ROWS
        made = not isinstance(feature, Covariate)
        if made and not self.response_is_a_dummy and self.is_a_dummy(columns[feature.text]):
            return Status.FEW_ROWS
        return Status.OK

    def _picks_few_rows(self, product: Product, columns: ColumnCache) -> bool:
        """Whether a bounded function or a two-valued column picks a handful of rows."""
        bounded = [f for f in product.children if f.transform is not None and f.transform.bounded]
        if not bounded and not any(
            _two_valued(columns[f.text]) for f in product.children if f.transform is None
        ):
            return False
        column = columns[product.text]
        if effective_rows(column, self.weights) < self.least:
            return True
        windows = [f for f in bounded if any(isinstance(node, Projection) for node in walk(f))]
        others = [columns[f.text] for f in product.children if f not in windows]
        if not windows or not others:
            return False
        added = self._freed(column, np.prod(others, axis=0))
        return effective_rows(added, self.weights) < self.least_added

    def _freed(self, column: Column, other: Column) -> Column:
        """A column without what another one and a constant explain."""
        with np.errstate(all="ignore"):
            column, other = column / np.max(np.abs(column)), other / np.max(np.abs(other))
            total = float(np.sum(self.weights))
            column = column - float(self.weights @ column) / total
            other = other - float(self.weights @ other) / total
            slope = float(self.weights @ (column * other)) / float(self.weights @ (other * other))
            return column - (slope if np.isfinite(slope) else 0.0) * other

    def _aliased(self, node: Feature, columns: ColumnCache) -> bool:
        """Whether a periodic function steps over half a wave at a handful of rows or more."""
        assert node.transform is not None
        shape = shape_of(node.transform)
        if shape is None or shape.kind is not Kind.WAVE:
            return False
        assert isinstance(node, Modification | Projection)
        argument = node.argument(columns)
        half = np.pi / shape.frequency
        # Few half waves in the whole range cannot be stepped over.
        if float(np.ptp(argument)) < self.least * half:
            return False
        steps = np.diff(np.sort(argument))
        return bool(np.count_nonzero(steps > half) >= self.least)


def has_long_tail(response: Column, weights: Column | None = None) -> bool:
    """Whether a response has only a handful of effective rows."""
    rule = InformationRule(np.ones_like(response) if weights is None else weights)
    return effective_rows(response, rule.weights) < rule.least


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


def _median(column: Column) -> float:
    """The median of finite numbers, without the checks of NumPy's, which take longer."""
    low, high = (column.size - 1) // 2, column.size // 2
    parted = np.partition(column, (low, high))
    return 0.5 * float(parted[low]) + 0.5 * float(parted[high])


def _two_valued(column: Column) -> bool:
    low, high = column.min(), column.max()
    return bool(np.all((column == low) | (column == high)))
