"""Priors of the regression coefficients.

To add one, add a module with a subclass of `CoefficientPrior`, decorated with
``@COEFFICIENT_PRIORS.register(name)``: all modules of this package are imported.
"""

from dbrm._choices import import_modules
from dbrm.evidence.coefficient_priors.base import (
    COEFFICIENT_PRIORS,
    CoefficientPrior,
    GaussianShape,
    GaussianSummary,
)
from dbrm.evidence.coefficient_priors.classical import AIC, BIC, Jeffreys, KnownVariance
from dbrm.evidence.coefficient_priors.confluent import (
    CCH,
    TCCH,
    AdaptedZellnerSiow,
    TruncatedGamma,
)
from dbrm.evidence.coefficient_priors.fixed_g import EBLocal, GPrior
from dbrm.evidence.coefficient_priors.g_mixtures import (
    BenchmarkBeta,
    BetaPrime,
    HyperG,
    HyperGN,
    Intrinsic,
    JeffreysG,
    Robust,
    UniformG,
    ZellnerSiow,
)
from dbrm.evidence.coefficient_priors.mixing import MixingDensity
from dbrm.evidence.coefficient_priors.mixture import MixturePrior
from dbrm.evidence.coefficient_priors.names import resolve_prior
from dbrm.evidence.coefficient_priors.radial import Normal, NormalLogGamma, Radial, RadialPrior

__all__ = [
    "AIC",
    "BIC",
    "CCH",
    "COEFFICIENT_PRIORS",
    "TCCH",
    "AdaptedZellnerSiow",
    "BenchmarkBeta",
    "BetaPrime",
    "CoefficientPrior",
    "EBLocal",
    "GPrior",
    "GaussianShape",
    "GaussianSummary",
    "HyperG",
    "HyperGN",
    "Intrinsic",
    "Jeffreys",
    "JeffreysG",
    "KnownVariance",
    "MixingDensity",
    "MixturePrior",
    "Normal",
    "NormalLogGamma",
    "Radial",
    "RadialPrior",
    "Robust",
    "TruncatedGamma",
    "UniformG",
    "ZellnerSiow",
    "resolve_prior",
]

import_modules(__name__, __path__)
