r"""What a projection strategy is, and the one data set it works on.

A strategy chooses the weights of :math:`g(\alpha_0 + \sum_r \alpha_r F_r)`; which
children and which :math:`g` is decided elsewhere.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, final

import numpy as np

from dbrm._choices import Choices
from dbrm._typing import Column, FloatArray
from dbrm.data import Table
from dbrm.errors import InvalidSettingError, suggest
from dbrm.evidence import AbstractEngine, AbstractPredictorLikelihood
from dbrm.features import (
    ColumnCache,
    Feature,
    Transform,
    evaluate,
    fit_knots,
    knot_after,
    modify,
    project,
)

__all__ = [
    "STRATEGIES",
    "AbstractStrategy",
    "ProjectionContext",
    "Projector",
    "resolve_strategy",
    "topology",
]

# Fitted projections kept at a time.
_MOST_KNOWN = 20_000


class AbstractStrategy(ABC):
    """A way to choose the weights of a projection.

    Attributes
    ----------
    number
        By which users may choose it, too; strategies 1 to 4 are the paper's.
    published
        Settings of the paper's own version, where they are not the defaults.
    integrated
        Whether draws of a projection's weights are counted and share its prior.
    """

    number: ClassVar[int]
    published: ClassVar[Mapping[str, bool]] = MappingProxyType({})
    integrated: bool = False

    @abstractmethod
    def build(
        self,
        rng: np.random.Generator,
        transform: Transform,
        children: Sequence[Feature],
        context: "ProjectionContext",
    ) -> Feature | None:
        """The projection of these children; ``None`` if there are no finite weights.

        Whether its column is fit for use is decided where features enter a population,
        and counted there.
        """


#: The strategies that users can choose by name or number; each registers itself.
STRATEGIES: Choices[type[AbstractStrategy]] = Choices("projection")


def resolve_strategy(
    projection: str | int | AbstractStrategy, *, as_published: bool = False
) -> AbstractStrategy:
    """The strategy of this name or number, or the strategy itself.

    Parameters
    ----------
    as_published
        Let 2, 3 and 4 be the paper's own versions: without a fitted outer intercept and slope,
        and every draw of the weights a model with the full prior.
    """
    if isinstance(projection, AbstractStrategy):
        return projection
    for name, strategy in STRATEGIES.items():
        if projection == name or (type(projection) is not bool and projection == strategy.number):
            return strategy(**strategy.published if as_published else {})
    numbers = sorted((strategy.number, name) for name, strategy in STRATEGIES.items())
    listed = ", ".join(f"{name!r} ({number})" for number, name in numbers)
    near = suggest(str(projection), STRATEGIES)
    msg = f"projection must be one of {listed} or a strategy; got projection={projection!r}{near}."
    raise InvalidSettingError(msg)


@final
class Projector:
    """Builds the projections of one run.

    For every strategy but the fully Bayesian one a feature is identified by its topology.
    Weights are therefore a function of topology and data: they depend neither on the chain
    nor on the way that led to the feature. What was fitted once is remembered.
    """

    def __init__(self, strategy: AbstractStrategy, engine: AbstractEngine, table: Table) -> None:
        self.strategy = strategy
        self.engine = engine
        self.table = table
        self.known: dict[tuple[str, int], Feature | None] = {}

    def build(
        self,
        rng: np.random.Generator,
        transform: Transform,
        children: Sequence[Feature],
        cache: ColumnCache | None = None,
    ) -> Feature | None:
        """The projection of these children, ``None`` if it has no finite weights.

        A function with a free knot is not projected: of its one child it gets a knot next to a
        training value that is drawn.

        Parameters
        ----------
        cache
            Columns of the training table known already; see `dbrm.features.evaluate`.
        """
        context = ProjectionContext(self, {} if cache is None else cache)
        if transform.free_knot:
            return self._with_drawn_knot(rng, transform, children[0], context)
        feature = self.strategy.build(rng, transform, children, context)
        return None if feature is None else fit_knots(feature, self.table, cache)

    def _with_drawn_knot(
        self,
        rng: np.random.Generator,
        transform: Transform,
        child: Feature,
        context: "ProjectionContext",
    ) -> Feature | None:
        child, column, _ = context.trial(child)
        knot = knot_after(column, float(column[int(rng.integers(column.size))]))
        return None if knot is None else modify(transform, child, knot)

    @cached_property
    def likelihood(self) -> AbstractPredictorLikelihood:
        """Likelihood of the response as a function of the linear predictor."""
        return self.engine.likelihood()

    @cached_property
    def intercept(self) -> float:
        """Linear predictor of the model without features."""
        return float(self.engine.project(np.empty((self.table.n_rows, 0)))[0])


@final
class ProjectionContext:
    """A projector with the columns computed so far."""

    def __init__(self, projector: Projector, cache: ColumnCache) -> None:
        self.projector = projector
        self._cache = cache

    def columns(self, features: Sequence[Feature]) -> FloatArray:
        """Training columns of the features."""
        return evaluate(features, self.projector.table, self._cache)[0]

    def column(self, feature: Feature) -> Column:
        """Training column of one feature."""
        return self.columns([feature])[:, 0]

    def trial(self, feature: Feature) -> tuple[Feature, Column, int]:
        """A trial feature with its knots, its column and its status; nothing is cached."""
        table, cache = self.projector.table, dict(self._cache)
        feature = fit_knots(feature, table, cache)
        columns, statuses = evaluate([feature], table, cache)
        return feature, columns[:, 0], int(statuses[0])

    def recall(self, kind: str, feature: Feature) -> tuple[bool, Feature | None]:
        """Whether this topology was fitted before, and the result."""
        known = self.projector.known
        return (kind, feature.key) in known, known.get((kind, feature.key))

    def remember(self, kind: str, key: int, feature: Feature | None) -> Feature | None:
        """Cache the result of a fit."""
        known = self.projector.known
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[kind, key] = feature
        return feature


def topology(transform: Transform, children: Sequence[Feature]) -> Feature:
    """The projection with arbitrary weights, for its key."""
    return project(transform, children, [1.0] * len(children), 0.0)
