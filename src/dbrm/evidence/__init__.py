"""Pillar 2, how good is a model: log p(y | model) from columns and masks."""

from dbrm.evidence.base import AbstractEngine, AbstractPrepared, Kernel, ModelFit
from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    CoefficientPrior,
    Jeffreys,
    KnownVariance,
)
from dbrm.evidence.gaussian import GaussianEngine

__all__ = [
    "AIC",
    "BIC",
    "AbstractEngine",
    "AbstractPrepared",
    "CoefficientPrior",
    "GaussianEngine",
    "Jeffreys",
    "Kernel",
    "KnownVariance",
    "ModelFit",
]


def resolve_prior(prior, **options):
    return prior if not isinstance(prior, str) else {"jeffreys": Jeffreys, "bic": BIC, "aic": AIC, "known_variance": KnownVariance}[prior](**options)
