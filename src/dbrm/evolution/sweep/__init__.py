"""A look at simple features before the chains start: the pool that all of them draw from."""

from dbrm.evolution.sweep.projections import sweep_projections
from dbrm.evolution.sweep.simple import simple_features, sweep_features

__all__ = ["simple_features", "sweep_features", "sweep_projections"]
