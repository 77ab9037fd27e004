r"""The skewness of a coefficient posterior, to first order: how far its mean is from the fit.

With :math:`C` the covariance, :math:`h_i = x_i'Cx_i`, and :math:`\ell_i'''` the third derivative
of a row's log likelihood in its linear predictor, the posterior mean is, from the mode,

.. math::
    E(\beta \mid y) - \hat\beta \approx \tfrac12\, C \sum_i \ell_i'''(\hat\eta_i)\, h_i\, x_i .

From the maximum of the likelihood under Jeffreys' prior :math:`|I|^{1/2}`, whose logarithm has the
gradient :math:`\frac12\sum_i w_i'h_ix_i`, both terms count; with a canonical link
:math:`\ell_i''' = -w_i'`, and nothing is left. Firth's coefficients, for separated classes, are the
mode under that prior: from them the first formula holds.

Probabilities that integrate over a normal around the mode are too timid where classes are
separated: the posterior reaches further away from zero than towards it. A normal around the
mean is right to the next order.
"""

from collections.abc import Sequence

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import AbstractPredictorLikelihood, Family, ModelFit
from dbrm.status import Status

__all__ = ["mean_shifts"]

# Second and third derivatives are differences of scores and informations over this step.
_STEP = 1e-3
# No expansion holds further out than this many standard deviations.
_FARTHEST = 2.0


def mean_shifts(
    likelihood: AbstractPredictorLikelihood,
    always: Matrix,
    columns: Matrix,
    models: Sequence[IntArray],
    fits: Sequence[ModelFit],
    *,
    jeffreys: bool,
) -> list[FloatArray]:
    """Posterior mean of each model's coefficients, intercept first, minus the fitted ones.

    Parameters
    ----------
    always
        The constant and the columns of every model.
    columns, models
        The other columns, and for each model the positions of its own.
    jeffreys
        Whether the prior is Jeffreys'; it counts as flat otherwise.
    """
    vanishes = jeffreys and likelihood.link.name == likelihood.family.canonical_link
    return [
        np.zeros_like(fit.coefficients)
        if vanishes and fit.status is not Status.SEPARATED
        else _shift(likelihood, np.hstack([always, columns[:, members]]), fit, jeffreys=jeffreys)
        for members, fit in zip(models, fits, strict=True)
    ]


def _shift(
    likelihood: AbstractPredictorLikelihood, design: Matrix, fit: ModelFit, *, jeffreys: bool
) -> FloatArray:
    assert isinstance(likelihood.family, Family)
    eta = design @ fit.coefficients + likelihood.offset
    below, here, above = (
        likelihood.family.derivatives(
            likelihood.link, eta + move, likelihood.response, fit.dispersion, likelihood.trials
        )
        for move in (-_STEP, 0.0, _STEP)
    )
    with np.errstate(all="ignore"):
        pull = _finite((below[0] - 2.0 * here[0] + above[0]) / _STEP**2)
        if jeffreys and fit.status is not Status.SEPARATED:
            pull = pull + _finite((above[1] - below[1]) / (2.0 * _STEP))
    pull = likelihood.weights * pull
    # Beside enormous columns the sums overflow; then nothing is known and nothing is shifted.
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = fit.covariance * fit.dispersion
        half = design @ covariance
        leverage = np.einsum("ni,ni->n", half, design)
        shift = 0.5 * half.T @ (pull * leverage)
        spread = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
        far = float(np.max(np.abs(shift) / spread))
    if not np.isfinite(far):
        return np.zeros_like(shift)
    return np.asarray(shift * min(1.0, _FARTHEST / max(far, _FARTHEST)))


def _finite(values: Column) -> Column:
    return np.where(np.isfinite(values), values, 0.0)
