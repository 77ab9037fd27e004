"""Priors of the regression coefficients, one small file each."""

from dbrm.evidence.coefficient_priors.base import (
    CoefficientPrior,
    GaussianShape,
    GaussianSummary,
)
from dbrm.evidence.coefficient_priors.classical import AIC, BIC, Jeffreys, KnownVariance

__all__ = [
    "AIC",
    "BIC",
    "CoefficientPrior",
    "GaussianShape",
    "GaussianSummary",
    "Jeffreys",
    "KnownVariance",
]
