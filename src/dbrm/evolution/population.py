r"""Populations :math:`\mathcal{S}_t` and the step from one to the next (paper, Sec. 3.3)."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.evolution.newcomers import Screener, draw_newcomers
from dbrm.evolution.operators import OperatorMemory, Parents, create, draw_operator
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.features import ColumnCache, Feature, Transform, covariate, evaluate
from dbrm.search import PriorTerms
from dbrm.status import Status

__all__ = [
    "Basis",
    "Population",
    "Rejections",
    "all_covariates",
    "first_population",
    "next_population",
]


class Basis:
    r"""An orthonormal basis that grows while new columns are independent of it.

    A column is refused when less than ``tolerance`` of its variance remains after
    projection on the basis, which is what a pivot of the Cholesky factor of the
    standardised Gram matrix measures, computed here from the rows without squaring
    the condition number.
    """

    def __init__(self, fixed: Matrix, capacity: int, tolerance: float = 1e-9) -> None:
        n_rows = fixed.shape[0]
        self._tolerance = tolerance
        self._vectors = np.empty((n_rows, capacity + fixed.shape[1] + 1), order="F")
        self._vectors[:, 0] = 1.0 / np.sqrt(n_rows)
        self._count = 1
        for column in fixed.T:
            self.admit(column)

    @property
    def spans_all(self) -> bool:
        """Whether every column is a combination of those admitted: there are no more rows."""
        return bool(self._count >= self._vectors.shape[0])

    def admit(self, column: Column) -> bool:
        """Add a column and return ``True``, or refuse it and return ``False``."""
        if self._count == self._vectors.shape[1]:
            return False
        largest = np.max(np.abs(column))
        if not largest > 0:
            return False
        rest = column / largest
        basis = self._vectors[:, : self._count]
        rest -= rest.mean()
        spread = float(rest @ rest)
        rest = rest - basis @ (basis.T @ rest)
        rest -= basis @ (basis.T @ rest)
        left = float(rest @ rest)
        if not left > self._tolerance * spread or not spread > 1e-20 * column.size:
            return False
        self._vectors[:, self._count] = rest / np.sqrt(left)
        self._count += 1
        return True


# Tries for one free place before a population is left smaller.
_TRIES_PER_PLACE = 40
# Places per feature that may be a linear combination of others.
_PLACES_PER_DEPENDENT = 5
# Weight of a feature with no posterior support as a parent, relative to one with full support.
_LEAST_WEIGHT = 0.05
# A feature of at least this inclusion is certain. Beyond one in so many places, certain features
# settle; which of them is drawn anew for every population, so that each is open now and then.
_CERTAIN = 0.99
_PLACES_PER_CERTAIN = 3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The features of one population, by number, with their training columns.

    The first `n_settled` are in every model of the population: they were certain in the one
    before, and take no place from others.
    """

    numbers: npt.NDArray[np.int32]
    columns: Matrix
    n_settled: int = 0

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.numbers.size)

    def features(self, registry: Registry) -> list[Feature]:
        """The features themselves, under their simplest spelling so far."""
        return [registry.features[number] for number in self.numbers]

    def prior_terms(self, problem: Problem, registry: Registry) -> PriorTerms:
        """Log prior of the models over this population."""
        prior = problem.model_prior
        features = self.features(registry)
        terms = problem.prior_terms([registry.log_prior(int(j), prior) for j in self.numbers])
        return problem.heredity_rule(registry).restrict(terms, features, self.numbers)


