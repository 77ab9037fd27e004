"""Projection strategies: how the weights of a projection are chosen (paper, Appendix A)."""

from dbrm.evolution.projection.all_layers import AllLayers
from dbrm.evolution.projection.base import AbstractStrategy, Projector
from dbrm.evolution.projection.bayes import Bayes
from dbrm.evolution.projection.names import STRATEGY_NAMES, resolve_strategy
from dbrm.evolution.projection.optimize_then_transform import OptimizeThenTransform
from dbrm.evolution.projection.transform_then_optimize import TransformThenOptimize

__all__ = [
    "STRATEGY_NAMES",
    "AbstractStrategy",
    "AllLayers",
    "Bayes",
    "OptimizeThenTransform",
    "Projector",
    "TransformThenOptimize",
    "resolve_strategy",
]
