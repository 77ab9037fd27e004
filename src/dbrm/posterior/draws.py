r"""Draws of a model and its coefficients from the averaged posterior.

A model is drawn with its probability, then, given it,

.. math:: \phi \sim \hat\phi\,\nu / \chi^2_\nu, \qquad \beta \mid \phi \sim N(\hat\beta, \phi C),

which makes :math:`\beta` the t distribution of the fit; with infinite :math:`\nu` the
dispersion comes from its own posterior (`dbrm.posterior.dispersion`), or stays where it is.
Sees fitted models and tables of rows, never the search.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.data import Table
from dbrm.errors import InvalidSettingError
from dbrm.evidence import Family, Gaussian, JointFamily, ModelFit
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.mixture import NEAREST_TO_ORIGIN
from dbrm.posterior.prediction import AveragedModels
from dbrm.posterior.rows import Rows

__all__ = ["CoefficientDraws", "draw_models"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoefficientDraws:
    """Draws, those of one model side by side.

    Parameters
    ----------
    models
        Position of each draw's model, ascending.
    coefficients
        For each model that was drawn its draws (rows), intercept first.
    dispersion
        One per draw.
    """

    averaged: AveragedModels
    models: IntArray
    coefficients: dict[int, Matrix]
    dispersion: FloatArray

    def predictor(self, table: Table, offset: Column | None = None) -> Matrix:
        """Linear predictor of each draw (rows); not a number where its model is undefined."""
        averaged = self.averaged
        ones, held = np.ones(table.n_rows), averaged.evaluate(table)
        straight = averaged.evaluate_on(table, held)
        every = np.column_stack([ones, held])
        linear = every if straight is None else np.column_stack([ones, straight])
        fixed = 1 + len(averaged.always)
        out = np.empty((self.models.size, table.n_rows))
        for model, drawn in self.coefficients.items():
            columns = linear if averaged.is_linear[model] else every
            design = np.hstack([columns[:, :fixed], columns[:, fixed + averaged.models[model]]])
            defined = np.isfinite(design).all(axis=1)
            eta = drawn @ np.where(defined[:, None], design, 0.0).T
            out[self.models == model] = np.where(defined, eta, np.nan)
        squared = self.of_root
        out[squared] = np.maximum(out[squared], 0.0)
        # What is known of the response itself is outside of a root.
        return out if offset is None else out + np.where(squared[:, None], 0.0, offset)

    @property
    def of_root(self) -> Mask:
        """Draws of models of the root of the response."""
        squares = self.averaged.squares
        return np.zeros(self.models.size, np.bool_) if squares is None else squares[self.models]

    def mean(self, table: Table, offset: Column | None = None) -> Matrix:
        """Mean response of each draw (rows), per trial for a binomial one.

        The linear predictor of families that are no function of a mean.
        """
        eta = self.predictor(table, offset)
        if self.averaged.glm is None:
            squared, shift = self.of_root, 0.0 if offset is None else offset
            eta[squared] = eta[squared] ** 2 + self.dispersion[squared, None] - self.averaged.origin
            eta[squared] += shift
            return eta
        if isinstance(self.averaged.glm.family, JointFamily):
            return self.averaged.glm.link.mean(eta)
        with np.errstate(all="ignore"):
            return self._family.clip_mean(self.averaged.glm.link.mean(eta))

    @property
    def _family(self) -> Family:
        family = Gaussian() if self.averaged.glm is None else self.averaged.glm.family
        if not isinstance(family, Family):
            msg = f"Draws of the mean need a density for each row, and {family.name} has none."
            raise InvalidSettingError(msg)
        return family

    def log_density(self, rows: Rows) -> Matrix:
        """Log density of each response (columns) under each draw (rows)."""
        family, means = self._family, self._means_inside(rows)
        out = np.empty_like(means)
        square = rows.response - self._shift(rows) + self.averaged.origin
        every_root = np.sqrt(np.maximum(square, 0.0))
        both = zip(self.dispersion.tolist(), self.of_root, strict=True)
        for draw, (dispersion, squared) in enumerate(both):
            if squared:
                root = np.maximum(every_root, NEAREST_TO_ORIGIN * np.sqrt(dispersion))
                parts = [family.log_density(z, means[draw], dispersion) for z in (root, -root)]
                inside = np.logaddexp(*parts) - np.log(2.0 * root)
                out[draw] = np.where(square < 0.0, -np.inf, inside)
            else:
                out[draw] = family.log_density(rows.response, means[draw], dispersion, rows.trials)
        return out

    def respond(self, rng: np.random.Generator, rows: Rows) -> Matrix:
        """One response for each draw (rows) and row of the table."""
        family, means = self._family, self._means_inside(rows)
        pairs = zip(means, self.dispersion.tolist(), strict=True)
        drawn = np.array([family.rvs(rng, mean, phi, rows.trials) for mean, phi in pairs])
        squared = self.of_root
        drawn[squared] = drawn[squared] ** 2 - self.averaged.origin + self._shift(rows)
        return drawn

    def _means_inside(self, rows: Rows) -> Matrix:
        """Mean of what the density is of: the response, or its root."""
        if self.of_root.any():
            return self.predictor(rows.table, rows.offset)
        return self.mean(rows.table, rows.offset)

    @staticmethod
    def _shift(rows: Rows) -> Column | float:
        return 0.0 if rows.offset is None else rows.offset


def draw_models(rng: np.random.Generator, averaged: AveragedModels, draws: int) -> CoefficientDraws:
    """Draw models, each as often as its probability says up to rounding, and coefficients."""
    edges = np.cumsum(averaged.probability)
    points = (rng.random() + np.arange(draws)) / draws * edges[-1]
    models = np.minimum(np.searchsorted(edges, points, side="right"), edges.size - 1)
    coefficients, dispersion = {}, np.empty(draws)
    for model in np.unique(models):
        mine = models == model
        known = DispersionPosterior.known(averaged.fits[model].dispersion)
        spread = averaged.dispersions[model] if averaged.integrates else known
        noise, dispersion[mine] = _noise(rng, averaged.fits[model], spread, int(mine.sum()))
        centre = averaged.centre(int(model))
        coefficients[int(model)] = centre + noise if averaged.integrates else centre + 0.0 * noise
    return CoefficientDraws(averaged, models, coefficients, dispersion)


def _noise(
    rng: np.random.Generator, fit: ModelFit, posterior: DispersionPosterior, draws: int
) -> tuple[Matrix, FloatArray]:
    """Deviations of one model's coefficients from their mean (rows), and dispersions."""
    dispersion = np.full(draws, fit.dispersion)
    variance = dispersion
    if np.isfinite(fit.degrees_of_freedom):
        df = fit.degrees_of_freedom
        dispersion = variance = dispersion * (df / rng.chisquare(df, size=draws))
    elif posterior.values.size > 1:
        drawn = rng.choice(posterior.values.size, size=draws, p=posterior.weights)
        variance = dispersion * posterior.factors[drawn]
        dispersion = posterior.values[drawn]
    # Columns of very different size: factor the correlation matrix.
    spread = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    unit = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(fit.covariance / np.outer(unit, unit))
    root = vectors * np.sqrt(np.maximum(values, 0.0)) * unit[:, None]
    noise = rng.standard_normal((draws, spread.size)) @ root.T
    return np.sqrt(variance)[:, None] * noise, dispersion
