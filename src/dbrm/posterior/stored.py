"""What a posterior from a file draws on: fits made before the file was written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import Table
from dbrm.evidence import BoundEffect, ModelFit
from dbrm.features import Feature, Ranges, Transform
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.source import AbstractSource, Law

__all__ = ["StoredSource"]


@final
@dataclass(frozen=True, eq=False)
class StoredSource(AbstractSource):
    """Answers for the models that were fitted before the file was written."""

    stored_table: Table
    stored_rows: int
    known_transforms: tuple[Transform, ...]
    stored_always: tuple[Feature, ...]
    stored_law: Law | None
    averaged: list[ModelFit]
    shifts: list[FloatArray]
    stored_dispersions: list[DispersionPosterior]
    reports: dict[tuple[int, ...], ModelFit]
    stored_ranges: Ranges
    stored_fitted: Matrix
    stored_effects: tuple[BoundEffect, ...] = ()

    @property
    def table(self) -> Table:
        return self.stored_table

    @property
    def n_rows(self) -> int:
        return self.stored_rows

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return self.known_transforms

    @property
    def always(self) -> tuple[Feature, ...]:
        return self.stored_always

    @property
    def law(self) -> Law | None:
        return self.stored_law

    def training(self) -> None:
        return None

    def count_averaged(self, probability: FloatArray, sizes: IntArray) -> int:  # noqa: ARG002
        return len(self.averaged)

    @property
    def effects(self) -> tuple[BoundEffect, ...]:
        return self.stored_effects

    @staticmethod
    def key(features: Sequence[Feature], effects: Mask) -> tuple[int, ...]:
        """By what a model is found in `reports`."""
        return (*(feature.key for feature in features), *np.flatnonzero(effects).tolist())

    def fit(self, features: Sequence[Feature], effects: Mask) -> ModelFit:
        return self.reports[self.key(features, effects)]

    def fit_many(
        self,
        features: Sequence[Feature],  # noqa: ARG002
        models: Sequence[IntArray],
        effects: Masks,  # noqa: ARG002
    ) -> list[ModelFit]:
        return self.averaged[: len(models)]

    def ranges(self, features: Sequence[Feature]) -> Ranges:  # noqa: ARG002
        return self.stored_ranges

    def fitted_ranges(
        self,
        features: Sequence[Feature],  # noqa: ARG002
        models: Sequence[IntArray],
        fits: Sequence[ModelFit],  # noqa: ARG002
    ) -> Matrix:
        return self.stored_fitted[: len(models)]

    def mean_shifts(
        self,
        features: Sequence[Feature],  # noqa: ARG002
        models: Sequence[IntArray],  # noqa: ARG002
        fits: Sequence[ModelFit],
    ) -> list[FloatArray]:
        return self.shifts[: len(fits)]

    def dispersions(
        self,
        features: Sequence[Feature],  # noqa: ARG002
        models: Sequence[IntArray],  # noqa: ARG002
        fits: Sequence[ModelFit],
    ) -> list[DispersionPosterior]:
        return self.stored_dispersions[: len(fits)]
