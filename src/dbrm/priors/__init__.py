"""Priors over model structure."""

from dbrm.priors.base import ModelPrior
from dbrm.priors.costs import WithCosts
from dbrm.priors.names import resolve_model_prior
from dbrm.priors.structure import (
    BetaBinomial,
    Complexity,
    LogicRegression,
    ScriptWeights,
    Uniform,
)

__all__ = [
    "BetaBinomial",
    "Complexity",
    "LogicRegression",
    "ModelPrior",
    "ScriptWeights",
    "Uniform",
    "WithCosts",
    "resolve_model_prior",
]
