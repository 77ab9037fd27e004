"""Strategy 2: fit the outer weights behind the transform (paper, Appendix A)."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from dbrm.errors import InvalidSettingError
from dbrm.evolution.projection.base import STRATEGIES, AbstractStrategy, ProjectionContext, topology
from dbrm.evolution.projection.optimize_then_transform import OptimizeThenTransform
from dbrm.evolution.projection.weight_fitting import Ascent, fit_weights
from dbrm.features import Feature, Projection, Transform

__all__ = ["TransformThenOptimize", "check_ascent"]


@final
@STRATEGIES.register("transform-then-optimize")
@dataclass(frozen=True, slots=True)
class TransformThenOptimize(AbstractStrategy):
    r"""Maximum likelihood of the weights with the transform in place, children fixed.

    .. math:: \max_{\alpha} \max_{b_0, b_1}
        \ell\bigl(b_0 + b_1\, g(\alpha_0 + \textstyle\sum_r \alpha_r F_r)\bigr)

    Parameters
    ----------
    outer_affine
        Fit :math:`b_0, b_1` along (variable projection), as the model will. ``False``
        is the paper's version, :math:`\eta = g(z)`, which a bounded :math:`g` cannot serve.
    restarts
        Number of starts; the first is strategy 1, so the likelihood is never lower.
        Random ones are seeded by the feature's key.
    max_iterations
        Of L-BFGS-B, from each start. Transforms that are flat or have a knot at a
        training quantile are fitted without derivatives.
    """

    number = 2
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
        key = topology(transform, children)
        done, known = context.recall("outer", key)
        if done:
            return known
        first = OptimizeThenTransform().build(rng, transform, children, context)
        ascent = Ascent(self.outer_affine, self.restarts, self.max_iterations)
        found = None if first is None else fit_weights(context, [first], _outer, ascent)
        return context.remember("outer", key.key, found)


def _outer(feature: Feature) -> Sequence[Projection]:
    assert isinstance(feature, Projection)
    return (feature,)


def check_ascent(restarts: int, max_iterations: int) -> None:
    """Refuse numbers of starts or iterations below one."""
    for name, value in (("restarts", restarts), ("max_iterations", max_iterations)):
        if not value >= 1:
            msg = f"{name} must be at least 1; got {name}={value!r}."
            raise InvalidSettingError(msg)
