"""Merging chains, inclusion probabilities, predictions."""

from dbrm.posterior.diagnostics import Diagnostics, diagnose
from dbrm.posterior.merge import Merge, Merged, merge_chains
from dbrm.posterior.model import FittedModel
from dbrm.posterior.posterior import Posterior, RunRecord

__all__ = [
    "Diagnostics",
    "FittedModel",
    "Merge",
    "Merged",
    "Posterior",
    "RunRecord",
    "diagnose",
    "merge_chains",
]
