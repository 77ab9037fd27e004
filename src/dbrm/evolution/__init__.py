"""Populations that evolve: the one place where features, evidence and search meet."""

from dbrm.evolution.algorithms import (
    ALGORITHMS,
    AbstractAlgorithm,
    AbstractChain,
    Pause,
    ProgressCallback,
    find_algorithm,
    proceed,
)
from dbrm.evolution.algorithms.enumeration import run_enumeration
from dbrm.evolution.candidate_check import Candidate, check_candidates
from dbrm.evolution.chain import ChainProgress, ChainResult, Draws
from dbrm.evolution.latent import LatentTerms
from dbrm.evolution.model_priors import with_prior
from dbrm.evolution.operators import Grammar, Operators
from dbrm.evolution.problem import (
    MAX_MERGED,
    MAX_MODELS,
    WINDOW,
    FeatureColumns,
    Filtration,
    Problem,
    SearchBudget,
    Stop,
)
from dbrm.evolution.projection import AbstractStrategy, resolve_strategy
from dbrm.evolution.registry import Registry
from dbrm.evolution.relatives import find_relatives
from dbrm.evolution.snapshot import Snapshot
from dbrm.evolution.sweep.further import Look, best_with, further_looks
from dbrm.evolution.sweep.groups import sweep_groups
from dbrm.evolution.sweep.numbers import sweep_numbers
from dbrm.evolution.sweep.polynomials import sweep_polynomials
from dbrm.evolution.sweep.projections import sweep_projections
from dbrm.evolution.sweep.ratios import sweep_reduced
from dbrm.evolution.sweep.simple import sweep_features
from dbrm.evolution.sweep.sums import sweep_sums
from dbrm.evolution.sweep.waves import sweep_waves

__all__ = [
    "ALGORITHMS",
    "MAX_MERGED",
    "MAX_MODELS",
    "WINDOW",
    "AbstractAlgorithm",
    "AbstractChain",
    "AbstractStrategy",
    "Candidate",
    "ChainProgress",
    "ChainResult",
    "Draws",
    "FeatureColumns",
    "Filtration",
    "Grammar",
    "LatentTerms",
    "Look",
    "Operators",
    "Pause",
    "Problem",
    "ProgressCallback",
    "Registry",
    "SearchBudget",
    "Snapshot",
    "Stop",
    "best_with",
    "check_candidates",
    "find_algorithm",
    "find_relatives",
    "further_looks",
    "proceed",
    "resolve_strategy",
    "run_enumeration",
    "sweep_features",
    "sweep_groups",
    "sweep_numbers",
    "sweep_polynomials",
    "sweep_projections",
    "sweep_reduced",
    "sweep_sums",
    "sweep_waves",
    "with_prior",
]
