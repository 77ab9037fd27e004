"""Dask collections in batches: the work goes to the partitions, only its results come back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np

from dbrm.data import rows as blocks
from dbrm.data.batches import AbstractBatches, Batch, itself, split_table
from dbrm.data.intake import RawTable, read_table

__all__ = ["DaskArrayBatches", "DaskFrameBatches"]

T = TypeVar("T")


@final
@dataclass(frozen=True, eq=False)
class DaskFrameBatches(AbstractBatches):
    """Partitions of a Dask data frame.

    Parameters
    ----------
    frame
        The data frame.
    covariates
        The columns to use.
    roles
        Columns of the response and of what belongs to its rows, by what they are.
    """

    frame: Any
    covariates: tuple[str, ...]
    roles: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return self.covariates

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        name = next(iter(self.roles.values()), self.covariates[0])
        return _sizes(self.frame[[name]].to_delayed())

    @property
    def n_rows(self) -> int:
        return sum(self._sizes)

    @property
    def named(self) -> bool:
        return True

    def each(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        return _compute(*self._tasks(work, names), self._sizes)

    def stream(self, names: Sequence[str]) -> Iterator[Batch]:
        return _compute_in_turn(*self._tasks(itself, names), self._sizes)

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        wanted = list(dict.fromkeys([*self.covariates, *self.roles.values()]))
        return split_table(self.frame[wanted].compute(), self.covariates, self.roles)

    def _tasks(self, work: Callable[[Batch], Any], names: Sequence[str]) -> tuple[Any, Any]:
        wanted = list(dict.fromkeys([*names, *self.roles.values()]))
        parts = self.frame[wanted].to_delayed()
        return _OnFrame(work, tuple(names), dict(self.roles)), parts


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OnFrame:
    """Work on the batches of one partition, a data frame."""

    work: Callable[[Batch], Any]
    names: tuple[str, ...]
    roles: Mapping[str, str]

    def __call__(self, frame: Any, first: int) -> list[Any]:
        found = []
        for start in range(0, len(frame), blocks.BLOCK_ROWS):
            table = read_table(frame.iloc[start : start + blocks.BLOCK_ROWS])
            content = dict(zip(table.names, table.contents, strict=True))
            raw = RawTable(
                self.names, tuple(content[name] for name in self.names), table.n_rows, named=True
            )
            extras = {role: content[name] for role, name in self.roles.items()}
            found.append(self.work(Batch(first + start, raw, extras)))
        return found


@final
@dataclass(frozen=True, eq=False)
class DaskArrayBatches(AbstractBatches):
    """Blocks of rows of a Dask array, with arrays for what belongs to the rows.

    All of them must be cut at the same rows.
    """

    array: Any
    extras: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"x{j + 1}" for j in range(self.array.shape[1]))

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return _sizes(self.array.to_delayed().ravel())

    @property
    def n_rows(self) -> int:
        return sum(self._sizes)

    @property
    def named(self) -> bool:
        return False

    def each(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        return _compute(*self._tasks(work, names), self._sizes)

    def stream(self, names: Sequence[str]) -> Iterator[Batch]:
        return _compute_in_turn(*self._tasks(itself, names), self._sizes)

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = dict(zip(self.names, np.asarray(self.array.compute()).T, strict=True))
        return columns, {role: column.compute() for role, column in self.extras.items()}

    def _tasks(self, work: Callable[[Batch], Any], names: Sequence[str]) -> tuple[Any, Any]:
        from dask import delayed

        columns = [self.names.index(name) for name in names]
        parts = [self.array.to_delayed().ravel()]
        parts += [column.to_delayed().ravel() for column in self.extras.values()]
        joined = [delayed(tuple)(list(group)) for group in zip(*parts, strict=True)]
        return _OnArrays(work, tuple(names), tuple(columns), tuple(self.extras)), joined


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OnArrays:
    """Work on the batches of one block of rows: an array, and a column for each extra."""

    work: Callable[[Batch], Any]
    names: tuple[str, ...]
    columns: tuple[int, ...]
    roles: tuple[str, ...]

    def __call__(self, arrays: tuple[Any, ...], first: int) -> list[Any]:
        values, *extras = (np.asarray(array) for array in arrays)
        found = []
        for start in range(0, len(values), blocks.BLOCK_ROWS):
            rows = slice(start, min(start + blocks.BLOCK_ROWS, len(values)))
            contents = tuple(values[rows, j] for j in self.columns)
            raw = RawTable(self.names, contents, rows.stop - start, named=True)
            given = dict(zip(self.roles, (extra[rows] for extra in extras), strict=True))
            found.append(self.work(Batch(first + start, raw, given)))
        return found


def _sizes(parts: Any) -> tuple[int, ...]:
    """Rows of each partition."""
    import dask

    counts = dask.compute(*(dask.delayed(len)(part) for part in parts))
    return tuple(int(count) for count in counts)


def _compute(work: Any, parts: Any, sizes: Sequence[int]) -> Iterator[Any]:
    """Send the work to all partitions, and hand over what it makes, in their order."""
    import dask

    for found in dask.compute(*_jobs(work, parts, sizes)):
        yield from found


def _compute_in_turn(work: Any, parts: Any, sizes: Sequence[int]) -> Iterator[Any]:
    """As `_compute`, one partition after the other: results may be as large as they are."""
    for job in _jobs(work, parts, sizes):
        yield from job.compute()


def _jobs(work: Any, parts: Any, sizes: Sequence[int]) -> list[Any]:
    import dask

    starts = np.cumsum([0, *sizes]).tolist()
    task = dask.delayed(work, pure=False)
    return [task(part, start) for part, start in zip(parts, starts, strict=False)]
