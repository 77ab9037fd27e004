"""Projection strategies: how the weights of a projection are chosen (paper, Appendix A).

To add one, add a module with a subclass of `AbstractStrategy`, decorated with
``@STRATEGIES.register(name)``: all modules of this package are imported.
"""

from dbrm._choices import import_modules
from dbrm.evolution.projection.all_layers import AllLayers
from dbrm.evolution.projection.base import (
    STRATEGIES,
    AbstractStrategy,
    Projector,
    resolve_strategy,
)
from dbrm.evolution.projection.bayes import Bayes
from dbrm.evolution.projection.optimize_then_transform import OptimizeThenTransform
from dbrm.evolution.projection.transform_then_optimize import TransformThenOptimize

__all__ = [
    "STRATEGIES",
    "AbstractStrategy",
    "AllLayers",
    "Bayes",
    "OptimizeThenTransform",
    "Projector",
    "TransformThenOptimize",
    "resolve_strategy",
]

import_modules(__name__, __path__)
