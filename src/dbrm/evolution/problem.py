"""Everything that stays fixed while populations evolve."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.data import Block, Table, to_unit_length
from dbrm.errors import InvalidSettingError
from dbrm.evidence import (
    AbstractColumns,
    AbstractEngine,
    AbstractOutOfCoreEngine,
    AbstractPrepared,
    LatentEngine,
)
from dbrm.evolution.constraints import ConstrainedPopulation, Constraints
from dbrm.evolution.heredity import Heredity, HeredityRule
from dbrm.evolution.information import InformationRule
from dbrm.evolution.latent import LatentTerms
from dbrm.evolution.operators import Grammar
from dbrm.evolution.projection import Projector
from dbrm.evolution.registry import Registry
from dbrm.features import (
    ColumnCache,
    Feature,
    covariate,
    evaluate,
    fit_knots,
    multiply,
)
from dbrm.features.evaluation import Reader, compute_column
from dbrm.priors import ModelPrior
from dbrm.search import Exploration, Mjmcmc, PriorTerms
from dbrm.status import Status

__all__ = [
    "MAX_MERGED",
    "MAX_MODELS",
    "WINDOW",
    "FeatureColumns",
    "Filtration",
    "Problem",
    "SearchBudget",
    "Stop",
]


#: Models that one chain, and that all chains together, keep unless memory is limited; and how far
#: below the best one they may be (nats).
MAX_MODELS, MAX_MERGED, WINDOW = 100_000, 200_000, 25.0
# Most rows on which candidates are compared before they enter a population.
_SCREENING_ROWS = 2_000


@final
@dataclass(frozen=True, slots=True)
class Filtration:
    r"""How features leave a population (paper, Sec. 3.3).

    Parameters
    ----------
    threshold
        Features whose inclusion within the population is below this are candidates.
    deletion
        :math:`P_{del}`, the probability that a candidate is deleted.
    floor
        Probability that any other feature is deleted. It must be positive: otherwise
        a strong feature could never leave and the chain of populations would not be
        irreducible, which the paper's Theorem 1 needs.
    """

    threshold: float = 0.2
    deletion: float = 0.9
    floor: float = 0.02

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            msg = f"Filtration needs a threshold in [0, 1]; got threshold={self.threshold!r}."
            raise InvalidSettingError(msg)
        if not 0.0 < self.floor <= self.deletion < 1.0:
            msg = (
                "Filtration needs 0 < floor <= deletion < 1, so that every feature can leave "
                f"and stay; got floor={self.floor!r}, deletion={self.deletion!r}."
            )
            raise InvalidSettingError(msg)


@final
@dataclass(frozen=True, slots=True)
class Stop:
    """When a chain ends before its last population.

    Parameters
    ----------
    seconds, evaluations, unique_models
        Limits of the time, of the models evaluated and of different models.
    patience
        Number of populations in a row after which a chain ends if none of them holds more mass
        than the best one before.
    """

    seconds: float = inf
    evaluations: float = inf
    unique_models: int | None = None
    patience: int | None = None


@final
@dataclass(frozen=True, slots=True)
class SearchBudget:
    r"""Limits of one chain's search.

    Parameters
    ----------
    population_size, n_populations
        :math:`s` and :math:`T_{max}`.
    mjmcmc
        The search inside populations that are not enumerated; its ``n_steps`` is
        :math:`N_{expl}`.
    n_init, n_final
        Steps in the first and in the last population, :math:`N_{init}` and
        :math:`N_{final}`; for the reversible samplers `n_final` is the number of their steps.
    reservoir
        Most features in the frozen stock of the reversible samplers.
    max_models, max_merged, window
        Most models that one chain keeps, and that all chains keep together; and how far below
        the best models are kept (nats).
    max_averaged
        Most models that predictions average over; ``None`` for a number that takes seconds.
    stop
        When to end early.
    """

    population_size: int
    n_populations: int
    n_init: int
    n_final: int
    mjmcmc: Mjmcmc = field(default_factory=Mjmcmc)
    reservoir: int = 100
    max_models: int = MAX_MODELS
    max_merged: int = MAX_MERGED
    window: float = WINDOW
    max_averaged: int | None = None
    stop: Stop = field(default_factory=Stop)


@final
@dataclass(frozen=True, eq=False)
class Problem:
    r"""Data, evidence, priors and rules of one run.

    Parameters
    ----------
    always
        Features that every model contains.
    keep
        Covariates that filtration never removes from a population.
    pool
        Promising features found beforehand, best first; they extend the set
        :math:`\mathcal{F}_0` that mutation draws from.
    heredity
        Whether a product needs all or one of its factors beside it.
    latent
        Latent effects that are selected together with features.
    groups
        Covariates of which a model contains all or none.
    out_of_core
        Evidence from all rows of data out of core. `table` is then a sample of them, on which
        features are built and compared, and `engine` knows the response of the sample, with
        weights that make it stand for all rows.
    subsampled
        Whether models are searched by the evidence of the sample; what is reported is not.
    exact_populations
        Whether populations whose evidence can be expanded are searched exhaustively rather than by
        MJMCMC.
    information
        What features must carry; without it any column that is not constant will do.
    constraints
        What fitted models must obey.
    completed
        Tables with imputed values, each with its engine, over which what is reported is averaged;
        `table` and `engine` are the first of them, on which models are searched.
    remainder
        Whether predictions average over models with a remainder of all covariates, too.
    estimate_unvisited
        Whether the probability of models that no chain visited is estimated and counted in.
    whole
        The table with the columns of single rare levels, which only a remainder uses; ``None`` if
        there are none.
    """

    table: Table
    engine: AbstractEngine
    model_prior: ModelPrior
    grammar: Grammar
    filtration: Filtration
    budget: SearchBudget
    max_model_size: int
    always: tuple[Feature, ...] = ()
    keep: tuple[str, ...] = ()
    pool: tuple[Feature, ...] = ()
    heredity: Heredity | None = None
    latent: LatentTerms = field(default_factory=LatentTerms)
    groups: tuple[tuple[Feature, ...], ...] = ()
    out_of_core: AbstractOutOfCoreEngine | None = None
    subsampled: bool = False
    exact_populations: bool = True
    information: InformationRule | None = None
    constraints: Constraints | None = None
    completed: tuple[tuple[Table, AbstractEngine], ...] = ()
    remainder: bool = False
    estimate_unvisited: bool = False
    whole: Table | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows of the data, of which the table may be a sample."""
        return self.table.n_rows if self.out_of_core is None else self.out_of_core.n_rows

    @cached_property
    def settles(self) -> bool:
        """Whether features that are certain may leave their places to others: see `Population`."""
        return (
            self.exact_populations
            and self.max_model_size > self.budget.population_size
            and self.budget.population_size <= self.engine.settling_limit
            and self.out_of_core is None
            and self.constraints is None
            and not self.has_heredity_rule
        )

    def prepare(
        self, features: Sequence[Feature], columns: Matrix, n_settled: int = 0
    ) -> AbstractPrepared:
        """Prepare a population for the search; `columns` are those of the features.

        The first `n_settled` features are in every model, and not in the masks.
        """
        if n_settled:
            return self.engine.prepare_beside(columns, n_settled)
        if self.constraints is not None:
            return ConstrainedPopulation(
                self.engine.prepare(columns),
                self.engine,
                columns,
                self.constraints.terms(self.always, self.always_columns),
                self.constraints.terms(features, columns),
            )
        if self.out_of_core is None or self.subsampled:
            return self.engine.prepare(columns)
        return self.out_of_core.prepare(FeatureColumns(tuple(features)))

    @cached_property
    def covariates(self) -> list[Feature]:
        r"""The input covariates as features, :math:`\mathcal{F}_0`."""
        return [covariate(name) for name in self.table.names]

    @cached_property
    def projector(self) -> Projector:
        """Builds projections by the grammar's strategy, and remembers them."""
        return Projector(self.grammar.projection, self.engine, self.table)

    @property
    def integrates_weights(self) -> bool:
        """Whether draws of a projection's weights are counted and share the prior."""
        return self.grammar.projection.integrated

    @cached_property
    def explored_first(self) -> list[Exploration]:
        """The exhaustive search of the first population, once a chain has done it for all."""
        return []

    def without_latent(self) -> "Problem":
        """The same problem without latent effects, for fast sweeps over features."""
        if not isinstance(self.engine, LatentEngine):
            return self
        return replace(self, engine=self.engine.base, latent=LatentTerms())

    @cached_property
    def free_names(self) -> list[str]:
        """Covariates that a model may contain or not."""
        return [
            name
            for name, feature in zip(self.table.names, self.covariates, strict=True)
            if feature not in self.always and self.grammar.admits(feature)
        ]

    @cached_property
    def screening_rows(self) -> IntArray:
        """The rows on which many candidates are compared: evenly thinned out if there are many."""
        n_rows = self.table.n_rows
        return np.linspace(0, n_rows - 1, min(n_rows, _SCREENING_ROWS)).astype(np.int64)

    @cached_property
    def screening_table(self) -> Table:
        """The table with the rows for screening only."""
        whole = self.screening_rows.size == self.table.n_rows
        return self.table if whole else self.table.take(self.screening_rows)

    @cached_property
    def always_columns(self) -> Matrix:
        """Columns of the features that every model contains."""
        return evaluate(self.always, self.table)[0]

    def simplify(self, feature: Feature) -> Feature:
        """Simplify powers of two-valued columns and factors that cancel."""
        return self.grammar.two_valued.simplify(feature)

    def column_of(
        self, feature: Feature, cache: ColumnCache | None = None
    ) -> tuple[Feature, Column, Status]:
        """A candidate with its knots learned from the training rows, its column and its status."""
        columns = {} if cache is None else cache
        feature = fit_knots(feature, self.table, columns)
        values, statuses = evaluate([feature], self.table, columns)
        status = Status(statuses[0])
        if status is Status.OK and self.information is not None:
            status = self.information.status(feature, columns)
        return feature, values[:, 0], status

    @property
    def complexity_price(self) -> float:
        """What one unit of complexity costs (nats), from an example: a square of a covariate."""
        one = self.covariates[0]
        return -self.model_prior.feature_log_prior(multiply(one, one)) / 2.0

    def marginal_strength(self) -> FloatArray:
        """Absolute correlation of each covariate with the residual of the null model."""
        return self.strength_of(self.table.values)

    def strength_of(self, columns: Matrix) -> FloatArray:
        """Absolute correlation of columns with the residual of the null model."""
        residual = self.engine.score_test(np.empty((self.table.n_rows, 0))).residual
        return _correlation(columns, residual)

    def heredity_rule(self, registry: Registry) -> HeredityRule:
        """The rule of heredity and groups over a registry."""
        return HeredityRule(self.heredity, self.always, self.table, registry, self.groups)

    @property
    def has_heredity_rule(self) -> bool:
        """Whether there is heredity or a group."""
        return self.heredity is not None or bool(self.groups)

    def together(self, names: list[str]) -> list[str]:
        """The covariates reordered: each group together, at the position of its first member."""
        groups = {f.covariates[0]: group for group in self.groups for f in group}
        rows = [
            [f.covariates[0] for f in groups[name]] if name in groups else [name] for name in names
        ]
        return list(dict.fromkeys(name for row in rows for name in row))

    def prior_terms(self, feature_terms: list[float]) -> PriorTerms:
        """Prior of the masks of a population whose features have these terms.

        After the features come the latent effects.
        """
        sizes = np.arange(len(feature_terms) + 1)
        size_terms = self.model_prior.size_log_prior(sizes)
        size_terms = np.where(sizes <= self.max_model_size, size_terms, -np.inf)
        terms = np.concatenate([feature_terms, self.latent.log_prior]).astype(np.float64)
        return PriorTerms(terms, size_terms, latent=self.latent.count_log_prior)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumns(AbstractColumns):
    """The columns of some features, computed block by block; parts in common once per block."""

    features: tuple[Feature, ...]

    @property
    def size(self) -> int:
        return len(self.features)

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(sorted({name for feature in self.features for name in feature.covariates}))

    @property
    def sources(self) -> tuple[str, ...]:
        # The text holds all numbers: chains with the same feature share its column.
        return tuple(feature.text for feature in self.features)

    def make(self, block: Block) -> list[Column]:
        reader, cache = Reader(block.columns), ColumnCache()
        with np.errstate(all="ignore"):
            return [compute_column(feature, reader, cache) for feature in self.features]

    def take(self, positions: IntArray) -> "FeatureColumns":
        return FeatureColumns(tuple(self.features[j] for j in positions))


def _correlation(values: Matrix, residual: Column) -> FloatArray:
    """Absolute correlation of each column with the residual, in blocks of columns."""
    strength = np.empty(values.shape[1])
    for start in range(0, values.shape[1], 256):
        block = values[:, start : start + 256]
        strength[start : start + 256] = np.abs(residual @ to_unit_length(block, fill=0.0))
    return strength
