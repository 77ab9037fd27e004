"""The interface of coefficient priors: what turns a fit into log evidence.

A coefficient prior sees sample size, model size and a few summaries of a fit. It
never sees columns or rows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from dbrm._typing import IntArray
from dbrm.evidence.score import ScoreTable

__all__ = ["CoefficientPrior", "GaussianShape", "GaussianSummary"]


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
        Smallest residual fraction that is told from a perfect fit (METHODS A1.1).
    """

    n: float
    total: float
    floor: float


@final
@dataclass(frozen=True, slots=True)
class GaussianSummary:
    r"""Posterior of one Gaussian model in terms of its least-squares fit.

    Coefficients of centred columns are ``shrinkage`` times least squares, with scale
    matrix ``shrinkage`` :math:`(X_c'X_c)^{-1}`; the noise variance has location
    ``variance`` and the t distribution ``degrees_of_freedom`` (METHODS A8).
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
