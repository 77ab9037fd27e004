r"""The predictive distribution of a Gaussian response: a mixture of t distributions, one per model.

For a new row with design vector :math:`x` and model posterior
:math:`\beta \sim t_\nu(\hat\beta, \phi C)`,

.. math:: y^* \mid M \sim t_\nu\bigl(x'\hat\beta,\; \phi (1 + x' C x)\bigr),

and the posterior average mixes these with the model probabilities. A row's weights are
its own: a model whose features are undefined there has weight zero. Of a model of the root of the
response (`dbrm.evidence.root_scale`) it is :math:`\sqrt{y^* + c}` that has the t distribution.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import gammaln, logsumexp, stdtr

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.posterior.quantiles import find_quantiles

__all__ = ["NEAREST_TO_ORIGIN", "StudentMixture"]

# Least standard deviation of a mean, in those of the response: one that is known has none.
_LEAST_SCALE = 1e-9
# The density of a square is infinite at its origin; where the root is less than this, in scales of
# the t distribution, the density is that of a root of this size.
NEAREST_TO_ORIGIN = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class StudentMixture:
    """Models by rows: weights, locations, scales; degrees of freedom per model.

    Parameters
    ----------
    leverages
        :math:`x' C x`, models by rows, for `mean_quantile`.
    squares
        Models of a root, whose response is the square of a t variable; ``None`` for none.
    origins
        What is taken off the squares, models by rows: :math:`c`.
    """

    weights: Matrix
    locations: Matrix
    scales: Matrix
    degrees_of_freedom: FloatArray
    leverages: Matrix | None = None
    squares: Mask | None = None
    origins: Matrix | None = None

    def mean(self) -> Column:
        """Mean of each row (of the locations, where a t has no mean)."""
        return _average(self.weights, self._moments()[0])

    def standard_deviation(self) -> Column:
        """Square root of the total variance: within models plus between them."""
        means, variances = self._moments()
        within = _average(self.weights, variances)
        between = _average(self.weights, (means - _average(self.weights, means)) ** 2)
        return np.sqrt(within + between)

    def _moments(self) -> tuple[Matrix, Matrix]:
        """Mean and variance of the response under each model, by row."""
        df = self.degrees_of_freedom[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            inflation = np.where(np.isinf(df), 1.0, np.where(df > 2, df / (df - 2), np.inf))
        variances = self.scales**2 * inflation
        if self.squares is None or self.origins is None:
            return self.locations, variances
        own = self.squares
        means, df, second = self.locations.copy(), df[own], variances[own]
        with np.errstate(divide="ignore", invalid="ignore"):
            fourth = np.where(df > 4, 3.0 * (df - 2) / (df - 4), np.inf)
            fourth = np.where(np.isinf(df), 3.0, fourth)
        means[own] = self.locations[own] ** 2 + second - self.origins[own]
        variances[own] = 4.0 * self.locations[own] ** 2 * second + (fourth - 1.0) * second**2
        return means, variances

    def cdf(self, value: Column, rows: IntArray | slice = slice(None)) -> Column:
        """Probability of each row's response being at most its `value`."""
        locations, scales = self.locations[:, rows], self.scales[:, rows]
        df, values = self.degrees_of_freedom, np.broadcast_to(value, locations.shape)
        if self.squares is None or self.origins is None:
            return _average(self.weights[:, rows], _student_cdf(df, (values - locations) / scales))
        own, origins = self.squares, self.origins[:, rows]
        roots = np.sqrt(np.maximum(values + origins, 0.0))
        upper = np.where(own[:, None], roots, values)
        chances = _student_cdf(df, (upper - locations) / scales)
        chances[own] -= _student_cdf(df[own], (-roots[own] - locations[own]) / scales[own])
        return _average(self.weights[:, rows], chances)

    def log_density(self, value: Column) -> Column:
        """Log density of each row's response at its `value`."""
        values = np.broadcast_to(value, self.locations.shape)
        df = self.degrees_of_freedom
        if self.squares is None or self.origins is None:
            found = _student_log_density(df, (values - self.locations) / self.scales)
            return np.asarray(logsumexp(found - np.log(self.scales), axis=0, b=self.weights))
        own = self.squares[:, None]
        with np.errstate(divide="ignore"):
            roots = np.sqrt(np.maximum(values + self.origins, 0.0))
            roots = np.maximum(roots, NEAREST_TO_ORIGIN * self.scales)
            upper = np.where(own, roots, values)
            above = _student_log_density(df, (upper - self.locations) / self.scales)
            below = _student_log_density(df, (-roots - self.locations) / self.scales)
            both = np.logaddexp(above, np.where(own, below, -np.inf))
            both -= np.log(self.scales) + np.where(own, np.log(2.0 * roots), 0.0)
            # Nothing is below the origin.
            both = np.where(own & (values < -self.origins), -np.inf, both)
        return np.asarray(logsumexp(both, axis=0, b=self.weights))

    def quantile(self, level: float | Column) -> Column:
        """Quantile of each row; the level may differ between rows."""
        means, _ = self._moments()
        centre = _average(self.weights, means)
        slopes: Matrix | float = 1.0
        if self.squares is not None:
            slopes = np.where(self.squares[:, None], 2.0 * self.locations, 1.0)
        within = _average(self.weights, (slopes * self.scales) ** 2)
        between = _average(self.weights, (means - centre) ** 2)
        return find_quantiles(self.cdf, level, centre, np.sqrt(within + between))

    def mean_quantile(self, level: float) -> Column:
        """Quantile of the posterior of each row's mean, without the noise of the response."""
        assert self.leverages is not None
        scales = self.scales * np.sqrt(self.leverages / (1.0 + self.leverages))
        scales = np.maximum(scales, _LEAST_SCALE * self.scales)
        origins = self.origins
        if origins is not None:
            # The mean of a square is the square of the mean, and the variance of the noise.
            df = self.degrees_of_freedom[:, None]
            inflation = np.where(np.isinf(df), 1.0, df / (df - 2))
            origins = origins - inflation * self.scales**2 / (1.0 + self.leverages)
        return replace(self, scales=scales, leverages=None, origins=origins).quantile(level)

    def sample(self, rng: np.random.Generator, draws: int) -> Matrix:
        """Draws by rows: a model first, then its t distribution."""
        n_models, n_rows = self.weights.shape
        cumulative = np.cumsum(self.weights, axis=0)
        uniform = rng.random((draws, n_rows)) * cumulative[-1]
        models = np.empty((draws, n_rows), dtype=np.int64)
        for row in range(n_rows):
            models[:, row] = np.searchsorted(cumulative[:, row], uniform[:, row])
        models = np.minimum(models, n_models - 1)
        columns = np.arange(n_rows)
        df = self.degrees_of_freedom[models]
        noise = rng.standard_normal((draws, n_rows))
        finite = np.isfinite(df)
        mixing = np.ones((draws, n_rows))
        mixing[finite] = rng.chisquare(df[finite]) / df[finite]
        spread = self.scales[models, columns] / np.sqrt(mixing)
        sample = self.locations[models, columns] + spread * noise
        if self.squares is not None and self.origins is not None:
            squared = sample**2 - self.origins[models, columns]
            sample = np.where(self.squares[models], squared, sample)
        return np.where(np.isnan(cumulative[-1]), np.nan, sample)


def _average(weights: Matrix, values: Matrix) -> Column:
    """Sum over models of weight times value, for each row."""
    return np.asarray(np.einsum("mn,mn->n", weights, values))


def _student_cdf(df: FloatArray, standard: Matrix) -> Matrix:
    # For many degrees of freedom the t is the normal; stdtr accepts 1e12 but not inf.
    return np.asarray(stdtr(np.minimum(df, 1e12)[:, None], standard))


def _student_log_density(df: FloatArray, standard: Matrix) -> Matrix:
    df = np.minimum(df, 1e12)[:, None]
    constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
    # The difference of the two logarithms has no digits left for so many degrees of freedom.
    constant = np.where(df > 1e6, -0.5 * np.log(2.0 * np.pi), constant)
    return np.asarray(constant - 0.5 * (df + 1.0) * np.log1p(standard**2 / df))
