r"""The predictive distribution of a Gaussian response: a mixture of t distributions, one per model.

For a new row with design vector :math:`x` and model posterior
:math:`\beta \sim t_\nu(\hat\beta, \phi C)`,

.. math:: y^* \mid M \sim t_\nu\bigl(x'\hat\beta,\; \phi (1 + x' C x)\bigr),

and the posterior average mixes these with the model probabilities. A row's weights are
its own: a model whose features are undefined there has weight zero.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import stdtr

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.posterior.quantiles import find_quantiles

__all__ = ["StudentMixture"]

# Least standard deviation of a mean, in those of the response: one that is known has none.
_LEAST_SCALE = 1e-9


@final
@dataclass(frozen=True, slots=True, eq=False)
class StudentMixture:
    """Models by rows: weights, locations, scales; degrees of freedom per model.

    Parameters
    ----------
    leverages
        :math:`x' C x`, models by rows, for `mean_quantile`.
    """

    weights: Matrix
    locations: Matrix
    scales: Matrix
    degrees_of_freedom: FloatArray
    leverages: Matrix | None = None

    def mean(self) -> Column:
        """Mean of each row (of the locations, where a t has no mean)."""
        return _average(self.weights, self.locations)

    def standard_deviation(self) -> Column:
        """Square root of the total variance: within models plus between them."""
        df = self.degrees_of_freedom[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            inflation = np.where(np.isinf(df), 1.0, np.where(df > 2, df / (df - 2), np.inf))
        within = _average(self.weights, self.scales**2 * inflation)
        between = _average(self.weights, (self.locations - self.mean()) ** 2)
        return np.sqrt(within + between)

    def cdf(self, value: Column, rows: IntArray | slice = slice(None)) -> Column:
        """Probability of each row's response being at most its `value`."""
        standard = (value - self.locations[:, rows]) / self.scales[:, rows]
        return _average(self.weights[:, rows], _student_cdf(self.degrees_of_freedom, standard))

    def quantile(self, level: float | Column) -> Column:
        """Quantile of each row; the level may differ between rows."""
        centre = self.mean()
        within = _average(self.weights, self.scales**2)
        between = _average(self.weights, (self.locations - centre) ** 2)
        return find_quantiles(self.cdf, level, centre, np.sqrt(within + between))

    def mean_quantile(self, level: float) -> Column:
        """Quantile of the posterior of each row's mean, without the noise of the response."""
        assert self.leverages is not None
        scales = self.scales * np.sqrt(self.leverages / (1.0 + self.leverages))
        scales = np.maximum(scales, _LEAST_SCALE * self.scales)
        return replace(self, scales=scales, leverages=None).quantile(level)

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
        return np.where(np.isnan(cumulative[-1]), np.nan, sample)


def _average(weights: Matrix, values: Matrix) -> Column:
    """Sum over models of weight times value, for each row."""
    return np.asarray(np.einsum("mn,mn->n", weights, values))


def _student_cdf(df: FloatArray, standard: Matrix) -> Matrix:
    # For many degrees of freedom the t is the normal; stdtr accepts 1e12 but not inf.
    return np.asarray(stdtr(np.minimum(df, 1e12)[:, None], standard))
