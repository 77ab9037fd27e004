r"""From a lattice of hyperparameters to the posterior of coefficients and latent effects.

At one point, with the symbols of `dbrm._kernels.nested_laplace` and
:math:`K = (I - H^{-1}A C^{-1}A')H^{-1}Z'WB`,

.. math:: \mathrm{Var}(\beta) = S^{-1}, \quad \mathrm{Cov}(\delta, \beta) = -KS^{-1}, \quad
    \mathrm{Var}(\delta) = H^{-1} - H^{-1}AC^{-1}A'H^{-1} + KS^{-1}K',

of which the last is needed inside the band only. The moments are then mixed over the points.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import final

import numpy as np
import scipy.linalg

from dbrm._kernels.banded import band_of_inverse
from dbrm._kernels.nested_laplace import posterior_parts
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evidence.base import ModelFit
from dbrm.evidence.hyper_integration import Integral
from dbrm.evidence.latent.fit import LatentFit
from dbrm.evidence.latent_anchor import Key
from dbrm.evidence.nested_laplace import Conditional, Point
from dbrm.status import Status

__all__ = ["move", "summarise", "widen", "without_intercept"]

# Points with a smaller share of the posterior are left out of the moments.
_SMALLEST_SHARE = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """First and second moments of banded and dense variables."""

    mean: FloatArray
    band: Matrix
    dense_mean: FloatArray
    dense_covariance: Matrix
    cross: Matrix


def summarise(
    found: Integral,
    model: Conditional,
    key: Key,
    *,
    location: FloatArray,
    scale: FloatArray,
    unit: float,
    constant: float,
) -> ModelFit:
    """The posterior of one model in raw units.

    Parameters
    ----------
    location, scale
        What the model's columns were centred and divided by.
    unit, constant
        What the response was divided by, and what this and other constants add to the
        log evidence.
    """
    shares = found.shares
    kept = [j for j in np.argsort(-shares) if shares[j] >= _SMALLEST_SHARE] or [0]
    points, shares = [found.points[j] for j in kept], shares[kept] / shares[kept].sum()
    expand = _expansion(model, location, scale) * unit
    moments = _mix([_moments(point, expand, unit) for point in points], shares)
    noise = np.array([model.split(point.theta)[0] for point in points])
    dispersion = float(shares @ np.exp(-noise)) * unit**2
    k = model.n_fixed
    best = points[0]
    psi = np.array([np.concatenate([[], *model.split(point.theta)[1]]) for point in points])
    latent = LatentFit(
        effects=key,
        places=_places(model),
        mean=moments.mean,
        band=moments.band,
        dense_mean=moments.dense_mean,
        dense_covariance=moments.dense_covariance,
        cross=moments.cross,
        psi=psi,
        shares=shares,
        unit=unit,
    )
    return ModelFit(
        log_evidence=found.log_value + constant,
        log_likelihood=best.log_likelihood,
        coefficients=moments.dense_mean[:k],
        covariance=moments.dense_covariance[:k, :k] / dispersion,
        dispersion=dispersion,
        degrees_of_freedom=inf,
        status=best.status,
        latent=latent if key else None,
    )


def move(fit: ModelFit, means: FloatArray) -> ModelFit:
    """The fit with coefficients of the always-in columns moved by their prior means."""
    if not means.any():
        return fit
    coefficients, latent = fit.coefficients.copy(), fit.latent
    coefficients[1 : 1 + means.size] += means
    if latent is not None:
        dense_mean = latent.dense_mean.copy()
        dense_mean[1 : 1 + means.size] += means
        latent = replace(latent, dense_mean=dense_mean)
    return replace(fit, coefficients=coefficients, latent=latent)


def without_intercept(fit: ModelFit) -> ModelFit:
    """The fit with an intercept of exactly zero, of which rounding has left something."""
    coefficients, covariance = fit.coefficients.copy(), fit.covariance.copy()
    coefficients[0], covariance[0], covariance[:, 0] = 0.0, 0.0, 0.0
    return replace(fit, coefficients=coefficients, covariance=covariance)


def widen(fit: ModelFit, places: IntArray, size: int) -> ModelFit:
    """The fit of a model with further columns, whose coefficients are zero and certain.

    `places` are those of the fitted coefficients among all of them.
    """
    coefficients, covariance = np.zeros(size), np.zeros((size, size))
    coefficients[places] = fit.coefficients
    covariance[np.ix_(places, places)] = fit.covariance
    latent = fit.latent
    if latent is not None:
        rest = latent.dense_mean.size - places.size
        wider = np.concatenate([places, size + np.arange(rest)])
        mean, cross = np.zeros(size + rest), np.zeros((latent.mean.size, size + rest))
        dense = np.zeros((size + rest, size + rest))
        mean[wider], cross[:, wider] = latent.dense_mean, latent.cross
        dense[np.ix_(wider, wider)] = latent.dense_covariance
        shift, banded = size - places.size, latent.mean.size
        moved = tuple(np.where(p < banded, p, p + shift) for p in latent.places)
        latent = replace(latent, places=moved, dense_mean=mean, dense_covariance=dense, cross=cross)
    status = Status.RANK_DEFICIENT
    return replace(
        fit, coefficients=coefficients, covariance=covariance, latent=latent, status=status
    )


def _expansion(model: Conditional, location: FloatArray, scale: FloatArray) -> Matrix:
    """From standardised coefficients and free variables to raw ones and nodes."""
    raw = np.diag(np.concatenate([[1.0], 1.0 / scale]))
    raw[0, 1:] = -location / scale
    blocks = [raw, *(border.basis for border in model.layout.border)]
    return np.asarray(scipy.linalg.block_diag(*blocks))


def _places(model: Conditional) -> tuple[IntArray, ...]:
    """Where the nodes of each effect stand, the dense variables after the banded ones."""
    layout = model.layout
    places = dict(layout.slots)
    first = layout.size + model.n_fixed
    for border in layout.border:
        places[border.number] = np.arange(first, first + border.bound.size)
        first += border.bound.size
    return tuple(places[number] for number in range(len(layout.effects)))


def _moments(point: Point, expand: Matrix, unit: float) -> _Moments:
    mode = point.mode
    assert mode is not None
    covariance = np.linalg.inv(mode.schur)
    pull, kriging = posterior_parts(mode.factor, mode.dense, mode.constraint)
    inner = mode.constraint.T @ mode.constraint
    band = band_of_inverse(mode.factor)
    if inner.size:
        pull = pull - kriging @ np.linalg.solve(inner, mode.constraint.T @ mode.dense)
        band = band - _band_of_product(np.linalg.solve(inner, kriging.T).T, kriging, band.shape[1])
    band = band + _band_of_product(pull @ covariance, pull, band.shape[1])
    return _Moments(
        mean=unit * point.delta,
        band=unit**2 * band,
        dense_mean=expand @ point.beta,
        dense_covariance=expand @ covariance @ expand.T,
        cross=-unit * (pull @ covariance) @ expand.T,
    )


def _band_of_product(left: Matrix, right: Matrix, width: int) -> Matrix:
    """The band of ``left @ right.T``, which is symmetric."""
    out = np.zeros((len(left), width))
    for d in range(min(width, len(left))):
        out[d:, d] = np.einsum("ni,ni->n", left[d:], right[: len(right) - d])
    return out


def _mix(parts: list[_Moments], shares: FloatArray) -> _Moments:
    """Moments of a mixture."""
    mean = np.asarray(sum(s * part.mean for s, part in zip(shares, parts, strict=True)))
    dense = np.asarray(sum(s * part.dense_mean for s, part in zip(shares, parts, strict=True)))
    band, cross = np.zeros_like(parts[0].band), np.zeros_like(parts[0].cross)
    covariance = np.zeros_like(parts[0].dense_covariance)
    for share, part in zip(shares, parts, strict=True):
        away, dense_away = (part.mean - mean)[:, None], (part.dense_mean - dense)[:, None]
        band += share * (part.band + _band_of_product(away, away, band.shape[1]))
        cross += share * (part.cross + away @ dense_away.T)
        covariance += share * (part.dense_covariance + dense_away @ dense_away.T)
    return _Moments(mean, band, dense, covariance, cross)
