r"""The operators that create features (paper, Sec. 2.2 and 3.3).

Mutation returns an input covariate, modification :math:`g(F)`, crossover
:math:`F_1 * F_2`, projection :math:`g(\alpha_0 + \sum_r \alpha_r F_r)` with weights by
one of the strategies. Operators draw and build; whether a feature may enter a population is
decided elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray
from dbrm.data.schema import refuse_unless
from dbrm.errors import InvalidSettingError
from dbrm.evolution.projection import AbstractStrategy
from dbrm.evolution.snapshot import Snapshot
from dbrm.evolution.units import Units
from dbrm.features import Feature, NestingRule, Transform, TwoValued, modify, multiply

__all__ = [
    "KINDS",
    "Grammar",
    "OperatorMemory",
    "Operators",
    "Parents",
    "bent_transforms",
    "create",
    "draw_operator",
    "straight_transforms",
]

#: The operators of the paper, in the order of `Operators`.
KINDS = ("mutation", "crossover", "modification", "projection")


# Makes a projection of the children, or of one child a function with a drawn knot; or None: see
# `dbrm.evolution.projection.Projector`.
Build = Callable[[np.random.Generator, Transform, list[Feature]], Feature | None]


@final
@dataclass(frozen=True, slots=True)
class Operators:
    r"""How features are created.

    Parameters
    ----------
    mutation, crossover, modification, projection
        Weights of the operators, :math:`P_m, P_c, P_t, P_p` of the paper. They need not add to
        one.
    informed
        Share of a population's newcomers that are drawn by what they promise: of hundreds of
        features made by these operators, and by dropping or replacing factors and functions, those
        with a large expected gain beside the leading model are drawn most often. The others are
        drawn blindly, as in the paper, so that every feature stays reachable.
    """

    mutation: float = 3.0
    crossover: float = 4.0
    modification: float = 4.0
    projection: float = 1.0
    informed: float = 0.8

    def __post_init__(self) -> None:
        weights = [getattr(self, kind) for kind in KINDS]
        if not all(0.0 <= weight < np.inf for weight in weights) or not sum(weights) > 0:
            msg = (
                "operators needs weights that are not negative and not all zero for mutation, "
                f"crossover, modification and projection; got {self!r}."
            )
            raise InvalidSettingError(msg)
        if not 0.0 <= self.informed < 1.0:
            msg = (
                "operators needs a share of informed draws of at least 0 and below 1, so that "
                f"every feature stays reachable; got informed={self.informed!r}."
            )
            raise InvalidSettingError(msg)


@final
@dataclass(frozen=True, slots=True)
class Grammar:
    r"""Which features can exist.

    Parameters
    ----------
    transforms
        The set :math:`\mathcal{G}`.
    knots
        Functions of :math:`\mathcal{G}` with a free knot, ``hinge(x, 3.2)``.
    max_depth
        :math:`D_{max}`.
    max_complexity
        Largest :math:`c(F)`.
    operators, adaptive
        Weights of the operators, and whether they follow what each operator achieves.
    max_projection
        Most inputs of one projection.
    projection
        How the weights of projections are chosen.
    excluded
        Keys of features that must not be used as such; they may still be parts of others.
    units
        Dimensions of the covariates; without them everything goes with everything.
    two_valued
        The covariates of two values, of which functions are only other labels.
    nesting
        Functions that must not be nested; ``None`` where any may be.
    law_depth, law_complexity
        Limits on the laws that the sweep finds by inverting functions.
    """

    transforms: tuple[Transform, ...]
    max_depth: int
    max_complexity: int
    max_projection: int
    projection: AbstractStrategy
    operators: Operators = field(default_factory=Operators)
    excluded: frozenset[int] = frozenset()
    units: Units | None = None
    two_valued: TwoValued = field(default_factory=TwoValued)
    knots: tuple[Transform, ...] = ()
    adaptive: bool = False
    nesting: NestingRule | None = None
    law_depth: int = 0
    law_complexity: int = 0

    @property
    def fits_numbers(self) -> bool:
        """Whether numbers inside functions are fitted to what a model leaves.

        Not where weights are drawn and integrated over: there each draw counts.
        """
        curved = self.operators.projection > 0.0 and bool(self.transforms)
        informed = self.operators.informed > 0.0 and not self.projection.integrated
        return informed and (curved or bool(self.knots))

    def admits(self, feature: Feature) -> bool:
        """Whether a feature keeps to the limits, is not excluded and makes sense.

        Dimensional sense, and a sense of its own: a function of a two-valued column has none.
        """
        small = feature.complexity <= self.max_complexity and feature.depth <= self.max_depth
        return small and self._allows(feature)

    def admits_law(self, feature: Feature) -> bool:
        """Whether a feature that the sweep found by inverting functions is admitted.

        It may be longer than features that are put together at random.
        """
        small = feature.complexity <= max(
            self.law_complexity, self.max_complexity
        ) and feature.depth <= max(self.law_depth, self.max_depth)
        return small and self._allows(feature)

    def _allows(self, feature: Feature) -> bool:
        return (
            feature.key not in self.excluded
            and (self.units is None or self.units.allow(feature))
            and not self.two_valued.contains_relabelling(feature)
            and (self.nesting is None or self.nesting.allows(feature))
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Parents:
    r"""The features that operators draw from: the current population and the covariates.

    Parameters
    ----------
    population, weights
        Features of :math:`\mathcal{S}_t` and how likely each is to be drawn.
    covariates
        :math:`\mathcal{F}_0`.
    pool
        Promising features, best first, that mutation may return too.
    outside
        Probability of drawing a parent uniformly from the covariates instead.
    """

    population: Sequence[Feature]
    weights: FloatArray
    covariates: Sequence[Feature]
    pool: tuple[Feature, ...] = ()
    outside: float = 0.2

    def draw(self, rng: np.random.Generator) -> Feature:
        """Draw one parent."""
        if not self.population or rng.random() < self.outside:
            return self.covariates[int(rng.integers(len(self.covariates)))]
        cumulative = np.cumsum(self.weights)
        return self.population[int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))]

    def draw_candidate(self, rng: np.random.Generator) -> Feature:
        """A covariate or, mostly, a feature of the pool, better ones more often."""
        if self.pool and rng.random() < 0.75:
            # Rank r with probability proportional to log(1 + 1 / r), by inversion.
            rank = int((len(self.pool) + 1) ** rng.random()) - 1
            return self.pool[min(rank, len(self.pool) - 1)]
        return self.covariates[int(rng.integers(len(self.covariates)))]


def draw_operator(rng: np.random.Generator, grammar: Grammar) -> int | None:
    """Position of an operator in the order of `Operators`; ``None`` if none can be used."""
    operators = grammar.operators
    has_functions = len(grammar.transforms) + len(grammar.knots) > 0
    has_bent = len(bent_transforms(grammar.transforms)) > 0
    weights = np.array(
        [
            operators.mutation,
            operators.crossover,
            operators.modification * has_functions,
            operators.projection * has_bent,
        ]
    )
    if not weights.any():
        return None
    return int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))


def create(
    rng: np.random.Generator,
    parents: Parents,
    grammar: Grammar,
    build: Build,
    kind: int | None = None,
) -> Feature | None:
    """Draw an operator and build one feature; ``None`` if it breaks the grammar's limits.

    Also if nothing can be created: without covariates, or with none but operators that
    need a transform where there is none.

    Parameters
    ----------
    build
        Makes a projection of given children, with its weights.
    kind
        The operator, where it has been drawn already.
    """
    if not parents.covariates:
        return None
    if kind is None:
        kind = draw_operator(rng, grammar)
    match kind:
        case None:
            return None
        case 0:
            feature: Feature | None = parents.draw_candidate(rng)
        case 1:
            feature = multiply(_part(rng, parents, grammar), _part(rng, parents, grammar))
        case 2:
            transform = _draw_transform(rng, grammar.transforms + grammar.knots)
            part = _part(rng, parents, grammar)
            # The knot is drawn where the column is known.
            feature = (
                build(rng, transform, [part]) if transform.free_knot else modify(transform, part)
            )
        case _:
            feature = _project(rng, parents, grammar, build)
    return feature if feature is not None and grammar.admits(feature) else None


def _draw_transform(rng: np.random.Generator, transforms: tuple[Transform, ...]) -> Transform:
    return transforms[int(rng.integers(len(transforms)))]


def _part(rng: np.random.Generator, parents: Parents, grammar: Grammar) -> Feature:
    """A parent, or a straight line of it, such as ``not(x)``.

    Alone that is the same column up to an affine map, so no population holds it beside the
    parent; inside a product or a function it makes another feature.
    """
    parent = parents.draw(rng)
    straight = straight_transforms(grammar.transforms)
    if straight and rng.random() < 0.5:
        return modify(_draw_transform(rng, straight), parent)
    return parent


@lru_cache(maxsize=64)
def straight_transforms(transforms: tuple[Transform, ...]) -> tuple[Transform, ...]:
    """The transforms that are straight lines."""
    return tuple(transform for transform in transforms if transform.affine)


@lru_cache(maxsize=64)
def bent_transforms(transforms: tuple[Transform, ...]) -> tuple[Transform, ...]:
    """The transforms of projections, each function once.

    No straight lines: of a weighted sum, ``not`` makes another one.
    """
    return tuple(g for g in transforms if not g.affine and g.base not in transforms)


def _project(
    rng: np.random.Generator, parents: Parents, grammar: Grammar, build: Build
) -> Feature | None:
    """A projection of two or more different parents, none if they cannot be found."""
    wanted = int(rng.integers(2, max(grammar.max_projection, 2) + 1))
    children: dict[int, Feature] = {}
    for _ in range(2 * wanted):
        child = parents.draw(rng)
        children.setdefault(child.key, child)
        if len(children) == wanted:
            break
    if len(children) < 2:
        return None
    # Cheap limits first: the weights cost a fit.
    chosen = sorted(children.values(), key=lambda child: child.canonical)
    width = len(chosen) + 1 + sum(child.width for child in chosen)
    deepest = max(child.depth for child in chosen)
    if 1 + width > grammar.max_complexity or deepest + 1 > grammar.max_depth:
        return None
    return build(rng, _draw_transform(rng, bent_transforms(grammar.transforms)), chosen)


# No operator in use is drawn with a smaller probability.
_LEAST_SHARE = 0.05


class OperatorMemory:
    r"""Remembers which operator made which feature, and how many of them proved useful.

    A feature is useful if, in the population for which it was made, its inclusion
    probability reaches the threshold of the filtration. With :math:`w_k` the user's weight
    of operator k, :math:`n_k` features made and :math:`u_k` of them useful, the operator is
    drawn with probability proportional to

    .. math:: w_k \frac{u_k + 1}{n_k + 2},

    kept above a small share. One more feature changes the estimate by at most
    :math:`1 / (n_k + 2)`, and every :math:`n_k` grows without bound: adaptation diminishes.
    """

    def __init__(self, operators: Operators) -> None:
        self._given = operators
        self._made = np.zeros(len(KINDS))
        self._useful = np.zeros(len(KINDS))
        self._waiting: dict[int, int] = {}

    def note(self, number: int, kind: int) -> None:
        """Operator `kind` made the feature of this number."""
        self._waiting[number] = kind

    def learn(
        self, numbers: npt.NDArray[np.int32], inclusion: FloatArray, threshold: float
    ) -> None:
        """Count which of the features made since the last call proved useful."""
        for number, probability in zip(numbers.tolist(), inclusion.tolist(), strict=True):
            kind = self._waiting.get(number)
            if kind is not None:
                self._made[kind] += 1
                self._useful[kind] += probability >= threshold
        self._waiting.clear()

    def get_state(self) -> Snapshot:
        """The counts, and the features not judged yet."""
        waiting = np.array(list(self._waiting.items()), dtype=np.int64).reshape(-1, 2)
        return Snapshot(arrays={"made": self._made, "useful": self._useful, "waiting": waiting})

    def set_state(self, snapshot: Snapshot) -> None:
        """Restore the counts."""
        self._made = snapshot.arrays["made"].copy()
        self._useful = snapshot.arrays["useful"].copy()
        waiting = snapshot.arrays["waiting"]
        refuse_unless(np.all(waiting[:, 1] < len(KINDS)), "The memory of operators")
        self._waiting = dict(waiting.tolist())

    def operators(self) -> Operators:
        """The weights to use next; they add to one."""
        weights = np.array([getattr(self._given, name) for name in KINDS])
        shares = weights * (self._useful + 1) / (self._made + 2)
        shares = np.where(weights > 0, np.maximum(shares / shares.sum(), _LEAST_SHARE), 0.0)
        shares /= shares.sum()
        return replace(self._given, **dict(zip(KINDS, shares.tolist(), strict=True)))