class Rejections:
    """Counts of rejected candidates, by reason."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def count(self, reason: str) -> None:
        """Count one more candidate that was rejected for this reason."""
        self.counts[reason] = self.counts.get(reason, 0) + 1


class _Builder:
    """Fills a population with features that are new, finite and linearly independent.

    A few may be linear combinations of others, but not copies: x and x*z together span
    x*not(z). Models of all three have no evidence, models of one or two have, and can be
    compared.
    """

    def __init__(
        self, problem: Problem, registry: Registry, rejections: Rejections, most_settled: int = 0
    ) -> None:
        self._problem = problem
        self._n_settled = 0
        self._registry = registry
        self._rejections = rejections
        self._basis = Basis(problem.always_columns, problem.budget.population_size + most_settled)
        self._heredity_rule = problem.heredity_rule(registry)
        # Sub-expressions of this generation, so that no column is computed twice.
        self.cache: ColumnCache = {}
        self._n_dependent = 0
        # Features that are being added; members of a group need each other.
        self._coming: list[int] = []
        self.numbers: list[int] = []
        self.columns: list[Column] = []

    @property
    def size(self) -> int:
        """Number of features of the whole population."""
        return self._problem.budget.population_size + self._n_settled

    @property
    def full(self) -> bool:
        """Whether all places are taken, or no column can be admitted any more."""
        if len(self.numbers) == self.size:
            return True
        return self._basis.spans_all and self._n_dependent == self._most_dependent

    @property
    def _most_dependent(self) -> int:
        return self._problem.budget.population_size // _PLACES_PER_DEPENDENT

    def add(self, feature: Feature) -> bool:
        """Compute a candidate's column and admit it if it is fit for use.

        Under heredity, factors that are missing are admitted before it.
        """
        feature = self._problem.simplify(feature)
        number = self._registry.known(feature)
        if number is not None and number in self.numbers:
            self._rejections.count("already in the population")
            return False
        feature, column, status = self._problem.column_of(feature, self.cache)
        if status is not Status.OK:
            self._rejections.count(status.meaning)
            return False
        if not self._bring_factors(feature):
            self._rejections.count("without its factors")
            return False
        return self.admit(feature, column)

    def _bring_factors(self, feature: Feature) -> bool:
        """Admit the factors that a feature needs, as far as there is room beside it."""
        if self._heredity_rule.satisfied(feature, self.numbers):
            return True
        self._coming.append(self._heredity_rule.number(feature))
        for factor in self._heredity_rule.missing(feature, [*self.numbers, *self._coming]):
            room = len(self.numbers) + 1 < self.size
            if room and self._problem.grammar.admits(factor):
                self.add(factor)
        found = self._heredity_rule.satisfied(feature, [*self.numbers, *self._coming])
        self._coming.pop()
        return found

    def project(
        self, rng: np.random.Generator, transform: Transform, children: list[Feature]
    ) -> Feature | None:
        """Make a projection and count the draw of its weights, also if it is rejected later."""
        feature = self._problem.projector.build(rng, transform, children, self.cache)
        if feature is not None and self._problem.integrates_weights:
            self._registry.weight_draws.note(self._problem.simplify(feature))
        return feature

    def admit(self, feature: Feature, column: Column, *, strict: bool = False) -> bool:
        """Admit a feature with a sound column unless it depends on those already there.

        `strict`: without exceptions.
        """
        if not self._basis.admit(column):
            if strict or not self._excepted(feature, column):
                self._rejections.count("linearly dependent on the population")
                return False
            self._n_dependent += 1
        self.numbers.append(self._registry.number(feature, column))
        self.columns.append(column)
        return True

    def settle(self, feature: Feature, column: Column) -> None:
        """Admit a feature that every model is to contain, before all others."""
        self._n_settled += self.admit(feature, column, strict=True)

    def _excepted(self, feature: Feature, column: Column) -> bool:
        """Whether there is room for one more dependent feature, and it is no copy."""
        if self._problem.integrates_weights:
            # Every draw of weights belongs to a column, wherever that is met first.
            self._registry.number(feature, column)
        # Also lets the registry learn a simpler spelling of a column that is there.
        if self._registry.recognise(feature, column) in self.numbers:
            return False
        alone = Basis(self._problem.always_columns, 1)
        return self._n_dependent < self._most_dependent and alone.admit(column)

    def build(self) -> Population:
        n_rows = self._problem.table.n_rows
        columns = np.column_stack(self.columns) if self.columns else np.empty((n_rows, 0))
        return Population(np.array(self.numbers, dtype=np.int32), columns, self._n_settled)


def first_population(problem: Problem, registry: Registry, rejections: Rejections) -> Population:
    r""":math:`\mathcal{S}_0`: the covariates, or those most correlated with the response.

    With more covariates than places the choice is by the absolute correlation with the
    score residual of the null model (marginal testing, paper Sec. 3.3); those to be kept
    come first.
    """
    table = problem.table
    names = problem.free_names
    if len(names) > problem.budget.population_size:
        order = np.argsort(-problem.marginal_strength(), kind="stable")
        free = set(names)
        names = [table.names[j] for j in order if table.names[j] in free]
        names = [*problem.keep, *(name for name in names if name not in problem.keep)]
        names = problem.together(names)
    builder = _Builder(problem, registry, rejections)
    for name in names:
        if builder.full:
            break
        builder.admit(covariate(name), table.column(name), strict=True)
    return builder.build()


def all_covariates(problem: Problem, registry: Registry) -> Population:
    """Every covariate that is not in all models anyway, linearly dependent ones included.

    For enumeration: of dependent columns each may be right, only not together.
    """
    names = problem.free_names
    columns = [problem.table.column(name) for name in names]
    numbers = [
        registry.number(covariate(name), column)
        for name, column in zip(names, columns, strict=True)
    ]
    values = np.column_stack(columns) if columns else np.empty((problem.table.n_rows, 0))
    return Population(np.array(numbers, dtype=np.int32), values)


def next_population(
    rng: np.random.Generator,
    problem: Problem,
    registry: Registry,
    rejections: Rejections,
    population: Population,
    inclusion: FloatArray,
    *,
    first: bool = False,
    memory: OperatorMemory | None = None,
    screener: Screener | None = None,
) -> Population:
    r"""Filter :math:`\mathcal{S}_t` and fill it up again with new features.

    The `first` time, up to half of the free places go to features of the pool. `memory` notes
    which operator made which feature; with a `screener` a share of the newcomers is drawn by what
    they promise.
    """
    rule = problem.filtration
    deletion = np.where(inclusion < rule.threshold, rule.deletion, rule.floor)
    survives = rng.random(population.size) >= deletion
    kept = [registry.known(covariate(name)) for name in problem.keep]
    is_kept = np.isin(population.numbers, [number for number in kept if number is not None])
    survives |= is_kept
    if problem.has_heredity_rule:
        terms = population.prior_terms(problem, registry)
        survives = problem.heredity_rule(registry).surviving(terms, survives, inclusion)
    settled = _settle(rng, problem, survives, inclusion)
    survives[settled] = True
    builder = _Builder(problem, registry, rejections, settled.size)
    features = population.features(registry)
    # Not the population's own columns: a feature may have got a simpler name meanwhile,
    # whose column is an affine image of the old one, and children are computed from it.
    columns, _ = evaluate(features, problem.table, builder.cache)
    for position in settled:
        builder.settle(features[position], columns[:, position])
    # Features that settled before and are certain no more may be more than there are places.
    others = np.setdiff1d(np.flatnonzero(survives), settled)
    best = np.argsort(-inclusion[others] - is_kept[others], kind="stable")
    for position in np.sort(others[best[: problem.budget.population_size]]):
        builder.admit(features[position], columns[:, position])
    parents = Parents(
        population=features,
        weights=inclusion + _LEAST_WEIGHT,
        covariates=problem.covariates,
        pool=problem.pool,
    )
    if first:
        _plant(rng, problem, builder)
    if screener is not None:
        screener.look_at(features, columns, inclusion)
        _invite(rng, problem, builder, parents, screener)
    _fill(rng, problem, builder, parents, memory)
    return builder.build()


def _settle(
    rng: np.random.Generator, problem: Problem, survives: Mask, inclusion: FloatArray
) -> IntArray:
    """Positions of the features that every model of the next population contains.

    Those of the certain ones that stay open may be deleted, like all others.
    """
    size = problem.budget.population_size
    share = size // _PLACES_PER_CERTAIN
    certain = inclusion >= _CERTAIN
    if not problem.settles or np.count_nonzero(certain) <= share:
        return np.zeros(0, dtype=np.int64)
    # As many places are for newcomers, before features in doubt leave some to certain ones.
    n_open = min(share, max(size - share - np.count_nonzero(survives & ~certain), 0))
    return np.sort(rng.permutation(np.flatnonzero(certain))[n_open:])


def _plant(rng: np.random.Generator, problem: Problem, builder: _Builder) -> None:
    """Fill half of the free places from the pool, better features more often."""
    ranks = np.arange(1, len(problem.pool) + 1)
    # Sampling without replacement with weights 1 / rank: the smallest of E_r * r come first.
    order = np.argsort(rng.standard_exponential(ranks.size) * ranks)
    aim = (len(builder.numbers) + builder.size + 1) // 2
    for position in order:
        if len(builder.numbers) >= aim:
            return
        builder.add(problem.pool[position])


def _invite(
    rng: np.random.Generator,
    problem: Problem,
    builder: _Builder,
    parents: Parents,
    screener: Screener,
) -> None:
    """Give a share of the free places to features of large expected gain."""
    free = builder.size - len(builder.numbers)
    count = int(rng.binomial(free, problem.grammar.operators.informed))
    whole = problem.screening_table is problem.table
    cache = builder.cache if whole else {}
    if count == 0:
        return
    aim = len(builder.numbers) + count
    for feature in draw_newcomers(rng, problem, parents, screener, cache, count):
        if problem.grammar.admits(feature):
            builder.add(feature)
        if builder.full or len(builder.numbers) >= aim:
            return


def _fill(
    rng: np.random.Generator,
    problem: Problem,
    builder: _Builder,
    parents: Parents,
    memory: OperatorMemory | None,
) -> None:
    n_failed = 0
    while not builder.full and n_failed < _TRIES_PER_PLACE:
        n_failed += 1
        kind = draw_operator(rng, problem.grammar)
        feature = create(rng, parents, problem.grammar, builder.project, kind)
        if kind is None or feature is None:
            continue
        if builder.add(feature):
            n_failed = 0
            if memory is not None:
                memory.note(builder.numbers[-1], kind)
