"""Strategies by their names and by the paper's numbers."""

from dbrm.errors import InvalidSettingError
from dbrm.evolution.projection.all_layers import AllLayers
from dbrm.evolution.projection.base import AbstractStrategy
from dbrm.evolution.projection.bayes import Bayes
from dbrm.evolution.projection.optimize_then_transform import OptimizeThenTransform
from dbrm.evolution.projection.transform_then_optimize import TransformThenOptimize

__all__ = ["STRATEGY_NAMES", "resolve_strategy"]

# In the paper's order: strategy 1 comes first.
STRATEGY_NAMES = ("optimize-then-transform", "transform-then-optimize", "all-layers", "bayes")


def resolve_strategy(
    projection: str | int | AbstractStrategy, *, as_published: bool = False
) -> AbstractStrategy:
    """The strategy of this name or number (1 to 4), or the strategy itself.

    Parameters
    ----------
    as_published
        Let 2, 3 and 4 be the paper's own versions: without a fitted outer intercept and slope,
        and every draw of the weights a model with the full prior.
    """
    if isinstance(projection, AbstractStrategy):
        return projection
    numbers = dict(enumerate(STRATEGY_NAMES, start=1))
    name = projection
    if not isinstance(projection, str | bool) and projection in numbers:
        name = numbers[projection]
    match name:
        case "optimize-then-transform":
            return OptimizeThenTransform()
        case "transform-then-optimize":
            return TransformThenOptimize(outer_affine=not as_published)
        case "all-layers":
            return AllLayers(outer_affine=not as_published)
        case "bayes":
            return Bayes(integrated=not as_published)
    listed = ", ".join(f"{name!r} ({number})" for number, name in numbers.items())
    msg = f"projection must be one of {listed} or a strategy; got projection={projection!r}."
    raise InvalidSettingError(msg)
