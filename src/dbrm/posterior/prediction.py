"""Predictions averaged over models: which models, their fits, and new rows.

It sees a table of new rows and fitted models; neither the search nor the training data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.data import Table, check_vector
from dbrm.evidence import BoundEffect, ModelFit
from dbrm.features import Feature, evaluate
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.source import Law

__all__ = ["AveragedModels", "shift_of"]

# Numbers held at once while predicting: a family holds several for each.
_STUDENT_BLOCK, _FAMILY_BLOCK = 4_000_000, 250_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class AveragedModels:
    """The models that predictions average over, ready for new rows.

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
    law
        Family and link, ``None`` for mixtures of t distributions.
    integrate
        Whether a family's predictions integrate over the coefficients.
    effects
        The latent effects of the run, with the nodes of the training rows. They take part
        in the predictions of tables that know their places.
    """

    features: tuple[Feature, ...]
    models: Sequence[IntArray]
    probability: FloatArray
    fits: Sequence[ModelFit]
    shifts: Sequence[FloatArray]
    always: tuple[Feature, ...]
    law: Law | None
    integrate: bool
    effects: tuple[BoundEffect, ...] = ()

    @property
    def integrates(self) -> bool:
        """Whether coefficients are uncertain: always under a t, as asked under a family."""
        return self.law is None or self.integrate

    def centre(self, model: int) -> FloatArray:
        """Posterior mean of a model's coefficients, their mode where they count as certain."""
        coefficients = self.fits[model].coefficients
        return coefficients + self.shifts[model] if self.integrates else coefficients

    def alone(self, model: int) -> "AveragedModels":
        """One model without the others."""
        return replace(
            self,
            models=[self.models[model]],
            probability=np.ones(1),
            fits=[self.fits[model]],
            shifts=[self.shifts[model]],
        )

    def blocks(
        self, table: Table, offset: Any = None, trials: Any = None, exposure: Any = None
    ) -> Iterator[StudentMixture | FamilyMixture]:
        """The predictive law of the rows, so many of them at a time as memory allows."""
        n = table.n_rows
        columns = evaluate(self.features, table)[0]
        always = np.column_stack([np.ones(n), evaluate(self.always, table)[0]])
        shift = shift_of(n, offset, exposure)
        counts = None if trials is None else check_vector(trials, n, name="trials")
        block = _STUDENT_BLOCK if self.law is None else _FAMILY_BLOCK
        step = max(1, block // len(self.models))
        places = places_of(self.effects, table)
        for start in range(0, n, step):
            part = slice(start, start + step)
            here = None if places is None else [p if p is None else p[part] for p in places]
            predictor = self._predictor(always[part], columns[part], shift[part], here)
            yield self._mixture(*predictor, None if counts is None else counts[part])

    def _predictor(
        self, always: Matrix, columns: Matrix, shift: Column, places: Sequence[Any] | None
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Weight, location and variance (without dispersion) of eta: models by rows."""
        shape = (len(self.models), len(always))
        weights, locations, leverages = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        finite: Mask = np.asarray(np.isfinite(columns))
        fixed = np.all(np.isfinite(always), axis=1)
        for position, (chosen, fit) in enumerate(zip(self.models, self.fits, strict=True)):
            design = np.hstack([always, columns[:, chosen]])
            defined = fixed & np.all(finite[:, chosen], axis=1)
            if not defined.all():
                design = np.where(defined[:, None], design, 0.0)
            weights[position] = self.probability[position] * defined
            if places is not None and fit.latent is not None:
                location, variance = fit.latent.predictor(self.effects, places, design)
                leverage = variance / fit.dispersion
            else:
                location = design @ self.centre(position)
                leverage = np.einsum("ni,ni->n", design @ fit.covariance, design)
            locations[position] = location + shift
            leverages[position] = np.maximum(leverage, 0.0)
        totals = weights.sum(axis=0)
        # A row where no model is defined has no prediction.
        return weights / np.where(totals > 0, totals, np.nan), locations, leverages

    def _mixture(
        self, weights: Matrix, locations: Matrix, leverages: Matrix, trials: Column | None
    ) -> StudentMixture | FamilyMixture:
        dispersions = np.array([fit.dispersion for fit in self.fits])
        if self.law is not None:
            return FamilyMixture(
                family=self.law.family,
                link=self.law.link,
                weights=weights,
                locations=locations,
                scales=np.sqrt(dispersions[:, None] * leverages),
                dispersions=dispersions,
                trials=trials,
                integrate=self.integrate,
            )
        scales = np.sqrt(dispersions[:, None] * (1.0 + leverages))
        df = np.array([fit.degrees_of_freedom for fit in self.fits])
        return StudentMixture(weights, locations, scales, df)


def places_of(effects: Sequence[BoundEffect], table: Table) -> list[Any] | None:
    """Positions or groups of the rows for each effect; none where the table has none."""
    columns = [bound.effect.column for bound in effects]
    if not columns or any(name is not None and name not in table.places for name in columns):
        return None
    return [None if name is None else table.places[name] for name in columns]


def shift_of(n_rows: int, offset: Any, exposure: Any) -> Column:
    """Known part of the linear predictor of new rows."""
    shift = np.zeros(n_rows)
    if offset is not None:
        shift = shift + check_vector(offset, n_rows, name="offset")
    if exposure is not None:
        shift = shift + np.log(check_vector(exposure, n_rows, name="exposure"))
    return shift
