r"""How far the mean of a joint posterior is from its mode, to first order.

With :math:`C` the covariance of all parameters at the mode, :math:`S_i` that of the predictors of
a row, in which the intercepts count as known, and :math:`W_i` the information of the row about its
predictors :math:`\eta_i`,

.. math:: E(\theta \mid y) - \hat\theta \approx -\tfrac12\, C \sum_i X_i' g_i, \qquad
    g_{ij} = \operatorname{tr}\Bigl(S_i \frac{\partial W_i}{\partial \eta_{ij}}\Bigr) .

As in `dbrm.evidence.glm_remainder` the intercepts do not count because Jeffreys' prior makes up
for them. For likelihoods in which each predictor has an intercept of its own.
"""

import numpy as np
import scipy.linalg

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence.joint.likelihood import JointLikelihood, RowPoint

__all__ = ["mean_shift"]

# Derivatives of the information are differences over this step.
_STEP = 1e-3
# No expansion holds further out than this many standard deviations.
_FARTHEST = 2.0


def mean_shift(
    likelihood: JointLikelihood,
    columns: Matrix,
    offset: Column,
    parameters: FloatArray,
    precision: Matrix,
) -> FloatArray:
    """Posterior mean of the parameters minus their mode.

    Parameters
    ----------
    columns
        By rows of the data.
    parameters, precision
        The mode, intercepts first, and the information there with that of the prior.
    """
    m = likelihood.n_predictors
    eta = parameters[m:].reshape(-1, m).T @ columns + offset
    spread = _covariances(columns, scipy.linalg.inv(precision[m:, m:]), m)
    pull = np.zeros((m, offset.size))
    for j, step in enumerate(_STEP * np.eye(m)):
        above, below = (
            likelihood.at(parameters[:m], eta + move[:, None]) for move in (step, -step)
        )
        assert isinstance(above, RowPoint)
        assert isinstance(below, RowPoint)
        change = (above.weight - below.weight) / (2.0 * _STEP)
        pull[j] = -0.5 * np.einsum("kln,nkl->n", change, spread)
    covariance = scipy.linalg.inv(precision)
    shift = covariance @ np.concatenate([pull.sum(axis=1), (columns @ pull.T).ravel()])
    far = float(np.max(np.abs(shift) / np.sqrt(np.diag(covariance))))
    if not np.isfinite(far):
        return np.zeros_like(shift)
    return np.asarray(shift * min(1.0, _FARTHEST / max(far, _FARTHEST)))


def _covariances(columns: Matrix, covariance: Matrix, m: int) -> FloatArray:
    """Covariance matrix of the predictors of each row, from that of the coefficients."""
    s, n = columns.shape
    half = (columns.T @ covariance.reshape(s, m * s * m)).reshape(n, m, s, m)
    return np.asarray(np.einsum("nkjl,jn->nkl", half, columns))
