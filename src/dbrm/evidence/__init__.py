"""Pillar 2, how good is a model: log p(y | model) from columns and masks."""

from dbrm.evidence.base import (
    AbstractEngine,
    AbstractExpandable,
    AbstractPrepared,
    ModelFit,
    ScoreTest,
)
from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    COEFFICIENT_PRIORS,
    CoefficientPrior,
    Jeffreys,
    KnownVariance,
    Normal,
    ZellnerSiow,
    resolve_prior,
)
from dbrm.evidence.engines import (
    EvidenceFunction,
    FunctionEngine,
    Observations,
    add_latent,
    build_engine,
    build_out_of_core,
)
from dbrm.evidence.families import (
    AbstractFamily,
    ExponentialFamily,
    Family,
    Gaussian,
    JointFamily,
    find_family,
)
from dbrm.evidence.gaussian import GaussianEngine
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.joint.classes import ClassFamily
from dbrm.evidence.joint.engine import JointEngine
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.latent import Latent
from dbrm.evidence.latent.fit import LatentFit
from dbrm.evidence.latent.nodes import BoundEffect, bind, columns_of
from dbrm.evidence.latent_engine import LatentEngine, fit_with, log_evidence_with
from dbrm.evidence.links import Link, find_link
from dbrm.evidence.out_of_core import (
    AbstractColumns,
    AbstractOutOfCoreEngine,
    unsupported_out_of_core,
)
from dbrm.evidence.predictor import AbstractPredictorLikelihood
from dbrm.evidence.short_coefficients import ShortCoefficients

__all__ = [
    "AIC",
    "BIC",
    "COEFFICIENT_PRIORS",
    "AbstractColumns",
    "AbstractEngine",
    "AbstractExpandable",
    "AbstractFamily",
    "AbstractOutOfCoreEngine",
    "AbstractPredictorLikelihood",
    "AbstractPrepared",
    "BoundEffect",
    "ClassFamily",
    "CoefficientPrior",
    "EvidenceFunction",
    "ExponentialFamily",
    "Family",
    "FunctionEngine",
    "Gaussian",
    "GaussianEngine",
    "GlmEngine",
    "Jeffreys",
    "JointEngine",
    "JointFamily",
    "JointFit",
    "KnownVariance",
    "Latent",
    "LatentEngine",
    "LatentFit",
    "Link",
    "ModelFit",
    "Normal",
    "Observations",
    "ScoreTest",
    "ShortCoefficients",
    "ZellnerSiow",
    "add_latent",
    "bind",
    "build_engine",
    "build_out_of_core",
    "columns_of",
    "find_family",
    "find_link",
    "fit_with",
    "log_evidence_with",
    "resolve_prior",
    "unsupported_out_of_core",
]
