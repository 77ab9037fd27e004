r"""The predictive distribution of a generalised linear model, mixed over models and coefficients.

Within a model the linear predictor of a new row has a distribution
(`dbrm.posterior.predictor_distribution`) about :math:`x'\hat\beta` with the variance
:math:`s^2 = x'Cx`. Integrals over it are sums over equally spaced nodes :math:`\eta_q` with
weights :math:`\omega_q`:

.. math::
    p(y^*|y) = \sum_M p(M|y) \sum_q \omega_q\, f\bigl(y^* \mid h^{-1}(\eta_q)\bigr).

Their means are exact to :math:`10^{-8}`; a fixed Gauss-Hermite rule would not be where
coefficients are uncertain. For the cdf and its quantiles all models share one grid
(`dbrm.posterior.predictor_grid`), fine enough for the noise of the response.

The plug-in version, the paper's (Sec. 4.1), has the single node :math:`x'\hat\beta`; it is
over-confident in the tails.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._kernels.glm_rows import LOGIT
from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import Family, Link
from dbrm.posterior.predictor_distribution import (
    AbstractPredictor,
    LogGammaPredictor,
    NormalPredictor,
)
from dbrm.posterior.predictor_grid import PredictorGrid, spread_on_grid
from dbrm.posterior.quantiles import find_quantiles

__all__ = ["FamilyMixture"]

# Models that weigh less in a row do not ask for more nodes there.
_LIGHT = 1e-4
# Links bend over this width; log dispersions that differ by less are taken together.
_WIDEST, _SAME_DISPERSION = 1.5, 0.01


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
    shifts
        How far the mean of the linear predictor is from its location, ``None`` for not at all.
    highest
        Limits of the means under a log link, ``None`` for none.
    """

    family: Family
    link: Link
    weights: Matrix
    locations: Matrix
    scales: Matrix
    dispersions: FloatArray
    trials: Column | None = None
    integrate: bool = True
    shifts: Matrix | None = None
    highest: Matrix | None = None

    @cached_property
    def _predictor(self) -> AbstractPredictor:
        """Distribution of the linear predictor, of which plug-in predictions use the location."""
        if not self.integrate:
            return NormalPredictor(self.locations, np.zeros_like(self.locations))
        shifts = np.zeros_like(self.locations) if self.shifts is None else self.shifts
        if self.link.name == "log":
            with np.errstate(divide="ignore"):
                highest = None if self.highest is None else np.log(self.highest)
            return LogGammaPredictor(self.locations, self.scales, shifts, highest)
        return NormalPredictor(self.locations + shifts, self.scales)

    def _rule(self, model: int) -> tuple[Matrix, Matrix]:
        """Mean of each row (columns) at each node (rows) of one model, and the nodes' weights."""
        with np.errstate(all="ignore"):
            if not self.integrate:
                return self._inside(self.link.mean(self.locations[model]))[None], np.ones((1, 1))
            eta, weights = self._predictor.rule(model, self.weights[model] > _LIGHT)
            return self._inside(self.link.mean(eta)), weights

    def _noise(self, eta: Column, dispersion: float) -> Column:
        """Standard deviation of the response, in units of eta."""
        with np.errstate(all="ignore"):
            mean = self._inside(self.link.mean(eta))
            slope = np.abs(self.link.slope(eta) * self._size)
            return np.asarray(np.sqrt(self._variance(mean, dispersion)) / slope)

    def _variance(self, mean: FloatArray, dispersion: float) -> FloatArray:
        """Variance of a response with this mean."""
        return np.asarray(self.family.variance(mean, dispersion) * self._size)

    def _inside(self, mean: FloatArray) -> FloatArray:
        return self.family.clip_mean(mean)

    @property
    def _size(self) -> Column | float:
        return 1.0 if self.trials is None else self.trials

    def mean(self) -> Column:
        """Mean response of each row; for a binomial one without trials the probability."""
        predictor, means = self._predictor, None
        with np.errstate(all="ignore"):
            if not self.integrate:
                means = self._inside(self.link.mean(self.locations))
            elif (
                isinstance(predictor, LogGammaPredictor) and self.family.mean_interval[1] == np.inf
            ):
                means = self._inside(predictor.mean_rates)
        if means is not None:
            return np.asarray(np.einsum("mn,mn->n", self.weights, means) * self._size)
        if isinstance(predictor, NormalPredictor) and self.link.code == LOGIT:
            ends = self._inside(np.array([-np.inf, np.inf]))
            means = predictor.mixed_logistic_means(self.weights, self.weights > _LIGHT, *ends)
            return means * self._size
        total = np.zeros(self.weights.shape[1])
        for model, weight in enumerate(self.weights):
            means, node_weights = self._rule(model)
            total += weight * _average(node_weights, means)
        return total * self._size

    def standard_deviation(self) -> Column:
        """Square root of the total variance: of the response, the coefficients, the models."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Column, Column]:
        """Mean and standard deviation."""
        first, second = np.zeros((2, self.weights.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for model, weight in enumerate(self.weights):
                means, node_weights = self._rule(model)
                within = self._variance(means, float(self.dispersions[model]))
                centre = _average(node_weights, means)
                spread = _average(node_weights, within + ((means - centre) * self._size) ** 2)
                first += weight * centre * self._size
                second += weight * (spread + (centre * self._size) ** 2)
            variance = np.maximum(second - first**2, 0.0)
        # Beyond floating point, not undefined: the mean tells whether there is a prediction.
        beyond = np.isnan(variance) & ~np.isnan(first)
        return first, np.sqrt(np.where(beyond, np.finfo(float).max, variance))

    def cdf(self, value: Column, rows: IntArray | slice = slice(None)) -> Column:
        """Probability of each row's response being at most its `value`, to about 1e-5."""
        if self.family.has_trials and np.all(self._size == 1.0):
            # Zeros and ones: the mean says it all.
            one = self._chance_of_one[rows]
            below = np.where(value < 0.0, 0.0, np.where(value < 1.0, 1.0 - one, 1.0))
            return np.where(np.isnan(one), np.nan, below)
        total = np.zeros(self.weights[0, rows].size)
        trials = None if self.trials is None else self.trials[rows]
        for grid, dispersion in self._grids:
            with np.errstate(all="ignore"):
                means = self._inside(self.link.mean(grid.points[:, rows]))
                chances = self.family.cdf(value, means, dispersion, trials)
            total += np.einsum("qn,qn->n", grid.masses[:, rows], chances)
        return np.where(np.isnan(self.weights[0, rows]), np.nan, np.clip(total, 0.0, 1.0))

    @cached_property
    def _chance_of_one(self) -> Column:
        """Of a response of zeros and ones."""
        return self.mean()

    @cached_property
    def _grids(self) -> list[tuple[PredictorGrid, float]]:
        """The models' linear predictors; models with nearly the same dispersion together."""
        width = self._width()
        groups = np.zeros(self.dispersions.size)
        if self.family.has_dispersion:
            groups = np.round(np.log(self.dispersions) / _SAME_DISPERSION)
        grids = []
        for group in np.unique(groups):
            models = np.flatnonzero(groups == group)
            share = np.nansum(self.weights[models], axis=1)
            share = share if share.sum() > 0 else np.ones_like(share)
            dispersion = float(np.average(self.dispersions[models], weights=share))
            grid = spread_on_grid(self.weights, self._predictor, models, width)
            grids.append((grid, dispersion))
        return grids

    def _width(self) -> Column:
        """Least width in eta over which the cdf of each row varies."""
        width = np.full(self.weights.shape[1], _WIDEST)
        for model, weight in enumerate(self.weights):
            centre, reach = self._predictor.means[model], 2.0 * self._predictor.scales[model]
            for eta in (centre - reach, centre + reach):
                noise = self._noise(eta, float(self.dispersions[model]))
                usable = (weight > _LIGHT) & (noise > 0)
                width = np.where(usable, np.minimum(width, noise), width)
        return width

    def quantile(self, level: float) -> Column:
        """Quantile of each row."""
        centre, spread = self._moments
        return find_quantiles(
            self.cdf,
            level,
            centre,
            spread,
            discrete=self.family.discrete,
            highest=self.family.support[1] * self._size if self.family.discrete else np.inf,
            positive=self.family.support[0] == 0.0,
        )

    def mean_quantile(self, level: float) -> Column:
        """Quantile of the posterior of each row's mean, without the noise of the response."""
        predictor = self._predictor
        centre = np.einsum("mn,mn->n", self.weights, predictor.means)
        apart = predictor.scales**2 + (predictor.means - centre) ** 2
        spread = np.sqrt(np.einsum("mn,mn->n", self.weights, apart))

        def cdf(eta: Column, rows: IntArray) -> Column:
            chances = predictor.cdf(eta, rows)
            return np.asarray(np.einsum("mn,mn->n", self.weights[:, rows], chances))

        with np.errstate(all="ignore"):
            falling = self.link.slope(centre) < 0
            levels = np.where(falling, 1.0 - level, level)
            eta = find_quantiles(cdf, levels, centre, spread)
            return np.asarray(self._inside(self.link.mean(eta)) * self._size)

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
            eta = self.locations[model, rows]
            if self.integrate:
                eta = self._predictor.sample(rng, model, rows)
            with np.errstate(all="ignore"):
                mean = self._inside(self.link.mean(eta))
            trials = None if self.trials is None else self.trials[rows]
            out[mine] = self.family.rvs(rng, mean, float(self.dispersions[model]), trials)
        return out


def _average(weights: Matrix, values: Matrix) -> Column:
    """Sum over nodes of weight times value, for each row."""
    return np.asarray((weights * values).sum(axis=0))
