"""Evidence from rows that are visited in blocks: what every such engine offers.

Columns are made block by block and exist for one block at a time. Engines add up small sums
over the blocks (Gram matrices, scores, triangular factors) wherever the rows are. They see
neither features nor the search, as all engines.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Masks, StatusArray
from dbrm.data import AbstractRows, Block
from dbrm.evidence.base import AbstractPrepared, ModelFit
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.design import share_columns
from dbrm.evidence.families import FAMILIES, AbstractFamily
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.links import Link, find_link

__all__ = [
    "AbstractColumns",
    "AbstractOutOfCoreEngine",
    "Joined",
    "add_up",
    "unsupported_out_of_core",
]


class AbstractColumns(ABC):
    """Columns that are made from the covariates of one block at a time; picklable."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The covariates they are made of."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Hashable, ...]:
        """What each column is made of: columns of equal sources are equal."""

    @abstractmethod
    def make(self, block: Block) -> list[Column]:
        """The columns over the rows of a block; not to be changed."""

    @abstractmethod
    def take(self, positions: IntArray) -> "AbstractColumns":
        """Some of the columns."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Joined(AbstractColumns):
    """Two lots of columns, one after the other."""

    first: AbstractColumns
    second: AbstractColumns

    @property
    def size(self) -> int:
        return self.first.size + self.second.size

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.first.needs, *self.second.needs]))

    @property
    def sources(self) -> tuple[Hashable, ...]:
        return (*self.first.sources, *self.second.sources)

    def make(self, block: Block) -> list[Column]:
        return [*self.first.make(block), *self.second.make(block)]

    def take(self, positions: IntArray) -> AbstractColumns:
        inside = positions < self.first.size
        return Joined(
            self.first.take(positions[inside]),
            self.second.take(positions[~inside] - self.first.size),
        )


class AbstractOutOfCoreEngine(ABC):
    """Log evidence of models from all rows of data out of core."""

    #: The rows with their response.
    rows: AbstractRows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @abstractmethod
    def prepare(self, columns: AbstractColumns) -> AbstractPrepared:
        """One population: all that its models need of the rows, in a few passes at most."""

    def fit_many(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        """Fit models with care; those with columns in common share their passes."""
        fits: dict[int, ModelFit] = {}
        for rows, used in share_columns(masks):
            found = self._fit_together(columns.take(used), masks[np.ix_(rows, used)])
            fits.update(zip(rows.tolist(), found, strict=True))
        return [fits[row] for row in range(len(masks))]

    @abstractmethod
    def _fit_together(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        """Fit models over few columns."""

    def log_evidence_of(
        self, columns: AbstractColumns, masks: Masks
    ) -> tuple[FloatArray, StatusArray]:
        """Log evidence of several models from all rows, by the most accurate route."""
        fits = self.fit_many(columns, masks)
        values = np.array([fit.log_evidence for fit in fits], dtype=np.float64)
        return values, np.array([fit.status for fit in fits], dtype=np.uint8)


def add_up(parts: Any) -> Any:
    """Sum of arrays, or of tuples of arrays entry by entry, in their order."""
    total: Any = None
    for part in parts:
        if total is None:
            total = part
        elif isinstance(part, tuple):
            total = tuple(a + b for a, b in zip(total, part, strict=True))
        else:
            total = total + part
    return total


def unsupported_out_of_core(
    family: AbstractFamily, link: Link | str | None, prior: CoefficientPrior
) -> str:
    """Why there is no engine for this out of core, and what to try; empty if there is one."""
    found = find_link(link or family.default_link)
    if found.name == family.exact_link:
        return ""
    if not family.out_of_core_links:
        able = ", ".join(name for name, other in FAMILIES.items() if other.out_of_core_links)
        return f"family={family.name!r} needs all rows in memory; these do not: {able}"
    if found.name not in family.out_of_core_links:
        links = ", ".join(family.out_of_core_links)
        return f"link={found.name!r} needs all rows in memory; try link={links}"
    if glm_prior(prior, np.array([0, 1]), 1e6, dispersed=False).strict:
        return (
            f"prior={prior.name!r} looks at each model's information matrix and needs all rows "
            "in memory; try prior='jeffreys' or 'bic'"
        )
    return ""
