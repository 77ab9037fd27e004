"""Pillar 2, how good is a model: log p(y | model) from columns and masks."""

from dbrm.evidence.base import AbstractEngine, AbstractPrepared, Kernel, ModelFit, Screen
from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    CoefficientPrior,
    Jeffreys,
    KnownVariance,
    prior_names,
    resolve_prior,
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
    "Screen",
    "prior_names",
    "resolve_prior",
]
