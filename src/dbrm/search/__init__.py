"""Pillar 3, where to look: moves over masks and the ledger of visited models."""

from dbrm.search.enumeration import enumerate_population
from dbrm.search.exploration import Exploration, PreparedPopulation, PriorTerms, Walk, log_sum_exp
from dbrm.search.ledger import (
    Ledger,
    ModelTable,
    effect_keys,
    effects_of,
    model_keys,
    split_key,
    unique_rows,
)
from dbrm.search.mjmcmc import KERNEL_NAMES, KernelMix, Mjmcmc, OptimiserMix
from dbrm.search.refinement import refine_population
from dbrm.search.walker import Walker

__all__ = [
    "KERNEL_NAMES",
    "Exploration",
    "KernelMix",
    "Ledger",
    "Mjmcmc",
    "ModelTable",
    "OptimiserMix",
    "PreparedPopulation",
    "PriorTerms",
    "Walk",
    "Walker",
    "effect_keys",
    "effects_of",
    "enumerate_population",
    "log_sum_exp",
    "model_keys",
    "refine_population",
    "split_key",
    "unique_rows",
]
