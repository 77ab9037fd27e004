"""Merging chains, inclusion probabilities, predictions."""

from dbrm.posterior.diagnostics import Diagnostics, diagnose
from dbrm.posterior.merge import Merge, Merged, merge_chains
from dbrm.posterior.model import FittedModel
from dbrm.posterior.posterior import Posterior
from dbrm.posterior.record import RunRecord
from dbrm.posterior.source import LiveSource
from dbrm.posterior.storage import load

__all__ = [
    "Diagnostics",
    "FittedModel",
    "LiveSource",
    "Merge",
    "Merged",
    "Posterior",
    "RunRecord",
    "diagnose",
    "load",
    "merge_chains",
]
