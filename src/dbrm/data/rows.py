"""Rows that are visited in blocks: tall data, of which no computation needs a copy.

Whoever wants a sum over all rows hands over the work on one block and gets back what it
makes of every block, in order. Where the rows are (memory, files, a cluster) is known here
only. Blocks are cut at fixed places, so that sums do not depend on where the rows are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np

from dbrm._typing import Column, IntArray
from dbrm.data.table import Table

__all__ = ["AbstractRows", "Block", "MemoryRows", "choose_sample", "take_sample"]

# Rows of one block: a column of it fits into a core's own cache.
BLOCK_ROWS = 1 << 15

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some consecutive rows.

    Parameters
    ----------
    start, n_rows
        Number of the first row, and of rows.
    columns
        The covariates asked for, by name.
    extras
        The response and what belongs to its rows, by the names of `dbrm.evidence.Observations`.
    """

    start: int
    n_rows: int
    columns: Mapping[str, Column]
    extras: Mapping[str, Column]


class AbstractRows(ABC):
    """Checked rows of one table with their response."""

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
    def binary(self) -> tuple[bool, ...]:
        """Per covariate, whether it holds nothing but zeros and ones."""

    @abstractmethod
    def each(self, work: Callable[[Block], T], names: Sequence[str]) -> Iterator[T]:
        """What `work` makes of every block with these covariates, in the order of the rows.

        The work may happen in another process: it must be picklable, and change nothing.
        """


@final
@dataclass(frozen=True, eq=False)
class MemoryRows(AbstractRows):
    """Rows of a table in memory; blocks are views of it."""

    table: Table
    extras: Mapping[str, Column]

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def binary(self) -> tuple[bool, ...]:
        return self.table.binary

    def each(self, work: Callable[[Block], T], names: Sequence[str]) -> Iterator[T]:
        for start in range(0, self.n_rows, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, self.n_rows))
            yield work(
                Block(
                    start,
                    rows.stop - start,
                    {name: self.table.column(name)[rows] for name in names},
                    {name: column[rows] for name, column in self.extras.items()},
                )
            )


def choose_sample(n_rows: int, wanted: int) -> IntArray:
    """Numbers of the rows that stand for all: one at random in each of `wanted` equal strips.

    Rows in order of time, or sorted by group, are represented evenly; the choice is the same
    in every run.
    """
    if n_rows <= wanted:
        return np.arange(n_rows)
    edges = np.linspace(0, n_rows, wanted + 1).astype(np.int64)
    rng = np.random.default_rng(20180606)
    return edges[:-1] + np.floor(rng.random(wanted) * np.diff(edges)).astype(np.int64)


def take_sample(rows: AbstractRows, chosen: IntArray) -> tuple[Table, dict[str, Column]]:
    """These rows (numbers in order) as a table, and what belongs to them."""
    parts = list(rows.each(_Pick(chosen), rows.names))
    columns = [np.concatenate([part[0][name] for part in parts]) for name in rows.names]
    values = np.empty((chosen.size, len(columns)), order="F")
    for j, column in enumerate(columns):
        values[:, j] = column
    values.flags.writeable = False
    extras = {name: np.concatenate([part[1][name] for part in parts]) for name in parts[0][1]}
    return Table(rows.names, values), extras


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Pick:
    """The chosen rows of a block."""

    chosen: IntArray

    def __call__(self, block: Block) -> tuple[dict[str, Column], dict[str, Column]]:
        first, last = np.searchsorted(self.chosen, [block.start, block.start + block.n_rows])
        inside = self.chosen[first:last] - block.start
        return (
            {name: column[inside] for name, column in block.columns.items()},
            {name: column[inside] for name, column in block.extras.items()},
        )
