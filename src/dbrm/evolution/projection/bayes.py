"""Strategy 4: draw the weights from their prior (paper, Appendix A)."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from dbrm.evolution.projection.base import STRATEGIES, AbstractStrategy, ProjectionContext
from dbrm.features import Feature, Transform, project

__all__ = ["Bayes"]


@final
@STRATEGIES.register("bayes")
@dataclass(frozen=True, slots=True)
class Bayes(AbstractStrategy):
    r"""Weights :math:`\alpha \sim N(0, 1)` from the chain's own generator, nothing fitted.

    The weights belong to the identity: other draws are other features. The children are
    taken as they are, so standardised covariates (``scale="standard"``) are advisable.

    Parameters
    ----------
    integrated
        Whether the draws of one topology share its prior, so that together they estimate the
        integral over :math:`\alpha` (see `dbrm.evolution.weight_draws`). In the paper each counts
        as one more model with the full prior, and projections become more probable the longer
        the search.
    """

    number = 4
    published = MappingProxyType({"integrated": False})
    integrated: bool = True

    def build(
        self,
        rng: np.random.Generator,
        transform: Transform,
        children: Sequence[Feature],
        context: ProjectionContext,  # noqa: ARG002
    ) -> Feature | None:
        weights = rng.standard_normal(len(children) + 1).tolist()
        return project(transform, children, weights[1:], weights[0], weights_in_identity=True)
