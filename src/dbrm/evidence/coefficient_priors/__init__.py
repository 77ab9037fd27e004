"""Priors of the regression coefficients, one small file each."""

from dbrm.evidence.coefficient_priors.base import (
    CoefficientPrior,
    GaussianShape,
    GaussianSummary,
)
from dbrm.evidence.coefficient_priors.classical import AIC, BIC, Jeffreys, KnownVariance
from dbrm.evidence.coefficient_priors.fixed_g import EBLocal, GPrior
from dbrm.evidence.coefficient_priors.radial import Normal, NormalLogGamma, Radial, RadialPrior

__all__ = [
    "AIC",
    "BIC",
    "CoefficientPrior",
    "EBLocal",
    "GPrior",
    "GaussianShape",
    "GaussianSummary",
    "Jeffreys",
    "KnownVariance",
    "Normal",
    "NormalLogGamma",
    "Radial",
    "RadialPrior",
]
