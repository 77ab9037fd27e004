r"""The predictive distribution of classes, mixed over models.

.. math:: P(y = k | x) = \sum_M p(M | y) \int P(y = k | x, \theta, M)\, p(\theta | y, M)\, d\theta

with a normal posterior of the parameters :math:`\theta` within each model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence import ClassFamily, ModelFit

__all__ = ["ClassMixture"]


@final
@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Weights of models by rows, and the fits and columns of the models at the rows.

    Parameters
    ----------
    designs
        Columns of each model at the rows, the constant first.
    integrate
        Whether to integrate over the parameters or to use their mode.
    """

    family: ClassFamily
    weights: Matrix
    fits: Sequence[ModelFit]
    designs: Sequence[Matrix]
    offset: Column
    integrate: bool

    @cached_property
    def probabilities(self) -> Matrix:
        """Probability of each class (columns) for each row; no number where no model is defined."""
        family = self.family
        average = family.mean_probabilities if self.integrate else family.probabilities
        first = self.fits[0].joint
        assert first is not None
        total = np.zeros((self.offset.size, family.n_classes(first)))
        for weight, fit, design in zip(self.weights, self.fits, self.designs, strict=True):
            assert fit.joint is not None
            used = np.flatnonzero(~(weight == 0))
            found = average(fit.joint, design[used, 1:], self.offset[used])
            total[used] += weight[used, None] * found
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def most_probable(self) -> Column:
        """Number of the most probable class of each row."""
        found = np.argmax(np.nan_to_num(self.probabilities), axis=1).astype(np.float64)
        return np.where(np.isnan(self.probabilities[:, 0]), np.nan, found)

    def mean(self) -> Column:
        """Mean number of the class, from zero; without order the chance of any but the first."""
        if self.family.ordered:
            return np.asarray(self.probabilities @ np.arange(self.probabilities.shape[1]))
        return 1.0 - self.probabilities[:, 0]

    def standard_deviation(self) -> Column:
        """Standard deviation of the number of the class."""
        self._require_order("standard deviation")
        numbers = np.arange(self.probabilities.shape[1])
        second = self.probabilities @ numbers**2
        return np.asarray(np.sqrt(np.maximum(second - self.mean() ** 2, 0.0)))

    def cdf(self, value: Column) -> Column:
        """Probability of a class up to the number given for each row."""
        self._require_order("distribution function")
        cumulative = np.column_stack([np.zeros(value.size), np.cumsum(self.probabilities, axis=1)])
        place = np.clip(np.floor(value) + 1, 0, cumulative.shape[1] - 1).astype(np.int64)
        return np.asarray(cumulative[np.arange(value.size), place])

    def quantile(self, level: float) -> Column:
        """Number of the first class up to which the probability reaches the level."""
        self._require_order("quantiles")
        cumulative = np.cumsum(self.probabilities, axis=1)
        found = np.argmax(cumulative >= min(level, 1.0 - 1e-12), axis=1).astype(np.float64)
        return np.where(np.isnan(cumulative[:, 0]), np.nan, found)

    def sample(self, rng: np.random.Generator, draws: int) -> Matrix:
        """Draws of the number of the class, one row per draw."""
        edges = np.cumsum(self.probabilities, axis=1)[:, :-1]
        uniform = rng.random((draws, self.offset.size))
        found = (uniform[:, :, None] >= edges[None]).sum(axis=2).astype(np.float64)
        return np.where(np.isnan(self.probabilities[:, 0]), np.nan, found)

    def _require_order(self, what: str) -> None:
        if not self.family.ordered:
            msg = (
                f"Classes of family={self.family.name!r} have no order, and no {what}. Use "
                "predict_proba, or family='ordinal' if they have."
            )
            raise InvalidSettingError(msg)
