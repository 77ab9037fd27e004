"""Strategy 3: fit the weights of all layers together (paper, Appendix A)."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from dbrm.evolution.projection.base import STRATEGIES, AbstractStrategy, ProjectionContext, topology
from dbrm.evolution.projection.optimize_then_transform import OptimizeThenTransform
from dbrm.evolution.projection.program import free_projections
from dbrm.evolution.projection.transform_then_optimize import TransformThenOptimize, check_ascent
from dbrm.evolution.projection.weight_fitting import Ascent, fit_weights
from dbrm.features import (
    Covariate,
    Feature,
    Modification,
    Standardized,
    Transform,
    fit_knots,
    fold,
)

__all__ = ["AllLayers"]


@final
@STRATEGIES.register("all-layers")
@dataclass(frozen=True, slots=True)
class AllLayers(AbstractStrategy):
    """As `TransformThenOptimize`, with the weights of projections inside the children free, too.

    The starts are the feature built up layer by layer by strategy 1 and by strategy 2, not
    the weights that the children happen to have: the result depends on topology and data
    only, and is never worse than either. A projection inside a feature has in general
    other weights than the same projection by itself. Where a child occurs twice, its
    weights are shared.
    """

    number = 3
    published = MappingProxyType({"outer_affine": False})
    outer_affine: bool = True
    restarts: int = 5
    max_iterations: int = 50

    def __post_init__(self) -> None:
        check_ascent(self.restarts, self.max_iterations)

    def build(
        self,
        rng: np.random.Generator,
        transform: Transform,
        children: Sequence[Feature],
        context: ProjectionContext,
    ) -> Feature | None:
        one_layer = TransformThenOptimize(self.outer_affine, self.restarts, self.max_iterations)
        if not any(free_projections(child) for child in children):
            return one_layer.build(rng, transform, children, context)
        key = topology(transform, children)
        done, known = context.recall("all", key)
        if done:
            return known
        built = [
            _build_up(rng, strategy, key, context)
            for strategy in (OptimizeThenTransform(), one_layer)
        ]
        candidates = [feature for feature in built if feature is not None]
        ascent = Ascent(self.outer_affine, self.restarts, self.max_iterations)
        found = fit_weights(context, candidates, free_projections, ascent) if candidates else None
        return context.remember("all", key.key, found)


def _build_up(
    rng: np.random.Generator,
    strategy: AbstractStrategy,
    feature: Feature,
    context: ProjectionContext,
) -> Feature | None:
    """The same topology with weights given by another strategy, layer by layer."""
    free = set(free_projections(feature))

    def rebuild(node: Feature, children: Sequence[Feature | None]) -> Feature | None:
        sound = [child for child in children if child is not None]
        if len(sound) < len(children):
            return None
        if node in free:
            assert node.transform is not None
            made = strategy.build(rng, node.transform, sound, context)
        elif isinstance(node, Modification):
            made = node.unfitted(sound[0])
        elif isinstance(node, Standardized):
            made = Standardized(sound[0])
        else:
            made = node if isinstance(node, Covariate) else node.with_children(sound)
        return None if made is None else fit_knots(made, context.projector.table)

    return fold(feature, rebuild)
