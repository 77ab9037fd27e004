"""Features as columns that are made block by block."""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, IntArray
from dbrm.data import Block
from dbrm.evidence import AbstractColumns
from dbrm.features import ColumnCache, Feature
from dbrm.features.evaluation import Reader, collect

__all__ = ["FeatureColumns"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumns(AbstractColumns):
    """The columns of some features; parts in common are computed once per block."""

    features: tuple[Feature, ...]

    @property
    def size(self) -> int:
        return len(self.features)

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(sorted({name for feature in self.features for name in feature.covariates}))

    def make(self, block: Block) -> list[Column]:
        reader, cache = Reader(block.columns), ColumnCache()
        with np.errstate(all="ignore"):
            return [collect(feature, reader, cache) for feature in self.features]

    def take(self, positions: IntArray) -> "FeatureColumns":
        return FeatureColumns(tuple(self.features[j] for j in positions))
