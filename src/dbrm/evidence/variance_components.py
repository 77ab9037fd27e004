r"""Variances of groups of effects, each learnt from the data and kept near the others.

The effects of a remainder come in groups: the straight effect of a covariate, its bends, the
levels of a category, products. With :math:`G = Z'Z` and :math:`b = Z'y` of columns about their
means, and :math:`D` the diagonal matrix of their prior variances :math:`e^{\theta_g}`, the log
evidence of :math:`\theta` is

.. math:: -\tfrac12 \log |M| - \tfrac\nu2 \log (y'y - b' D^{1/2} M^{-1} D^{1/2} b) , \qquad
    M = I + D^{1/2} G D^{1/2},

where the variance of the noise is unknown, with :math:`\nu` degrees of freedom; where it is one,
the last term is :math:`\frac12 b' D^{1/2} M^{-1} D^{1/2} b`. A priori
:math:`\theta_g \sim N(\lambda + \mu_g, s^2)` with a common level :math:`\lambda`. Fisher scoring
finds the mode of :math:`\theta`, and Laplace's method what the freedom of the groups costs.

It sees matrices, never columns or features.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

from dbrm._typing import FloatArray, IntArray, Matrix

__all__ = ["Components", "Quadratic", "QuadraticSum", "components_at", "find_components"]

# Standard deviations of the common level, and of a group's log variance about it.
LEVEL_SD, GROUP_SD = 2.0, 1.5
_STEPS, _HALVINGS, _LONGEST, _CLOSE = 15, 6, 2.0, 0.02
_LOWEST, _HIGHEST = -14.0, 10.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    r"""What the evidence of variances needs of the rows.

    Parameters
    ----------
    gram, products
        :math:`Z'Z` and :math:`Z'y`; of weighted rows for a known variance of the noise.
    total, degrees
        :math:`y'y` and :math:`\nu` where that variance is unknown, otherwise ``None``.
    """

    gram: Matrix
    products: FloatArray
    total: float | None = None
    degrees: float | None = None

    def log_evidence(self, log_variances: FloatArray) -> tuple[float, FloatArray, Matrix]:
        """Log evidence of the variances of the columns, its gradient, and expected curvature."""
        scale = np.exp(0.5 * log_variances)
        matrix = scale[:, None] * self.gram * scale
        matrix[np.diag_indices_from(matrix)] += 1.0
        factor = scipy.linalg.cholesky(matrix, lower=True)
        inverse = scipy.linalg.cho_solve((factor, True), np.eye(scale.size))
        moved = scale * self.products
        effects = inverse @ moved
        value = -float(np.log(np.diag(factor)).sum())
        known = np.eye(scale.size) - inverse
        curvature = 0.5 * known**2
        explained = float(moved @ effects)
        if self.total is None or self.degrees is None:
            value += 0.5 * explained
            return value, 0.5 * (effects**2 - np.diag(known)), curvature
        left = max(self.total - explained, 1e-12 * self.total)
        value -= 0.5 * self.degrees * float(np.log(left))
        pull = 0.5 * (self.degrees / left) * effects**2
        # The variance of the noise is learnt, too.
        shared = np.outer(np.diag(known), np.diag(known)) / (2.0 * self.degrees)
        return value, pull - 0.5 * np.diag(known), curvature - shared


@final
@dataclass(frozen=True, slots=True, eq=False)
class QuadraticSum:
    """Several sets of independent effects of the same columns, with the same variances."""

    parts: tuple[Quadratic, ...]

    def log_evidence(self, log_variances: FloatArray) -> tuple[float, FloatArray, Matrix]:
        """As of one set; the sum of all."""
        found = [part.log_evidence(log_variances) for part in self.parts]
        values, gradients, curvatures = zip(*found, strict=True)
        return sum(values), np.sum(gradients, axis=0), np.sum(curvatures, axis=0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """The mode of the log variances of groups.

    Parameters
    ----------
    log_variances
        Of the groups.
    log_weight
        What their differences from one another add to the log evidence, at a given level: log
        prior density at the mode times the width of the posterior, of which neither is in the
        evidence at the mode. Never positive.
    """

    log_variances: FloatArray
    log_weight: float


def find_components(
    quadratic: Quadratic | QuadraticSum,
    groups: IntArray,
    centre: FloatArray,
    start: FloatArray | None = None,
) -> Components:
    r"""Mode of the log variances of groups, and the cost of their freedom.

    Parameters
    ----------
    groups
        Group of each column.
    centre
        Prior means :math:`\mu_g` of the log variances, up to the common level.
    start
        Log variances from which no group moves far.
    """
    prior = np.eye(centre.size) / GROUP_SD**2
    prior -= 1.0 / (GROUP_SD**2 * (centre.size + (GROUP_SD / LEVEL_SD) ** 2))
    low, high = np.full(centre.size, _LOWEST), np.full(centre.size, _HIGHEST)
    here = np.clip(centre, low, high)
    if start is not None:
        here, low, high = start, start - _LONGEST, start + _LONGEST

    def at(place: FloatArray) -> tuple[float, FloatArray, Matrix]:
        value, gradient, curvature = _by_group(quadratic, groups, place)
        away = place - centre
        return value - 0.5 * float(away @ prior @ away), gradient - prior @ away, curvature

    value, gradient, curvature = at(here)
    for _ in range(_STEPS):
        step = np.linalg.solve(curvature + prior, gradient)
        there, found = here, (value, gradient, curvature)
        for halving in range(_HALVINGS):
            longest = _LONGEST * 0.5**halving
            place = np.clip(here + np.clip(step, -longest, longest), low, high)
            if (climbed := at(place))[0] > value:
                there, found = place, climbed
                break
            step = 0.5 * step
        change = float(np.abs(there - here).max())
        here, (value, gradient, curvature) = there, found
        if change < _CLOSE:
            break
    return components_at(quadratic, groups, centre, here)


def components_at(
    quadratic: Quadratic | QuadraticSum,
    groups: IntArray,
    centre: FloatArray,
    log_variances: FloatArray,
) -> Components:
    """These log variances as the mode."""
    _, _, curvature = _by_group(quadratic, groups, log_variances)
    away = log_variances - centre
    own = away - away.mean()
    across = np.eye(centre.size) - 1.0 / centre.size
    width = np.eye(centre.size) + GROUP_SD**2 * across @ curvature @ across
    cost = 0.5 * float(own @ own) / GROUP_SD**2 + 0.5 * float(np.linalg.slogdet(width)[1])
    return Components(log_variances, -cost)


def _by_group(
    quadratic: Quadratic | QuadraticSum, groups: IntArray, log_variances: FloatArray
) -> tuple[float, FloatArray, Matrix]:
    """Log evidence, its gradient and expected curvature in the log variances of groups."""
    belongs = np.zeros((log_variances.size, groups.size))
    belongs[groups, np.arange(groups.size)] = 1.0
    value, gradient, curvature = quadratic.log_evidence(log_variances[groups])
    return value, belongs @ gradient, belongs @ curvature @ belongs.T
