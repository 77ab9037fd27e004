"""A look at simple features before the chains start: the pool that all of them draw from."""

from dbrm.evolution.sweep.numbers import sweep_numbers
from dbrm.evolution.sweep.projections import sweep_projections
from dbrm.evolution.sweep.simple import sweep_features

__all__ = ["sweep_features", "sweep_numbers", "sweep_projections"]
