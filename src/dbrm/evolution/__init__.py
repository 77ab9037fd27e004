"""Populations that evolve: the one place where features, evidence and search meet."""

from dbrm.evolution.gmjmcmc import ChainResult, Glimpse, run_enumeration, run_gmjmcmc
from dbrm.evolution.problem import Effort, Filtration, Grammar, Operators, Problem
from dbrm.evolution.registry import Registry
from dbrm.evolution.sweep import sweep_features

__all__ = [
    "ChainResult",
    "Effort",
    "Filtration",
    "Glimpse",
    "Grammar",
    "Operators",
    "Problem",
    "run_enumeration",
    "run_gmjmcmc",
    "sweep_features",
    "Registry",
]
