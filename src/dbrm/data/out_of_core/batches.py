"""Raw rows, batch by batch, as the caller's library returns them; nothing is checked here.

Batches start at the same rows wherever the data are stored, so that sums do not depend on it;
only between the partitions of a cluster do they start anew.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

from dbrm._typing import TableLike
from dbrm.data.intake import RawTable, read_table

__all__ = ["AbstractBatches", "AbstractParts", "Batch", "ColumnRoles", "MemoryBatches", "identity"]

# Rows of a batch: a column of it fits into the cache of one core.
BLOCK_ROWS = 1 << 15

Part = TypeVar("Part")
T = TypeVar("T")


class AbstractParts(ABC, Generic[Part]):
    """A table with its response, visited in parts of consecutive rows."""

    @property
    def is_remote(self) -> bool:
        """Whether the work goes to the rows: its results should then be small."""
        return False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def map(self, work: Callable[[Part], T], names: Sequence[str]) -> Iterator[T]:
        """Apply `work` to every part, with these covariates, in the order of the rows.

        The work may happen in another process: it must be picklable and have no side effects.
        """


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive raw rows: covariates, and the response with weights, offset and the like."""

    start: int
    raw: RawTable
    extras: Mapping[str, Any]


class AbstractBatches(AbstractParts[Batch]):
    """A table with its response, in batches of raw rows."""

    @property
    @abstractmethod
    def named(self) -> bool:
        """Whether the user named the columns."""

    def stream(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the batches themselves, a few in memory at a time."""
        return self.map(identity, names)

    @abstractmethod
    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Read all covariates, and the response with weights and the like, into memory."""


def identity(batch: Batch) -> Batch:
    """Return the batch, for work that is done elsewhere."""
    return batch


@final
@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Which columns of a table are covariates, and which ones belong to the response.

    Parameters
    ----------
    covariates
        Names of the covariates.
    extras
        Column of the response, and of weights, offset and the like, by role.
    """

    covariates: tuple[str, ...]
    extras: Mapping[str, str]

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return the columns to read for these covariates."""
        return list(dict.fromkeys([*names, *self.extras.values()]))

    def to_batch(self, table: TableLike, start: int, names: Sequence[str]) -> Batch:
        """Return rows of a table in memory as a batch of these covariates."""
        found = read_table(table)
        content = dict(zip(found.names, found.contents, strict=True))
        contents = tuple(content[name] for name in names)
        raw = RawTable(tuple(names), contents, found.n_rows, named=True)
        return Batch(start, raw, {role: content[name] for role, name in self.extras.items()})

    def split(self, table: TableLike) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the covariates of a table in memory, and the columns of other roles."""
        batch = self.to_batch(table, 0, self.covariates)
        return dict(zip(self.covariates, batch.raw.contents, strict=True)), dict(batch.extras)


@final
@dataclass(frozen=True, eq=False)
class MemoryBatches(AbstractBatches):
    """A table in memory as the caller passed it; batches are views of it."""

    raw: RawTable
    extras: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        return self.raw.names

    @property
    def n_rows(self) -> int:
        return self.raw.n_rows

    @property
    def named(self) -> bool:
        return self.raw.named

    def map(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        positions = [self.names.index(name) for name in names]
        for start in range(0, self.n_rows, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, self.n_rows))
            contents = tuple(self.raw.contents[j][rows] for j in positions)
            raw = RawTable(tuple(names), contents, rows.stop - start, named=True)
            yield work(
                Batch(start, raw, {name: column[rows] for name, column in self.extras.items()})
            )

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return dict(zip(self.names, self.raw.contents, strict=True)), dict(self.extras)
