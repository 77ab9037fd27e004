"""Raw rows of tall data, batch by batch: tables that nobody reads in one piece.

A batch is as the user's library gives it, cut into named columns; nothing is checked here.
Batches are cut at the same rows wherever the rows are, except between the partitions of a
cluster.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

from dbrm._typing import TableLike
from dbrm.data import rows as blocks
from dbrm.data.intake import RawTable, read_table

__all__ = ["AbstractBatches", "Batch", "MemoryBatches", "itself", "split_table"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some consecutive rows: covariates, and the response with what belongs to its rows."""

    start: int
    raw: RawTable
    extras: Mapping[str, Any]


class AbstractBatches(ABC):
    """A table with its response, in batches of raw rows."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def named(self) -> bool:
        """Whether the user named the columns."""

    @abstractmethod
    def each(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        """What `work` makes of every batch with these covariates, in the order of the rows."""

    def stream(self, names: Sequence[str]) -> Iterator[Batch]:
        """The batches themselves, a few at a time."""
        return self.each(itself, names)

    @abstractmethod
    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """All covariates in memory, and what belongs to the rows; for data that are not tall."""


def itself(batch: Batch) -> Batch:
    """The batch, for work that is done elsewhere."""
    return batch


@final
@dataclass(frozen=True, eq=False)
class MemoryBatches(AbstractBatches):
    """A table in memory as the user handed it over; batches are views of it."""

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

    def each(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        chosen = [self.names.index(name) for name in names]
        for start in range(0, self.n_rows, blocks.BLOCK_ROWS):
            rows = slice(start, min(start + blocks.BLOCK_ROWS, self.n_rows))
            contents = tuple(self.raw.contents[j][rows] for j in chosen)
            raw = RawTable(tuple(names), contents, rows.stop - start, named=True)
            yield work(
                Batch(start, raw, {name: column[rows] for name, column in self.extras.items()})
            )

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return dict(zip(self.names, self.raw.contents, strict=True)), dict(self.extras)


def split_table(
    table: TableLike, names: Sequence[str], roles: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Covariates of a table in memory, and the columns that play other roles."""
    raw = read_table(table)
    content = dict(zip(raw.names, raw.contents, strict=True))
    return (
        {name: content[name] for name in names},
        {role: content[name] for role, name in roles.items()},
    )
