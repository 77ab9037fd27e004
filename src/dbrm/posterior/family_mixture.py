r"""The predictive law of a generalised linear model, mixed over models and coefficients.

Within a model the linear predictor of a new row is about normal,
:math:`\eta \sim N(x'\hat\beta, x'Cx)`. Integrals over it use Gauss-Hermite nodes
:math:`z_q` with weights :math:`\omega_q`:

.. math::
    p(y^*|y) = \sum_M p(M|y) \sum_q \omega_q\, f\bigl(y^* \mid h^{-1}(x'\hat\beta + s z_q)\bigr).

The plug-in version, the paper's (Sec. 4.1), has the single node :math:`z = 0`; it is
over-confident in the tails.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import Family, Link

__all__ = ["FamilyMixture"]

_NODES = 15
_HALVINGS = 60


@final
@dataclass(frozen=True, eq=False)
class FamilyMixture:
    """Models by rows: weights, locations and scales of the linear predictor.

    Parameters
    ----------
    dispersions
        Dispersion of each model.
    trials
        Numbers of trials of the new rows, if the family has any.
    integrate
        Whether to integrate over the coefficients or to use their mode.
    """

    family: Family
    link: Link
    weights: Matrix
    locations: Matrix
    scales: Matrix
    dispersions: FloatArray
    trials: Column | None = None
    integrate: bool = True

    @cached_property
    def _nodes(self) -> tuple[FloatArray, FloatArray]:
        """Standard normal nodes and their weights."""
        if not self.integrate:
            return np.zeros(1), np.ones(1)
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        return nodes, weights / weights.sum()

    def _means_of(self, model: int) -> Matrix:
        """Mean of each row (columns) at each node (rows) of one model."""
        with np.errstate(all="ignore"):
            eta = self.locations[model] + self._nodes[0][:, None] * self.scales[model]
            return self._inside(self.link.mean(eta))

    @cached_property
    def _means(self) -> list[Matrix]:
        return [self._means_of(model) for model in range(len(self.weights))]

    def _components(self) -> Iterator[tuple[FloatArray, FloatArray, float]]:
        """Weight per row, mean per row and dispersion of every model at every node."""
        for model, means in enumerate(self._means):
            dispersion = float(self.dispersions[model])
            for node_weight, mean in zip(self._nodes[1], means, strict=True):
                yield self.weights[model] * node_weight, mean, dispersion

    def _inside(self, mean: FloatArray) -> FloatArray:
        """Means within the family's interval, also where the link runs out of digits."""
        low, high = self.family.mean_interval
        return np.clip(mean, np.nextafter(low, high), np.nextafter(high, low))

    @property
    def _size(self) -> Column | float:
        return 1.0 if self.trials is None else self.trials

    def mean(self) -> Column:
        """Mean response of each row; for a binomial one without trials the probability."""
        total = np.zeros(self.weights.shape[1])
        for model, weight in enumerate(self.weights):
            total += weight * (self._nodes[1] @ self._means_of(model))
        return total * self._size

    def standard_deviation(self) -> Column:
        """Square root of the total variance: of the response, the coefficients, the models."""
        centre = self.mean()
        total = np.zeros_like(centre)
        for weight, mean, dispersion in self._components():
            within = self.family.variance(mean, dispersion) * self._size
            if self.family.has_dispersion and self.family.name != "negative_binomial":
                within = within * dispersion
            total += weight * (within + (mean * self._size - centre) ** 2)
        return np.sqrt(total)

    def cdf(self, value: Column) -> Column:
        """Probability of each row's response being at most its `value`."""
        total = np.zeros(self.weights.shape[1])
        for weight, mean, dispersion in self._components():
            total += weight * self.family.cdf(value, mean, dispersion, self.trials)
        return total

    def quantile(self, level: float) -> Column:
        """Quantile of each row by bisection between the extreme quantiles of its components."""
        levels = np.full(self.weights.shape[1], level)
        low, high = np.full(levels.size, np.inf), np.full(levels.size, -np.inf)
        for weight, mean, dispersion in self._components():
            inner = self.family.quantile(levels, mean, dispersion, self.trials)
            low = np.where(weight > 0, np.minimum(low, inner), low)
            high = np.where(weight > 0, np.maximum(high, inner), high)
        return self._between(level, low, high)

    def _between(self, level: float, low: Column, high: Column) -> Column:
        if not self.family.discrete:
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                below = self.cdf(middle) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            return 0.5 * (low + high)
        # The smallest whole number whose cdf reaches the level lies in (low - 1, high].
        low = low - 1.0
        while np.any(high - low > 1.0):
            middle = np.floor(0.5 * (low + high))
            below = self.cdf(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def sample(self, rng: np.random.Generator, draws: int) -> Matrix:
        """Draws by rows: a model first, then its coefficients, then the response."""
        n_models, n_rows = self.weights.shape
        # Rows where no model is defined stay without a number.
        out = np.full((draws, n_rows), np.nan)
        cumulative = np.cumsum(self.weights, axis=0)
        uniform = rng.random((draws, n_rows)) * cumulative[-1]
        for model in range(n_models):
            before = cumulative[model - 1] if model else np.zeros(n_rows)
            mine = (uniform >= before) & (uniform < cumulative[model])
            if not mine.any():
                continue
            _, rows = np.nonzero(mine)
            noise = rng.standard_normal(rows.size) if self.integrate else 0.0
            eta = self.locations[model, rows] + self.scales[model, rows] * noise
            with np.errstate(all="ignore"):
                mean = self._inside(self.link.mean(eta))
            trials = None if self.trials is None else self.trials[rows]
            out[mine] = self.family.rvs(rng, mean, float(self.dispersions[model]), trials)
        return out
