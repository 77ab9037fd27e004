r"""The posterior of an unknown dispersion within each model, for predictions to integrate over.

The maximum likelihood :math:`\hat\phi` is too small where coefficients are many for the rows,
and says nothing of its own uncertainty. With :math:`\lambda = \log\phi` and the coefficients
integrated out by Laplace's method around :math:`\hat\beta`, which hardly moves with
:math:`\phi` (Cox and Reid 1987),

.. math:: \log p(\lambda \mid y, M) = \ell(\hat\beta, e^\lambda)
    - \tfrac12 \log|I(\hat\beta, e^\lambda)| + \log\pi(\lambda) + \text{const} ,

with a :math:`\pi` that is flat unless the family says otherwise: for a Gaussian response this is
:math:`\phi \sim \mathrm{RSS}/\chi^2_{n-p_+}`, whatever the link. The masses are on the points
:math:`jh` with whole :math:`j`, the same for all models, so that predictions of many models
share few dispersions.

Sees the likelihood of the training rows and fitted models; not the rows to be predicted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import AbstractPredictorLikelihood, Family, ModelFit

__all__ = ["DispersionPosterior", "dispersion_posteriors"]

# Points lie this share of the posterior standard deviation, about (2/n)^(1/2), apart.
_STEP = 1.5
# Points whose density is this many nats below the highest are left out; most points.
_DROP, _MOST = 6.0, 60
# With more observations the dispersion counts as known.
_MANY = 5_000.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class DispersionPosterior:
    """Dispersions with their probabilities.

    Parameters
    ----------
    factors
        By how much the variances of the coefficients are larger than those of the fit.
    """

    values: FloatArray
    weights: FloatArray
    factors: FloatArray

    @classmethod
    def known(cls, dispersion: float) -> "DispersionPosterior":
        """One dispersion, that of the fit."""
        return cls(np.array([dispersion]), np.ones(1), np.ones(1))


def dispersion_posteriors(
    likelihood: AbstractPredictorLikelihood,
    always: Matrix,
    columns: Matrix,
    models: Sequence[IntArray],
    fits: Sequence[ModelFit],
) -> list[DispersionPosterior]:
    """Posterior of the dispersion in each model.

    Parameters
    ----------
    always
        The constant and the columns of every model.
    columns, models
        The other columns, and for each model the positions of its own.
    """
    family, n = likelihood.family, float(likelihood.weights.sum())
    if not family.estimates_dispersion or n > _MANY:
        values = {fit.dispersion for fit in fits}
        known = {value: DispersionPosterior.known(value) for value in values}
        return [known[fit.dispersion] for fit in fits]
    step = _STEP * np.sqrt(2.0 / n)
    return [
        _posterior(likelihood, np.hstack([always, columns[:, members]]), fit, step)
        for members, fit in zip(models, fits, strict=True)
    ]


def _posterior(
    likelihood: AbstractPredictorLikelihood, design: Matrix, fit: ModelFit, step: float
) -> DispersionPosterior:
    density = _Density(likelihood, design, fit)
    # A posterior without a maximum starts at the least dispersion that counts.
    start_at = max(fit.dispersion, likelihood.family.least_dispersion)
    start = int(np.round(np.log(start_at) / step))
    points, values = _explore(lambda j: density.at(j * step), start)
    if not np.isfinite(values).any():
        return DispersionPosterior.known(fit.dispersion)
    masses = np.exp(values - values.max())
    dispersions = np.exp(points * step)
    factors = np.array([density.variance_factor(value) for value in dispersions])
    return DispersionPosterior(dispersions, masses / masses.sum(), factors)


def _explore(value_at: Callable[[int], float], start: int) -> tuple[IntArray, FloatArray]:
    """Values at whole numbers around the start, as far as they matter."""
    found = {start: value_at(start)}
    for direction in (-1, 1):
        place = start
        while len(found) < _MOST and found[place] > max(found.values()) - _DROP:
            place += direction
            found[place] = value_at(place)
    highest = max(found.values())
    kept = sorted(place for place, value in found.items() if value > highest - _DROP)
    return np.array(kept or [start]), np.array([found[place] for place in kept or [start]])


@final
class _Density:
    """Log posterior density of the log dispersion in one model, up to a constant."""

    def __init__(
        self, likelihood: AbstractPredictorLikelihood, design: Matrix, fit: ModelFit
    ) -> None:
        assert isinstance(likelihood.family, Family)
        self._family = likelihood.family
        live = likelihood.total > 0
        self._y, self._weights = likelihood.response[live], likelihood.weights[live]
        self._trials = likelihood.trials[live] if self._family.has_trials else None
        eta = (design @ fit.coefficients + likelihood.offset)[live]
        with np.errstate(all="ignore"):
            self._mean: Column = self._family.clip_mean(likelihood.link.mean(eta))
            self._slope = likelihood.link.slope(eta)
        unit = np.max(np.abs(design), axis=0, initial=0.0)
        self._design = (design / np.where(unit > 0, unit, 1.0))[live]
        self._n_terms: int = min(design.shape[1], int(self._weights.sum()) - 1)
        self._at_fit = self._log_information(fit.dispersion)
        self._fitted = fit.dispersion

    def at(self, log_dispersion: float) -> float:
        """Log density at one log dispersion."""
        dispersion = float(np.exp(log_dispersion))
        with np.errstate(all="ignore"):
            rows = self._family.log_density(self._y, self._mean, dispersion, self._trials)
            value = float(self._weights @ rows) - 0.5 * self._log_information(dispersion)
        value += self._family.log_dispersion_prior(dispersion)
        return value if np.isfinite(value) else -np.inf

    def variance_factor(self, dispersion: float) -> float:
        """By how much coefficients vary more than at the fitted dispersion, on average."""
        if self._family.dispersion_divides_information:
            return dispersion / self._fitted
        gap = self._at_fit - self._log_information(dispersion)
        return float(np.exp(gap / max(self._design.shape[1], 1)))

    def _log_information(self, dispersion: float) -> float:
        """Log determinant of the information on the coefficients, up to a constant."""
        if self._family.dispersion_divides_information:
            return -self._n_terms * float(np.log(dispersion))
        with np.errstate(all="ignore"):
            about_mean = self._family.information(self._mean, dispersion, self._trials)
            rows = self._weights * self._slope**2 * about_mean
        information = (self._design * np.where(np.isfinite(rows), rows, 0.0)[:, None]).T
        sign, value = np.linalg.slogdet(information @ self._design)
        return float(value) if sign > 0 else 0.0
