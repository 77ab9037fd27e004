"""Checked rows, block by block: in memory, or a recipe applied to one batch at a time."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np

from dbrm._typing import Column, IntArray
from dbrm.data.out_of_core import batches as blocks
from dbrm.data.out_of_core.batches import AbstractBatches, AbstractParts, Batch
from dbrm.data.recipe import Recipe
from dbrm.data.response import check_response, check_vector, check_weights
from dbrm.data.table import Table

__all__ = [
    "AbstractRows",
    "BatchRows",
    "Block",
    "MemoryRows",
    "choose_sample",
    "read_extra",
    "read_into_memory",
    "rows_within",
    "take_sample",
]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive checked rows.

    Parameters
    ----------
    start, n_rows
        Index of the first row, and number of rows.
    columns
        The covariates asked for, by name.
    extras
        The response, weights, offset and the like, by the names of
        `dbrm.evidence.Observations`.
    """

    start: int
    n_rows: int
    columns: Mapping[str, Column]
    extras: Mapping[str, Column]


class AbstractRows(AbstractParts[Block]):
    """Checked rows of one table with their response."""

    @property
    @abstractmethod
    def binary(self) -> tuple[bool, ...]:
        """Per covariate, whether it holds nothing but zeros and ones."""


@final
@dataclass(frozen=True, eq=False)
class MemoryRows(AbstractRows):
    """Rows of a table in memory; blocks are views of it, of the usual size or a given one."""

    table: Table
    extras: Mapping[str, Column]
    block_rows: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def binary(self) -> tuple[bool, ...]:
        return self.table.binary

    def map(self, work: Callable[[Block], T], names: Sequence[str]) -> Iterator[T]:
        step = self.block_rows or blocks.BLOCK_ROWS
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            yield work(
                Block(
                    start,
                    rows.stop - start,
                    {name: self.table.column(name)[rows] for name in names},
                    {name: column[rows] for name, column in self.extras.items()},
                )
            )


@final
@dataclass(frozen=True, eq=False)
class BatchRows(AbstractRows):
    """Raw batches, each made into a block by a recipe."""

    batches: AbstractBatches
    recipe: Recipe
    is_binary: tuple[bool, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.recipe.names

    @property
    def n_rows(self) -> int:
        return self.batches.n_rows

    @property
    def is_remote(self) -> bool:
        return self.batches.is_remote

    @property
    def binary(self) -> tuple[bool, ...]:
        return self.is_binary

    def map(self, work: Callable[[Block], T], names: Sequence[str]) -> Iterator[T]:
        recipe = self.recipe.only(names)
        return self.batches.map(_OnBlock(work, recipe), recipe.needed)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OnBlock(Generic[T]):
    """Work on a block, as work on a raw batch."""

    work: Callable[[Block], T]
    recipe: Recipe

    def __call__(self, batch: Batch) -> T:
        n = batch.raw.n_rows
        columns: dict[str, Column] = {}
        if self.recipe.names:
            table = self.recipe.apply_raw(batch.raw, checked=True)
            columns = {name: table.column(name) for name in table.names}
        extras = {
            # Plain numbers were checked when the recipe was learned.
            name: content if _is_plain(content) else read_extra(name, content, n)
            for name, content in batch.extras.items()
        }
        return self.work(Block(batch.start, n, columns, extras))


def _is_plain(content: Any) -> bool:
    return isinstance(content, np.ndarray) and content.dtype == np.float64


def read_extra(name: str, content: Any, n_rows: int) -> Column:
    """Check the response, the weights, or another vector with one value per row."""
    if name == "response":
        return check_response(content, n_rows)
    if name == "weights":
        return check_weights(content, n_rows)
    return check_vector(content, n_rows, name=name)


def read_into_memory(rows: AbstractRows, block_rows: int) -> MemoryRows:
    """Return the same rows, read once, in blocks of another size."""
    values = np.empty((rows.n_rows, len(rows.names)), order="F")
    extras: dict[str, Column] = {}
    for block in rows.map(_unchanged, rows.names):
        here = slice(block.start, block.start + block.n_rows)
        for j, name in enumerate(rows.names):
            values[here, j] = block.columns[name]
        for name, column in block.extras.items():
            extras.setdefault(name, np.empty(rows.n_rows))[here] = column
    values.flags.writeable = False
    return MemoryRows(Table(rows.names, values), extras, block_rows)


def _unchanged(block: Block) -> Block:
    return block


def choose_sample(n_rows: int, wanted: int) -> IntArray:
    """Return the indices of a stratified sample: one random row in each of `wanted` equal strips.

    Rows in order of time, or sorted by group, are represented evenly; the sample is the same
    in every run.
    """
    if n_rows <= wanted:
        return np.arange(n_rows)
    edges = np.linspace(0, n_rows, wanted + 1).astype(np.int64)
    rng = np.random.default_rng(20180606)
    return edges[:-1] + np.floor(rng.random(wanted) * np.diff(edges)).astype(np.int64)


def take_sample(rows: AbstractRows, sample: IntArray) -> tuple[Table, dict[str, Column]]:
    """Return the rows with these sorted indices as a table, and their response and the like."""
    parts = list(rows.map(_Take(sample), rows.names))
    columns = [np.concatenate([part[0][name] for part in parts]) for name in rows.names]
    values = np.empty((sample.size, len(columns)), order="F")
    for j, column in enumerate(columns):
        values[:, j] = column
    values.flags.writeable = False
    extras = {name: np.concatenate([part[1][name] for part in parts]) for name in parts[0][1]}
    return Table(rows.names, values), extras


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Take:
    """The sampled rows of a block."""

    sample: IntArray

    def __call__(self, block: Block) -> tuple[dict[str, Column], dict[str, Column]]:
        rows = rows_within(self.sample, block.start, block.n_rows)
        return (
            {name: column[rows] for name, column in block.columns.items()},
            {name: column[rows] for name, column in block.extras.items()},
        )


def rows_within(sample: IntArray, start: int, n_rows: int) -> IntArray:
    """Return those of the sorted row indices that lie in a block, counted from its start."""
    first, last = np.searchsorted(sample, [start, start + n_rows])
    return sample[first:last] - start
