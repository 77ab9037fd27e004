"""Merging chains, inclusion probabilities, predictions."""

from dbrm.posterior.checks import Checks
from dbrm.posterior.diagnostics import Diagnostics, diagnose
from dbrm.posterior.effects import Effects
from dbrm.posterior.lack_of_fit import smooth_remainder
from dbrm.posterior.merge import Merged, Merger, merge_chains
from dbrm.posterior.merge_rules import MERGE_RULES
from dbrm.posterior.model import FittedModel
from dbrm.posterior.new_data import SurvivalCurves
from dbrm.posterior.posterior import Posterior
from dbrm.posterior.record import RunRecord
from dbrm.posterior.rows import Rows
from dbrm.posterior.scores import confusion_table, roc_curve
from dbrm.posterior.source import LiveSource
from dbrm.posterior.storage import load
from dbrm.posterior.unvisited import with_unvisited

__all__ = [
    "MERGE_RULES",
    "Checks",
    "Diagnostics",
    "Effects",
    "FittedModel",
    "LiveSource",
    "Merged",
    "Merger",
    "Posterior",
    "Rows",
    "RunRecord",
    "SurvivalCurves",
    "confusion_table",
    "diagnose",
    "load",
    "merge_chains",
    "roc_curve",
    "smooth_remainder",
    "with_unvisited",
]
