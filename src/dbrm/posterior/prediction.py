"""Predictions averaged over models: which models, their fits, and new rows.

It sees a table of new rows and fitted models; neither the search nor the training data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from dbrm._kernels.prediction import quadratic_forms
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import Table, check_vector
from dbrm.evidence import BoundEffect, ClassFamily, Family, ModelFit, columns_of, find_link
from dbrm.features import Covariate, Feature, Ranges, evaluate
from dbrm.posterior.class_mixture import ClassMixture
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.hazard import AbstractHazards
from dbrm.posterior.limits import Limits
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.source import Glm
from dbrm.posterior.survival_mixture import SurvivalMixture

__all__ = ["AveragedModels", "Mixture", "shift_of"]

# Models times rows held at once while predicting: a family that integrates holds several
# numbers for each.
_STUDENT_BLOCK, _FAMILY_BLOCK = 4_000_000, 1_000_000

Mixture = StudentMixture | FamilyMixture | SurvivalMixture | ClassMixture
# Weights, modes, shifts and variances of the linear predictors: models by rows.
Predictor = tuple[Matrix, Matrix, Matrix, Matrix]


@final
@dataclass(frozen=True, eq=False)
class AveragedModels:
    r"""The models that predictions average over, ready for new rows.

    Parameters
    ----------
    features
        Every feature that some model uses.
    models
        For each model the positions of its features.
    probability
        Posterior probability of each model; they need not add to one.
    shifts
        For each model how far the mean of its coefficients is from their mode.
    dispersions
        For each model the posterior of its dispersion, for families that integrate.
    glm
        Family and link, ``None`` for mixtures of t distributions.
    integrate
        Whether a family's predictions integrate over the coefficients.
    effects
        The latent effects of the run, with the nodes of the training rows. They take part
        in the predictions of tables that know their places.
    hazards
        Cumulative hazards of models of survival times, ``None`` for other responses.
    ranges, fitted, hold
        Ranges of covariates and arguments in training, ranges of the means of the models, and
        whether they are held: see `dbrm.posterior.limits`.
    straight
        Which models go on linearly outside the ranges; ``None`` for those of covariates alone.
    squares, origin
        Which models are of the root :math:`\sqrt{y + c}` of the response, ``None`` for none, and
        :math:`c` (`dbrm.evidence.root_scale`).
    """

    features: tuple[Feature, ...]
    models: Sequence[IntArray]
    probability: FloatArray
    fits: Sequence[ModelFit]
    shifts: Sequence[FloatArray]
    dispersions: Sequence[DispersionPosterior]
    always: tuple[Feature, ...]
    glm: Glm | None
    integrate: bool
    effects: tuple[BoundEffect, ...] = ()
    ranges: Ranges = field(default_factory=dict)
    fitted: Matrix = field(default_factory=lambda: np.empty((0, 2)))
    hold: bool = True
    hazards: AbstractHazards | None = None
    straight: Mask | None = None
    squares: Mask | None = None
    origin: float = 0.0

    @property
    def integrates(self) -> bool:
        """Whether coefficients are uncertain: always under a t, as asked under a family."""
        return self.glm is None or self.integrate

    def centre(self, model: int) -> FloatArray:
        """Posterior mean of a model's coefficients, their mode where they count as certain."""
        coefficients = self.fits[model].coefficients
        return coefficients + self.shifts[model] if self.integrates else coefficients

    def tangent(self, model: int, means: FloatArray) -> tuple[float, FloatArray]:
        """Mean at the row with these means of a model's columns, and the slopes there.

        Those of a linear predictor; of a model of the root, those of its square.
        """
        coefficients = self.centre(model)
        level, slopes = float(coefficients[0] + means @ coefficients[1:]), coefficients[1:]
        if self.squares is None or not self.squares[model]:
            return level, slopes
        level = max(level, 0.0)
        return level**2 + self.fits[model].dispersion - self.origin, 2.0 * level * slopes

    def alone(self, model: int) -> "AveragedModels":
        """One model without the others."""
        return replace(
            self,
            models=[self.models[model]],
            probability=np.ones(1),
            fits=[self.fits[model]],
            shifts=[self.shifts[model]],
            dispersions=[self.dispersions[model]],
            fitted=self.fitted[[model]],
            hazards=self.hazards and self.hazards.take([model]),
            straight=self.is_linear[[model]],
            squares=None if self.squares is None else self.squares[[model]],
        )

    def evaluate(self, table: Table) -> Matrix:
        """Columns of the features of every model, then of the others, for new rows.

        All covariates of a model are held at their edges or none: terms that nearly cancel inside
        the training range must go on cancelling.
        """
        features = (*self.always, *self.features)
        return evaluate(features, table, clip_to=self.ranges if self.hold else None)[0]

    def evaluate_on(self, table: Table, held: Matrix) -> Matrix | None:
        """The columns for linear models, which go on linearly; none if they are those `held`."""
        if not (self.hold and self.is_linear.any()):
            return None
        features = (*self.always, *self.features)
        columns = held.copy()
        for position, feature in enumerate(features):
            if isinstance(feature, Covariate):
                columns[:, position] = table.column(feature.name)
        return None if np.array_equal(columns, held) else columns

    @cached_property
    def is_linear(self) -> Mask:
        """Models that go on linearly: all their features are covariates."""
        if self.straight is not None:
            return self.straight
        plain = np.array([isinstance(feature, Covariate) for feature in self.features], dtype=bool)
        always = all(isinstance(feature, Covariate) for feature in self.always)
        return np.array([always and plain[own].all() for own in self.models], dtype=np.bool_)

    def blocks(
        self,
        table: Table,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        stratum: IntArray | None = None,
    ) -> Iterator[Mixture]:
        """The predictive distribution of the rows, in blocks that fit into memory.

        `stratum` numbers the strata of survival times; without it they are not known.
        """
        n = table.n_rows
        shift = shift_of(n, offset, exposure)
        counts = None if trials is None else check_vector(trials, n, name="trials")
        for part, predictor, highest, designs in self._predictors(table, shift):
            if self.hazards is not None:
                own = None if stratum is None else stratum[part]
                yield self._survival(self.hazards, predictor, designs, own)
            elif self.glm is not None and isinstance(self.glm.family, ClassFamily):
                yield ClassMixture(
                    family=self.glm.family,
                    weights=predictor[0],
                    fits=self.fits,
                    designs=self._designs(designs),
                    offset=shift[part],
                    integrate=self.integrate,
                )
            else:
                own_counts = None if counts is None else counts[part]
                yield self._mixture(*predictor, own_counts, highest, shift[part])

    def _survival(
        self,
        hazards: AbstractHazards,
        predictor: Predictor,
        designs: tuple[Matrix, Matrix | None],
        stratum: IntArray | None,
    ) -> SurvivalMixture:
        """The mixture of survival times."""
        weights, locations, _, leverages = predictor
        dispersion = np.array([fit.dispersion for fit in self.fits])
        return SurvivalMixture(
            hazards=hazards,
            weights=weights,
            locations=locations,
            variances=dispersion[:, None] * leverages,
            designs=self._designs(designs),
            stratum=stratum,
            integrate=self.integrate,
        )

    def _designs(self, designs: tuple[Matrix, Matrix | None]) -> list[Matrix]:
        """Columns of each model in its order; linear models may have a design of their own."""
        held, linear = (None if d is None else np.where(np.isfinite(d), d, 0.0) for d in designs)
        assert held is not None
        own = [held if linear is None or not is_linear else linear for is_linear in self.is_linear]
        terms, model = self._places
        return [d[:, terms[model == number]] for number, d in enumerate(own)]

    def dropped_mass(self, table: Table) -> Column:
        """Posterior share of the models that are undefined or overflow, by row."""
        parts = []
        for _, (weights, *_), *_ in self._predictors(table, np.zeros(table.n_rows)):
            # A row where no model is defined has no weights, NaN.
            gone = ~(weights > 0) & (self.probability > 0)[:, None]
            share = self.probability @ gone / self.probability.sum()
            parts.append(np.where(np.isnan(weights[0]), 1.0, share))
        return np.concatenate(parts)

    def _predictors(
        self, table: Table, shift: Column
    ) -> Iterator[tuple[slice, Predictor, Matrix | None, tuple[Matrix, Matrix | None]]]:
        """Linear predictors of the rows, in blocks that fit into memory, with their designs.

        Under a log link with the highest means that are allowed; under the identity they keep
        within the limits already.
        """
        n = table.n_rows
        columns = self.evaluate(table)
        design = np.column_stack([np.ones(n), columns])
        straight = self.evaluate_on(table, columns)
        linear = None if straight is None else np.column_stack([np.ones(n), straight])
        block = _FAMILY_BLOCK if self.glm is not None and self.integrate else _STUDENT_BLOCK
        parts = len(self.models) if self.glm is None else self.components[0].size
        step = max(1, block // parts)
        places = places_of(self.effects, table)
        for start in range(0, n, step):
            part = slice(start, start + step)
            here = None if places is None else [p if p is None else p[part] for p in places]
            own = None if linear is None else linear[part]
            predictor = self._predictor(design[part], own, shift[part], here)
            if self._limits is None:
                yield part, predictor, None, (design[part], own)
                continue
            low, high = self._limits.at(table.take(np.arange(n)[part]))
            if self._identity:
                weights, locations, shifts, leverages = predictor
                own_shift = self._shift_inside(shift[part])
                locations = np.clip(locations, low + own_shift, high + own_shift)
                leverages = self._within(locations, leverages, high)
                within = (weights, locations, shifts, leverages)
                yield part, within, None, (design[part], own)
            else:
                logarithm = self.glm is not None and self.glm.link.name == "log"
                with np.errstate(over="ignore", invalid="ignore"):
                    highest = high * np.exp(shift[part]) if logarithm else high
                yield part, predictor, highest, (design[part], own)

    def _within(self, locations: Matrix, leverages: Matrix, highest: Matrix) -> Matrix:
        """Leverages of models of the root for which the mean of the square is within its limit.

        What is uncertain about a root adds to the mean of its square.
        """
        if self.squares is None:
            return leverages
        variances = self._student_variances[self.squares, None]
        room = highest[self.squares] ** 2 - locations[self.squares] ** 2
        held = leverages.copy()
        held[self.squares] = np.minimum(leverages[self.squares], np.maximum(room, 0.0) / variances)
        return held

    @cached_property
    def _student_variances(self) -> FloatArray:
        """Variances of the t distributions of models, per unit of leverage."""
        df = np.array([fit.degrees_of_freedom for fit in self.fits])
        dispersions = np.array([fit.dispersion for fit in self.fits])
        with np.errstate(divide="ignore", invalid="ignore"):
            return dispersions * np.where(df > 2, 1.0 / np.maximum(1.0 - 2.0 / df, 0.0), np.inf)

    @property
    def _identity(self) -> bool:
        return self.glm is None or self.glm.link.name == "identity"

    @cached_property
    def _limits(self) -> Limits | None:
        """Limits of the means, where they are held and the link has none of its own."""
        unlimited = self.glm is None or self.glm.link.mean_interval[1] == np.inf
        if not self.hold or not unlimited:
            return None
        own = (self.features, self.models, self.ranges, self.is_linear, self.squares)
        return Limits.of(self.fitted, self.always, *own)

    def _predictor(
        self, design: Matrix, linear: Matrix | None, shift: Column, places: Sequence[Any] | None
    ) -> Predictor:
        """Weight, mode, shift of the mean, variance (without dispersion) of eta: models by rows.

        Linear models have a design of their own where rows are outside the training range.
        """
        finite: Mask = np.asarray(np.isfinite(design))
        weights = np.repeat(self.probability[:, None], len(design), axis=1)
        if not finite.all():
            # A model is not defined where one of its terms is not.
            weights[self._uses.T.astype(np.float64) @ ~finite.T > 0] = 0.0
            design = np.where(finite, design, 0.0)
        # Products of enormous and tiny numbers overflow: caught below, row by row.
        with np.errstate(over="ignore", invalid="ignore"):
            locations = self._modes.T @ design.T
            shifts = np.zeros_like(locations)
            if self._moves.any():
                shifts = self._moves.T @ design.T
            leverages = np.zeros_like(locations)
            if self.integrates:
                quadratic_forms(np.ascontiguousarray(design.T), *self._covariances, leverages)
            if linear is not None:
                models, rows = self.is_linear, np.ascontiguousarray(linear.T)
                locations[models] = self._modes[:, models].T @ rows
                shifts[models] = self._moves[:, models].T @ rows
                if self.integrates:
                    others = np.zeros_like(leverages)
                    quadratic_forms(rows, *self._covariances, others)
                    leverages[models] = others[models]
        if places is not None:
            for position, fit in enumerate(self.fits):
                if fit.latent is not None:
                    own = design[:, self._uses[:, position]]
                    location, variance = fit.latent.predictor(self.effects, places, own)
                    locations[position], shifts[position] = location, 0.0
                    leverages[position] = variance / fit.dispersion
        locations += self._shift_inside(shift)
        if self.squares is not None:
            # Below zero a square would grow again.
            locations[self.squares] = np.maximum(locations[self.squares], 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            # The sum is finite if all are.
            is_finite = np.isfinite(locations.sum() + shifts.sum() + leverages.sum())
        if self._inverts or not is_finite:
            undefined = ~(np.isfinite(locations + shifts) & np.isfinite(leverages))
            if self._inverts:
                # A mean of one over zero or less: the model says nothing here.
                undefined |= ~(locations > 0)
            for values in (weights, shifts, leverages):
                values[undefined] = 0.0
            locations[undefined] = 1.0
        totals = weights.sum(axis=0)
        # A row where no model is defined has no prediction.
        weights /= np.where(totals > 0, totals, np.nan)
        return weights, locations, shifts, np.maximum(leverages, 0.0, out=leverages)

    def _shift_inside(self, shift: Column) -> Column | Matrix:
        """The shift of linear predictors: a model of a root has that of the response outside."""
        if self.squares is None:
            return shift
        return np.where(self.squares[:, None], 0.0, shift)

    @property
    def _inverts(self) -> bool:
        """Whether means are one over the linear predictor, which then must stay positive."""
        return self.glm is not None and self.integrate and self.glm.link.name == "inverse"

    @cached_property
    def _uses(self) -> Masks:
        """Which terms (rows: fixed ones, then features) each model (columns) has."""
        fixed = 1 + len(self.always)
        uses = np.zeros((fixed + len(self.features), len(self.models)), dtype=np.bool_)
        uses[self._places] = True
        return uses

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Terms of all models, one model after the other, and the model of each."""
        fixed = np.arange(1 + len(self.always))
        terms = [part for members in self.models for part in (fixed, fixed.size + members)]
        sizes = [fixed.size + members.size for members in self.models]
        return np.concatenate(terms), np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def _covariances(self) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Terms of all models, covariances of all, and where each model begins in either."""
        terms, models = self._places
        sizes = np.concatenate([[0], np.bincount(models, minlength=len(self.models))])
        covariances = [fit.covariance.reshape(-1) for fit in self.fits]
        return (
            terms,
            np.cumsum(sizes),
            np.concatenate(covariances),
            np.cumsum(sizes**2),
        )

    @cached_property
    def _modes(self) -> Matrix:
        return self._by_term([fit.coefficients for fit in self.fits])

    @cached_property
    def _moves(self) -> Matrix:
        return self._by_term(self.shifts if self.integrates else [0.0 * s for s in self.shifts])

    def _by_term(self, values: Sequence[FloatArray]) -> Matrix:
        """Value of each term (rows) in each model (columns), zero where it is not."""
        out = np.zeros(self._uses.shape)
        out[self._places] = np.concatenate(values)
        return out

    def _mixture(
        self,
        weights: Matrix,
        locations: Matrix,
        shifts: Matrix,
        leverages: Matrix,
        trials: Column | None,
        highest: Matrix | None,
        shift: Column,
    ) -> StudentMixture | FamilyMixture:
        fitted = np.array([fit.dispersion for fit in self.fits])
        if self.glm is not None:
            link, scales = self.glm.link, np.sqrt(fitted[:, None] * leverages)
            if self._inverts:
                link = find_link("log")
                locations, shifts, scales = _log_mean_of_inverse(locations, shifts, scales)
            models, shares, dispersions, factors = self.components
            if models.size > len(self.models):
                weights = weights[models] * shares[:, None]
                locations, scales = locations[models], scales[models] * np.sqrt(factors)[:, None]
                shifts = shifts[models] * factors[:, None]
                highest = None if highest is None else highest[models]
            assert isinstance(self.glm.family, Family)
            return FamilyMixture(
                family=self.glm.family,
                link=link,
                weights=weights,
                locations=locations,
                scales=scales,
                dispersions=dispersions,
                trials=trials,
                integrate=self.integrate,
                shifts=shifts,
                highest=highest,
            )
        scales = np.sqrt(fitted[:, None] * (1.0 + leverages))
        df = np.array([fit.degrees_of_freedom for fit in self.fits])
        if self.squares is None:
            return StudentMixture(weights, locations, scales, df, leverages)
        origins = np.broadcast_to(self.origin - shift, locations.shape)
        return StudentMixture(weights, locations, scales, df, leverages, self.squares, origins)

    @cached_property
    def components(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Model, its share, dispersion and variance factor of each part of a family's mixture."""
        parts = self.dispersions
        if not self.integrate:
            parts = [DispersionPosterior.known(fit.dispersion) for fit in self.fits]
        sizes = [part.values.size for part in parts]
        names = ("weights", "values", "factors")
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
        return np.repeat(np.arange(len(parts)), sizes), columns[0], columns[1], columns[2]


def _log_mean_of_inverse(
    locations: Matrix, shifts: Matrix, scales: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    r"""Location, shift and scale of :math:`-\log\eta`, to second order.

    One over a normal variable has no mean; one over a positive one has.
    """
    relative = scales / locations
    return -np.log(locations), 0.5 * relative**2 - shifts / locations, relative


def places_of(effects: Sequence[BoundEffect], table: Table) -> list[Any] | None:
    """Positions or groups of the rows for each effect; none where the table has none."""
    needed = [name for bound in effects for name in bound.effect.columns]
    if not effects or any(name not in table.index_columns for name in needed):
        return None
    return [columns_of(bound.effect, table.index_columns) for bound in effects]


def shift_of(n_rows: int, offset: Any, exposure: Any) -> Column:
    """Known part of the linear predictor of new rows."""
    shift = np.zeros(n_rows)
    if offset is not None:
        shift = shift + check_vector(offset, n_rows, name="offset")
    if exposure is not None:
        shift = shift + np.log(check_vector(exposure, n_rows, name="exposure"))
    return shift
