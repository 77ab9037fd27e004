"""Deep Bayesian regression models: nonlinear regression that you can read and trust.

Names are imported when first used, so that ``import dbrm`` itself is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dbrm._version import __version__

if TYPE_CHECKING:
    from dbrm import datasets as datasets
    from dbrm import latent as latent
    from dbrm import testing as testing
    from dbrm.estimators import DBRMClassifier as DBRMClassifier
    from dbrm.estimators import DBRMFeatures as DBRMFeatures
    from dbrm.estimators import DBRMRegressor as DBRMRegressor
    from dbrm.evidence import CoefficientPrior as CoefficientPrior
    from dbrm.evidence import Family as Family
    from dbrm.evidence import Latent as Latent
    from dbrm.evidence import Link as Link
    from dbrm.features import Feature as Feature
    from dbrm.features import Transform as Transform
    from dbrm.features import parse_feature as parse_feature
    from dbrm.fitting import enumerate_models as enumerate_models
    from dbrm.fitting import fit as fit
    from dbrm.fitting import log_evidence as log_evidence
    from dbrm.fitting import resume as resume
    from dbrm.posterior import Posterior as Posterior
    from dbrm.posterior import load as load
    from dbrm.priors import ModelPrior as ModelPrior
    from dbrm.run.data_check import check as check
    from dbrm.run.settings import Settings as Settings
    from dbrm.survival_estimator import DBRMSurvival as DBRMSurvival

_HOMES = {
    "CoefficientPrior": "dbrm.evidence",
    "DBRMClassifier": "dbrm.estimators",
    "DBRMFeatures": "dbrm.estimators",
    "DBRMRegressor": "dbrm.estimators",
    "DBRMSurvival": "dbrm.survival_estimator",
    "Family": "dbrm.evidence",
    "Feature": "dbrm.features",
    "Link": "dbrm.evidence",
    "Latent": "dbrm.evidence",
    "ModelPrior": "dbrm.priors",
    "Posterior": "dbrm.posterior",
    "Settings": "dbrm.run.settings",
    "Transform": "dbrm.features",
    "check": "dbrm.run.data_check",
    "enumerate_models": "dbrm.fitting",
    "fit": "dbrm.fitting",
    "load": "dbrm.posterior",
    "log_evidence": "dbrm.fitting",
    "parse_feature": "dbrm.features",
    "resume": "dbrm.fitting",
}
_MODULES = ("datasets", "latent", "testing")

__all__ = [
    "__version__",
    *_HOMES,
    *_MODULES,
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dbrm.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    msg = f"module 'dbrm' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
