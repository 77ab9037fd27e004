"""Where a posterior gets the fits of its models, and the training data.

After a run any model can be fitted to the data (`LiveSource`). A posterior from a file has the
fits that were made before it was saved (`StoredSource`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import Table
from dbrm.evidence import (
    AbstractFamily,
    BoundEffect,
    FunctionEngine,
    GlmEngine,
    Jeffreys,
    JointEngine,
    JointFamily,
    LatentEngine,
    Link,
    ModelFit,
    find_family,
    find_link,
    fit_with,
)
from dbrm.evidence.families.cox import CoxLikelihood
from dbrm.evidence.families.weibull import Weibull
from dbrm.evolution import FeatureColumns, Problem
from dbrm.features import Feature, Ranges, Transform, evaluate, training_ranges
from dbrm.posterior.dispersion import DispersionPosterior, dispersion_posteriors
from dbrm.posterior.hazard import AbstractHazards, WeibullHazards, cox_hazards
from dbrm.posterior.limits import fitted_ranges
from dbrm.posterior.pooling import pool_fits
from dbrm.posterior.rows import Rows
from dbrm.posterior.skewness import mean_shifts

if TYPE_CHECKING:
    from dbrm.posterior.path import PathStep
    from dbrm.posterior.remainder import RemainderModels

__all__ = ["AveragedFits", "Glm", "LiveSource", "Source", "StoredSource", "count_averaged"]

# Predictions average over the most probable models that hold this share of the probability, and
# over at most this many.
SHARE = 0.9999
MOST_MODELS = 2_000
# At least this many if they are needed; more while all fits together take less than this number
# of multiplications (a few seconds).
FEWEST_MODELS = 300
WORK = 2e9
# Most nodes of latent effects kept, over all averaged models.
LATENT_NUMBERS = 1e6


@final
@dataclass(frozen=True, slots=True)
class Glm:
    """Family and link of a generalised linear model."""

    family: AbstractFamily
    link: Link


@final
@dataclass(frozen=True, slots=True, eq=False)
class AveragedFits:
    """Fits of the models that predictions average over.

    Parameters
    ----------
    shifts
        Posterior mean minus mode of the coefficients, for each model.
    dispersions
        Posterior of the dispersion in each model.
    ranges
        Training ranges of covariates and of the arguments of bounded functions.
    fitted
        Lowest and highest mean of each model over training rows.
    hazards
        Cumulative hazards of models of survival times; ``None`` for other responses.
    """

    fits: list[ModelFit]
    shifts: list[FloatArray]
    dispersions: list[DispersionPosterior]
    ranges: Ranges
    fitted: Matrix
    hazards: AbstractHazards | None = None


class Source(Protocol):
    """Training data, known transforms, and the fits of models."""

    @property
    def table(self) -> Table:
        """The training columns, by which equivalent spellings are recognised."""

    @property
    def n_rows(self) -> int:
        """Number of rows that the models were fitted to."""

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """Transforms that may occur in the text of a feature, besides the built-in ones."""

    @property
    def always(self) -> tuple[Feature, ...]:
        """Features that every model contains."""

    @property
    def glm(self) -> Glm | None:
        """Family and link; ``None`` for the Gaussian response with exact evidence."""

    @property
    def effects(self) -> tuple[BoundEffect, ...]:
        """Latent effects that models may contain."""

    def training(self) -> Rows | None:
        """The training rows with their response; ``None`` from a file, which has no response."""

    def count_averaged(self, probability: FloatArray, sizes: IntArray) -> int:
        """Number of the leading models that predictions average over."""

    def fit(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        """Fit one model for tables and formulas, with a reliable status."""

    def fit_averaged(
        self, features: Sequence[Feature], models: Sequence[IntArray], effects: Masks
    ) -> AveragedFits:
        """Fit models for averaging; a model is given by the positions of its features."""


def _model_key(features: Sequence[Feature], effects: Mask) -> tuple[int, ...]:
    return (*(feature.key for feature in features), *np.flatnonzero(effects).tolist())


@final
@dataclass(frozen=True, eq=False)
class LiveSource:
    """Fits models to the data of a run."""

    problem: Problem
    _fits: dict[tuple[int, ...], ModelFit] = field(default_factory=dict, repr=False)

    @property
    def table(self) -> Table:
        return self.problem.table if self.problem.whole is None else self.problem.whole

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return self.problem.grammar.transforms + self.problem.grammar.knots

    @property
    def always(self) -> tuple[Feature, ...]:
        return self.problem.always

    @property
    def glm(self) -> Glm | None:
        engine = self.problem.engine
        if isinstance(engine, LatentEngine):
            return Glm(engine.family, engine.link)
        engine = engine.base if isinstance(engine, FunctionEngine) else engine
        if isinstance(engine, JointEngine):
            return Glm(engine.family, engine.link)
        if not isinstance(engine, GlmEngine):
            return None
        family = find_family(engine.family)
        return Glm(family, find_link(engine.link or family.default_link))

    @property
    def effects(self) -> tuple[BoundEffect, ...]:
        return self.problem.latent.effects

    def training(self) -> Rows:
        seen = self.problem.engine.likelihood()
        has_trials = seen.family.has_trials
        event = None
        if self._joint_engine is not None:
            event = self._joint_engine.observations.event
        # A row of integer weight w stands for w equal rows; other weights are shown once.
        counts = np.floor(seen.weights).astype(np.int64)
        if self.problem.out_of_core is not None:
            # A weighted sample of the rows: each is shown once.
            counts = np.ones_like(counts)
        rows = np.repeat(np.arange(counts.size), np.where(counts == seen.weights, counts, 1))
        return Rows(
            table=self.table.take(rows),
            response=seen.response[rows],
            offset=seen.offset[rows],
            trials=seen.trials[rows] if has_trials else None,
            event=None if event is None else event[rows],
        )

    def count_averaged(self, probability: FloatArray, sizes: IntArray) -> int:
        most = self.problem.budget.max_averaged
        count = count_averaged(probability, sizes, self.n_rows, most)
        engine = self._joint_engine
        if engine is not None and most is None:
            count = min(count, engine.joint.affordable_fits)
        return min(count, most_latent(self.effects)) if self.effects and most is None else count

    def fit(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        key = _model_key(features, effects)
        if key not in self._fits:
            self._fits[key] = self._fit_new(features, effects)
        return self._fits[key]

    def _fit_new(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        if self.problem.out_of_core is not None:
            every = np.ones((1, len(features)), dtype=np.bool_)
            return self.problem.out_of_core.fit_many(FeatureColumns(tuple(features)), every)[0]
        if self.problem.completed:
            every = np.concatenate([np.ones(len(features), dtype=np.bool_), effects])
            return self._fit_completed(features, every[None])[0]
        return fit_with(self.problem.engine, evaluate(features, self.table)[0], effects)

    def fit_averaged(
        self, features: Sequence[Feature], models: Sequence[IntArray], effects: Masks
    ) -> AveragedFits:
        fits = self._fit_many(features, models, effects)
        ones, always = np.ones(self.table.n_rows), evaluate(self.always, self.table)[0]
        designs = np.column_stack([ones, always]), evaluate(features, self.table)[0]
        return AveragedFits(
            fits=fits,
            shifts=self._mean_shifts(designs, models, fits),
            dispersions=self._dispersions(designs, models, fits),
            ranges=training_ranges((*self.always, *features), self.table),
            fitted=fitted_ranges(*designs, models, fits, self.glm and self.glm.link),
            hazards=self._hazards(designs, models, fits),
        )

    @property
    def _joint_engine(self) -> JointEngine | None:
        engine = self.problem.engine
        engine = engine.base if isinstance(engine, FunctionEngine) else engine
        return engine if isinstance(engine, JointEngine) else None

    def _hazards(
        self,
        designs: tuple[Matrix, Matrix],
        models: Sequence[IntArray],
        fits: Sequence[ModelFit],
    ) -> AbstractHazards | None:
        engine = self._joint_engine
        if engine is None:
            return None
        if isinstance(engine.joint, CoxLikelihood):
            offset = engine.likelihood().offset
            return cox_hazards(engine.joint, designs, models, fits, offset)
        return WeibullHazards(fits) if isinstance(engine.family, Weibull) else None

    def _fit_many(
        self, features: Sequence[Feature], models: Sequence[IntArray], effects: Masks
    ) -> list[ModelFit]:
        masks = np.zeros((len(models), len(features)), dtype=np.bool_)
        for mask, members in zip(masks, models, strict=True):
            mask[members] = True
        if self.problem.out_of_core is not None:
            return self.problem.out_of_core.fit_many(FeatureColumns(tuple(features)), masks)
        masks = np.hstack([masks, effects])
        if self.problem.completed:
            return self._fit_completed(features, masks)
        columns = evaluate(features, self.table)[0]
        return self.problem.engine.fit_many(columns, masks)

    def _fit_completed(self, features: Sequence[Feature], masks: Masks) -> list[ModelFit]:
        fits = [
            engine.fit_many(evaluate(features, table)[0], masks)
            for table, engine in self.problem.completed
        ]
        return [pool_fits(own) for own in zip(*fits, strict=True)]

    @property
    def _is_normal(self) -> bool:
        """Whether mean and covariance are all that is known of the parameters of a model.

        Of models with latent effects, and the like, a fit holds posterior means already.
        """
        if isinstance(self.problem.engine, LatentEngine) or self.problem.completed:
            return True
        return self.glm is None or isinstance(self.glm.family, JointFamily)

    def _mean_shifts(
        self,
        designs: tuple[Matrix, Matrix],
        models: Sequence[IntArray],
        fits: Sequence[ModelFit],
    ) -> list[FloatArray]:
        if self._is_normal:
            return [np.zeros_like(fit.coefficients) for fit in fits]
        engine = self.problem.engine
        jeffreys = isinstance(engine, GlmEngine) and isinstance(engine.prior, Jeffreys)
        return mean_shifts(engine.likelihood(), *designs, models, fits, jeffreys=jeffreys)

    def _dispersions(
        self,
        designs: tuple[Matrix, Matrix],
        models: Sequence[IntArray],
        fits: Sequence[ModelFit],
    ) -> list[DispersionPosterior]:
        # Out-of-core data have so many rows that the dispersion is known.
        if self._is_normal or self.problem.out_of_core is not None:
            return [DispersionPosterior.known(fit.dispersion) for fit in fits]
        return dispersion_posteriors(self.problem.engine.likelihood(), *designs, models, fits)


@final
@dataclass(frozen=True, eq=False)
class StoredSource:
    """Has the fits that were made before the posterior was saved.

    Parameters
    ----------
    reports
        Fits of the best and the median probability model, by their features and effects.
    path
        The path of formulas; files of older versions have none.
    lack_of_fit
        Of a Gaussian response; files of older versions have none.
    remainder
        Models with a remainder; files of older versions have none.
    """

    table: Table
    n_rows: int
    transforms: tuple[Transform, ...]
    always: tuple[Feature, ...]
    glm: Glm | None
    effects: tuple[BoundEffect, ...]
    averaged: AveragedFits
    reports: dict[tuple[int, ...], ModelFit]
    path: "list[PathStep]"
    lack_of_fit: float | None = None
    remainder: "RemainderModels | None" = None

    def training(self) -> None:
        return None

    def count_averaged(self, probability: FloatArray, sizes: IntArray) -> int:  # noqa: ARG002
        return len(self.averaged.fits)

    def fit(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        return self.reports[_model_key(features, effects)]

    def has_fit(self, features: Sequence[Feature], effects: Mask, size: int) -> bool:
        """Whether there is a fit of a model, with this number of coefficients."""
        fit = self.reports.get(_model_key(features, effects))
        return fit is not None and fit.coefficients.size == size

    def fit_averaged(
        self,
        features: Sequence[Feature],  # noqa: ARG002
        models: Sequence[IntArray],  # noqa: ARG002
        effects: Masks,  # noqa: ARG002
    ) -> AveragedFits:
        return self.averaged


def most_latent(effects: Sequence[BoundEffect]) -> int:
    """Most models whose latent effects are kept: about ten numbers for each node."""
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
