"""Strategy 1: fit the family's own model to the children, then transform (paper, Sec. 2.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evolution.projection.base import STRATEGIES, AbstractStrategy, ProjectionContext
from dbrm.features import Feature, Transform, moments, project

__all__ = ["OptimizeThenTransform"]


@final
@STRATEGIES.register("optimize-then-transform")
@dataclass(frozen=True, slots=True)
class OptimizeThenTransform(AbstractStrategy):
    r"""Maximum likelihood of :math:`h(\mu) = \alpha_0 + \sum_r \alpha_r F_r`, without :math:`g`.

    Quick, without local optima under canonical links, and free of demands on :math:`g`. Separated
    classes get Firth's estimates, which are finite. The sum is in the units of the linear
    predictor; for a transform of the standardised argument it has mean zero and unit variance.
    """

    number = 1

    def build(
        self,
        rng: np.random.Generator,  # noqa: ARG002
        transform: Transform,
        children: Sequence[Feature],
        context: ProjectionContext,
    ) -> Feature | None:
        columns = context.columns(children)
        weights = context.projector.engine.project(columns)
        if transform.base is not None:
            weights = _in_own_units(weights, columns)
        if not np.all(np.isfinite(weights)):
            return None
        slopes = [float(weight) for weight in weights[1:]]
        return project(transform, children, slopes, float(weights[0]))


def _in_own_units(weights: FloatArray, columns: Matrix) -> FloatArray:
    """The weights of the same sum, standardised."""
    centre, scale = moments(weights[0] + columns @ weights[1:])
    weights = weights / scale
    weights[0] -= centre / scale
    return weights
