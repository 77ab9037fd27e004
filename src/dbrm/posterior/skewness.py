r"""The skewness of a coefficient posterior, to first order: how far its mean is from its mode.

With :math:`C` the covariance at the mode, :math:`h_i = x_i'Cx_i` and :math:`\ell_i'''` the
third derivative of a row's log likelihood in its linear predictor,

.. math::
    E(\beta \mid y) - \hat\beta \approx \tfrac12\, C \sum_i \ell_i'''(\hat\eta_i)\, h_i\, x_i .

Probabilities that integrate over a normal around the mode are too timid where classes are
nearly separated: the posterior reaches further away from zero than towards it. A normal
around the mean is right to the next order.
"""

from collections.abc import Sequence

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import AbstractPredictorLikelihood, ModelFit

__all__ = ["mean_shifts"]

# Third derivatives are second differences of the score over this step.
_STEP = 1e-3
# No expansion holds further out than this many standard deviations.
_FARTHEST = 2.0


def mean_shifts(
    likelihood: AbstractPredictorLikelihood,
    always: Matrix,
    columns: Matrix,
    models: Sequence[IntArray],
    fits: Sequence[ModelFit],
) -> list[FloatArray]:
    """Posterior mean minus mode of each model's coefficients, intercept first.

    Parameters
    ----------
    always
        The constant and the columns of every model.
    columns, models
        The other columns, and for each model the positions of its own.
    """
    return [
        _shift(likelihood, np.hstack([always, columns[:, chosen]]), fit)
        for chosen, fit in zip(models, fits, strict=True)
    ]


def _shift(likelihood: AbstractPredictorLikelihood, design: Matrix, fit: ModelFit) -> FloatArray:
    covariance = fit.covariance * fit.dispersion
    half = design @ covariance
    leverage = np.einsum("ni,ni->n", half, design)
    eta = design @ fit.coefficients + likelihood.offset
    shift = 0.5 * half.T @ (_third_derivative(likelihood, eta, fit.dispersion) * leverage)
    spread = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    far = float(np.max(np.abs(shift) / spread))
    if not np.isfinite(far):
        return np.zeros_like(shift)
    return np.asarray(shift * min(1.0, _FARTHEST / max(far, _FARTHEST)))


def _third_derivative(
    likelihood: AbstractPredictorLikelihood, eta: Column, dispersion: float
) -> Column:
    scores = [_score(likelihood, eta + move, dispersion) for move in (-_STEP, 0.0, _STEP)]
    third = (scores[0] - 2.0 * scores[1] + scores[2]) / _STEP**2
    return np.where(np.isfinite(third), third, 0.0)


def _score(likelihood: AbstractPredictorLikelihood, eta: Column, dispersion: float) -> Column:
    """Derivative of each row's log likelihood in its linear predictor."""
    family, link = likelihood.family, likelihood.link
    scale = 1.0 if family.dispersion_in_variance else 1.0 / dispersion
    with np.errstate(all="ignore"):
        mean = link.mean(eta)
        pull = scale * link.slope(eta) / family.variance(mean, dispersion)
        return np.asarray(likelihood.total * (likelihood.mean - mean) * pull)
