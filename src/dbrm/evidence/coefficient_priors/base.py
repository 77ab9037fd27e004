"""The interface of coefficient priors: what turns a fit into log evidence.

A coefficient prior sees sample size, model size and a few summaries of a fit. It
never sees columns or rows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, lgamma, log, pi
from typing import final

import numpy as np

from dbrm._choices import Choices
from dbrm._typing import FloatArray, IntArray
from dbrm.evidence.score import GlmTable, ScoreTable

__all__ = [
    "COEFFICIENT_PRIORS",
    "CoefficientPrior",
    "GaussianShape",
    "GaussianSummary",
    "log_evidence_of_null",
    "where_estimable",
]


@final
@dataclass(frozen=True, slots=True)
class GaussianShape:
    r"""What all Gaussian models of one run share.

    Parameters
    ----------
    n
        Number of observations (the sum of the weights).
    total
        :math:`\mathrm{TSS} = \sum_i (y_i - \bar y)^2`.
    floor
        Smallest residual fraction that can be distinguished from a perfect fit.
    of_mean
        Degrees of freedom that the mean takes: none where it is known to be zero, and `total` is
        about zero.
    """

    n: float
    total: float
    floor: float
    of_mean: float = 1.0


@final
@dataclass(frozen=True, slots=True)
class GaussianSummary:
    r"""Posterior of one Gaussian model in terms of its least-squares fit.

    Coefficients of centred columns are ``shrinkage`` times least squares, with scale
    matrix ``shrinkage`` :math:`(X_c'X_c)^{-1}`; the noise variance has location
    ``variance`` and the t distribution ``degrees_of_freedom``.
    """

    shrinkage: float
    variance: float
    degrees_of_freedom: float


class CoefficientPrior(ABC):
    """Prior of the regression coefficients (and of the noise variance, if any)."""

    #: The name by which users ask for it.
    name: str

    @abstractmethod
    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        """Gaussian log evidence for models with these numbers of non-intercept columns."""

    @abstractmethod
    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        """Posterior of one Gaussian model with residual fraction `fraction`."""

    @abstractmethod
    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:
        """Log evidence of generalised linear models of these sizes with `n` observations.

        For families whose dispersion is known, or profiled in every model alike. Raises
        `InvalidSettingError` where the prior has no meaning outside the Gaussian family
        or is no function of likelihood and Wald statistic (`RadialPrior`).
        """


#: The priors that users can choose by name; each registers itself.
COEFFICIENT_PRIORS: Choices[type[CoefficientPrior]] = Choices("coefficient prior")


def where_estimable(constant: FloatArray, sizes: IntArray, n: float) -> FloatArray:
    """Forbid models with as many coefficients as observations: their RSS is zero."""
    return np.where(sizes + 1 < n, constant, -inf)


def log_evidence_of_null(shape: GaussianShape) -> float:
    r"""Evidence of the intercept alone under a flat intercept and :math:`\sigma^{-2}`.

    .. math:: \log p(y|M_0) = -\tfrac{n-1}{2}\log 2\pi - \tfrac12\log n
        + \log\Gamma(\tfrac{n-1}{2}) - \tfrac{n-1}{2}\log\tfrac{\mathrm{TSS}}{2},

    the constant that all g-priors share. Minus infinity for one row.
    """
    half = 0.5 * (shape.n - 1)
    if half <= 0:
        return -inf
    return -half * log(2 * pi) - 0.5 * log(shape.n) + lgamma(half) - half * log(0.5 * shape.total)
