"""What a posterior draws on besides its models: training columns, and fits of models.

A source is live after a run, when models can be fitted at will, or stored, when it comes
from a file and answers for the models that were fitted before it was written.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import Table
from dbrm.evidence import (
    BoundEffect,
    Family,
    FunctionEngine,
    GlmEngine,
    Jeffreys,
    LatentEngine,
    Link,
    ModelFit,
    find_family,
    find_link,
    fit_with,
)
from dbrm.evolution import FeatureColumns, Problem
from dbrm.features import Feature, Ranges, Transform, evaluate, training_ranges
from dbrm.posterior.dispersion import DispersionPosterior, dispersion_posteriors
from dbrm.posterior.limits import fitted_ranges
from dbrm.posterior.rows import Rows
from dbrm.posterior.skewness import mean_shifts

__all__ = ["AbstractSource", "Law", "LiveSource", "count_averaged"]

# Predictions average over the most probable models that hold this share, at most so many.
SHARE = 0.9999
MOST_MODELS = 2_000
# Always so many, if they are needed; more while all fits together stay below so many
# multiplications (a few seconds).
FEWEST_MODELS = 300
WORK = 2e9
# Nodes of latent effects kept, over all averaged models.
LATENT_NUMBERS = 1e6


@final
@dataclass(frozen=True, slots=True)
class Law:
    """Family and link of the response."""

    family: Family
    link: Link


class AbstractSource(ABC):
    """Training columns, known transforms, and the fits of models."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """The training columns, by which equivalent spellings are recognised."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows that the models were fitted to."""

    @property
    @abstractmethod
    def transforms(self) -> tuple[Transform, ...]:
        """Transforms that may occur in the text of a feature, besides the built-in ones."""

    @property
    @abstractmethod
    def always(self) -> tuple[Feature, ...]:
        """Features that every model contains."""

    @property
    @abstractmethod
    def law(self) -> Law | None:
        """Family and link; ``None`` for the Gaussian response with exact evidence."""

    @abstractmethod
    def training(self) -> Rows | None:
        """The rows that the models were fitted to; none where the response is not kept."""

    @abstractmethod
    def count_averaged(self, probability: FloatArray, sizes: IntArray) -> int:
        """Number of the leading models that predictions average over."""

    @property
    @abstractmethod
    def effects(self) -> tuple[BoundEffect, ...]:
        """Latent effects that models may contain."""

    @abstractmethod
    def fit(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        """The fit of one model for reports, its status certified."""

    @abstractmethod
    def fit_many(
        self, features: Sequence[Feature], models: Sequence[IntArray], effects: Masks
    ) -> list[ModelFit]:
        """Fits for averaging; a model is given by the positions of its features."""

    @abstractmethod
    def ranges(self, features: Sequence[Feature]) -> Ranges:
        """Ranges in training, of covariates and of the arguments of bounded functions."""

    @abstractmethod
    def fitted_ranges(
        self, features: Sequence[Feature], models: Sequence[IntArray], fits: Sequence[ModelFit]
    ) -> Matrix:
        """Lowest and highest mean of each of the models over training rows."""

    @abstractmethod
    def mean_shifts(
        self, features: Sequence[Feature], models: Sequence[IntArray], fits: Sequence[ModelFit]
    ) -> list[FloatArray]:
        """How far the posterior mean of each fit's coefficients is from their mode."""

    @abstractmethod
    def dispersions(
        self, features: Sequence[Feature], models: Sequence[IntArray], fits: Sequence[ModelFit]
    ) -> list[DispersionPosterior]:
        """Posterior of the dispersion in each of the models."""


@final
@dataclass(frozen=True, eq=False)
class LiveSource(AbstractSource):
    """Fits models of the problem that a run has just worked on."""

    problem: Problem
    _fits: dict[tuple[int, ...], ModelFit] = field(default_factory=dict, repr=False)

    @property
    def table(self) -> Table:
        return self.problem.table

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return self.problem.grammar.transforms

    @property
    def always(self) -> tuple[Feature, ...]:
        return self.problem.always

    @property
    def law(self) -> Law | None:
        engine = self.problem.engine
        if isinstance(engine, LatentEngine):
            return Law(engine.family, engine.link)
        engine = engine.base if isinstance(engine, FunctionEngine) else engine
        if not isinstance(engine, GlmEngine):
            return None
        family = find_family(engine.family)
        return Law(family, find_link(engine.link or family.default_link))

    def training(self) -> Rows:
        seen = self.problem.engine.likelihood()
        has_trials = seen.family.has_trials
        # Merged rows come apart again; weights that are no counts have no rows to show.
        counts = np.floor(seen.weights).astype(np.int64)
        if self.problem.tall is not None:
            # A sample of the rows, each once; their weights make them stand for all.
            counts = np.ones_like(counts)
        rows = np.repeat(np.arange(counts.size), np.where(counts == seen.weights, counts, 1))
        return Rows(
            table=self.table.take(rows),
            response=seen.response[rows],
            offset=seen.offset[rows],
            trials=seen.trials[rows] if has_trials else None,
        )

    @property
    def effects(self) -> tuple[BoundEffect, ...]:
        return self.problem.latent.effects

    def count_averaged(self, probability: FloatArray, sizes: IntArray) -> int:
        most = self.problem.budget.max_averaged
        count = count_averaged(probability, sizes, self.n_rows, most)
        return min(count, most_latent(self.effects)) if self.effects and most is None else count

    def fit(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        key = (*(feature.key for feature in features), *np.flatnonzero(effects).tolist())
        if key not in self._fits:
            self._fits[key] = self._fit_new(features, effects)
        return self._fits[key]

    def _fit_new(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        if self.problem.tall is not None:
            every = np.ones((1, len(features)), dtype=np.bool_)
            return self.problem.tall.fit_many(FeatureColumns(tuple(features)), every)[0]
        return fit_with(self.problem.engine, evaluate(features, self.table)[0], effects)

    def fit_many(
        self, features: Sequence[Feature], models: Sequence[IntArray], effects: Masks
    ) -> list[ModelFit]:
        masks = np.zeros((len(models), len(features)), dtype=np.bool_)
        for mask, chosen in zip(masks, models, strict=True):
            mask[chosen] = True
        if self.problem.tall is not None:
            return self.problem.tall.fit_many(FeatureColumns(tuple(features)), masks)
        columns = evaluate(features, self.table)[0]
        return self.problem.engine.fit_many(columns, np.hstack([masks, effects]))

    def ranges(self, features: Sequence[Feature]) -> Ranges:
        return training_ranges(features, self.table)

    def fitted_ranges(
        self, features: Sequence[Feature], models: Sequence[IntArray], fits: Sequence[ModelFit]
    ) -> Matrix:
        link = None if self.law is None else self.law.link
        return fitted_ranges(*self._designs(features), models, fits, link)

    def mean_shifts(
        self, features: Sequence[Feature], models: Sequence[IntArray], fits: Sequence[ModelFit]
    ) -> list[FloatArray]:
        # Beside latent effects the moments of a fit are of the posterior itself.
        if self.law is None or self.effects:
            return [np.zeros_like(fit.coefficients) for fit in fits]
        engine = self.problem.engine
        jeffreys = isinstance(engine, GlmEngine) and isinstance(engine.prior, Jeffreys)
        designs = self._designs(features)
        return mean_shifts(engine.likelihood(), *designs, models, fits, jeffreys=jeffreys)

    def dispersions(
        self, features: Sequence[Feature], models: Sequence[IntArray], fits: Sequence[ModelFit]
    ) -> list[DispersionPosterior]:
        # Of tall data the rows at hand are a sample; with so many the dispersion is known.
        if self.law is None or self.effects or self.problem.tall is not None:
            return [DispersionPosterior.known(fit.dispersion) for fit in fits]
        likelihood = self.problem.engine.likelihood()
        return dispersion_posteriors(likelihood, *self._designs(features), models, fits)

    def _designs(self, features: Sequence[Feature]) -> tuple[Matrix, Matrix]:
        """Training columns: the constant and those of every model, and the features."""
        ones, always = np.ones(self.table.n_rows), evaluate(self.always, self.table)[0]
        return np.column_stack([ones, always]), evaluate(features, self.table)[0]


def most_latent(effects: Sequence[BoundEffect]) -> int:
    """Most models whose latent effects are kept: some ten numbers for each node."""
    return max(10, min(FEWEST_MODELS, int(LATENT_NUMBERS // sum(b.size for b in effects))))


def count_averaged(
    probability: FloatArray, sizes: IntArray, n_rows: int, most: int | None = None
) -> int:
    """How many of the leading models predictions average over.

    `most` replaces the limits on number and work.
    """
    enough = int(np.searchsorted(np.cumsum(probability), SHARE)) + 1
    needed = min(enough, most or MOST_MODELS, probability.size)
    if most is not None:
        return needed
    work = np.cumsum(float(n_rows) * (sizes[:needed] + 1.0) ** 2)
    affordable = int(np.searchsorted(work, WORK, side="right"))
    return min(needed, max(affordable, FEWEST_MODELS))
