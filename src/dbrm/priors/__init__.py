"""Priors over model structure.

To add one that users choose by name, add a module with a subclass of `ModelPrior` and a function
of the `Counts` that is decorated with ``@MODEL_PRIORS.register(name)``.
"""

from dbrm._choices import import_modules
from dbrm.priors.base import MODEL_PRIORS, Counts, ModelPrior
from dbrm.priors.costs import WithCosts, WithLongNumbers
from dbrm.priors.structure import (
    Adaptive,
    BetaBinomial,
    Complexity,
    LogicRegression,
    ScriptWeights,
    Uniform,
    resolve_model_prior,
)

__all__ = [
    "MODEL_PRIORS",
    "Adaptive",
    "BetaBinomial",
    "Complexity",
    "Counts",
    "LogicRegression",
    "ModelPrior",
    "ScriptWeights",
    "Uniform",
    "WithCosts",
    "WithLongNumbers",
    "resolve_model_prior",
]

import_modules(__name__, __path__)
