"""Populations that evolve: the one place where features, evidence and search meet."""

from dbrm.evolution.chain import ChainResult, Draws, Glimpse
from dbrm.evolution.gmjmcmc import run_enumeration, run_gmjmcmc, run_mjmcmc
from dbrm.evolution.pool_gibbs import run_pool_gibbs
from dbrm.evolution.problem import Effort, Filtration, Grammar, Operators, Problem, Stop
from dbrm.evolution.projection import AbstractStrategy, resolve_strategy
from dbrm.evolution.registry import Registry
from dbrm.evolution.rgmjmcmc import run_rgmjmcmc
from dbrm.evolution.sweep import simple_features, sweep_features

__all__ = [
    "AbstractStrategy",
    "ChainResult",
    "Draws",
    "Effort",
    "Filtration",
    "Glimpse",
    "Grammar",
    "Operators",
    "Problem",
    "Registry",
    "Stop",
    "resolve_strategy",
    "run_enumeration",
    "run_gmjmcmc",
    "run_mjmcmc",
    "run_pool_gibbs",
    "run_rgmjmcmc",
    "simple_features",
    "sweep_features",
]
