"""Populations that evolve: the one place where features, evidence and search meet."""

from dbrm.evolution.block_columns import FeatureColumns
from dbrm.evolution.candidate_check import Candidate, check_candidates
from dbrm.evolution.chain import ChainResult, Draws, Glimpse
from dbrm.evolution.given_columns import MjmcmcRun, run_enumeration
from dbrm.evolution.gmjmcmc import Gmjmcmc
from dbrm.evolution.latent import LatentTerms
from dbrm.evolution.pool_gibbs import PoolGibbs
from dbrm.evolution.problem import Effort, Filtration, Grammar, Operators, Problem, Stop
from dbrm.evolution.projection import AbstractStrategy, resolve_strategy
from dbrm.evolution.projection_sweep import sweep_projections
from dbrm.evolution.registry import Registry
from dbrm.evolution.rgmjmcmc import Rgmjmcmc
from dbrm.evolution.run import AbstractRun, Pause, Report, proceed
from dbrm.evolution.snapshot import Snapshot
from dbrm.evolution.sweep import simple_features, sweep_features

__all__ = [
    "AbstractRun",
    "AbstractStrategy",
    "Candidate",
    "ChainResult",
    "Draws",
    "Effort",
    "FeatureColumns",
    "Filtration",
    "Glimpse",
    "Gmjmcmc",
    "Grammar",
    "LatentTerms",
    "MjmcmcRun",
    "Operators",
    "Pause",
    "PoolGibbs",
    "Problem",
    "Registry",
    "Report",
    "Rgmjmcmc",
    "Snapshot",
    "Stop",
    "check_candidates",
    "proceed",
    "resolve_strategy",
    "run_enumeration",
    "simple_features",
    "sweep_features",
    "sweep_projections",
]
