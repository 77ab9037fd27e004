"""Dask collections in batches: the work goes to the partitions, only its results come back."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np

from dbrm.data.intake import RawTable
from dbrm.data.out_of_core import batches as blocks
from dbrm.data.out_of_core.batches import AbstractBatches, Batch, ColumnRoles, identity

__all__ = ["DaskArrayBatches", "DaskFrameBatches"]

T = TypeVar("T")


class _AbstractPartitions(AbstractBatches):
    """Batches inside the partitions of a Dask collection."""

    @property
    def is_remote(self) -> bool:
        return True

    @abstractmethod
    def _partitions(self) -> Sequence[Any]:
        """Return one delayed object per partition, from which rows can be counted."""

    @abstractmethod
    def _tasks(
        self, work: Callable[[Batch], Any], names: Sequence[str]
    ) -> tuple[Callable[[Any, int], list[Any]], Sequence[Any]]:
        """Return the work on one partition, and the partitions."""

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        import dask

        counts = dask.compute(*(dask.delayed(len)(part) for part in self._partitions()))
        return tuple(int(count) for count in counts)

    @property
    def n_rows(self) -> int:
        return sum(self._sizes)

    def map(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        import dask

        for found in dask.compute(*self._delayed(work, names)):
            yield from found

    def stream(self, names: Sequence[str]) -> Iterator[Batch]:
        # One partition after the other: batches are as large as the data.
        for delayed in self._delayed(identity, names):
            yield from delayed.compute()

    def _delayed(self, work: Callable[[Batch], Any], names: Sequence[str]) -> list[Any]:
        import dask

        on_partition, partitions = self._tasks(work, names)
        starts = np.cumsum([0, *self._sizes]).tolist()
        task = dask.delayed(on_partition, pure=False)
        return [task(part, start) for part, start in zip(partitions, starts, strict=False)]


@final
@dataclass(frozen=True, eq=False)
class DaskFrameBatches(_AbstractPartitions):
    """Partitions of a Dask data frame.

    Parameters
    ----------
    frame
        The data frame.
    roles
        What its columns are for.
    """

    frame: Any
    roles: ColumnRoles

    @property
    def names(self) -> tuple[str, ...]:
        return self.roles.covariates

    @property
    def named(self) -> bool:
        return True

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = self.roles.needed(self.roles.covariates)
        return self.roles.split(self.frame[columns].compute())

    def _partitions(self) -> Sequence[Any]:
        name = next(iter(self.roles.extras.values()), self.roles.covariates[0])
        return list(self.frame[[name]].to_delayed())

    def _tasks(
        self, work: Callable[[Batch], Any], names: Sequence[str]
    ) -> tuple[Callable[[Any, int], list[Any]], Sequence[Any]]:
        parts = self.frame[self.roles.needed(names)].to_delayed()
        return _OnFrame(work, tuple(names), self.roles), parts


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OnFrame:
    """Work on the batches of one partition, a data frame."""

    work: Callable[[Batch], Any]
    names: tuple[str, ...]
    roles: ColumnRoles

    def __call__(self, frame: Any, first: int) -> list[Any]:
        return [
            self.work(
                self.roles.to_batch(
                    frame.iloc[start : start + blocks.BLOCK_ROWS], first + start, self.names
                )
            )
            for start in range(0, len(frame), blocks.BLOCK_ROWS)
        ]


@final
@dataclass(frozen=True, eq=False)
class DaskArrayBatches(_AbstractPartitions):
    """Blocks of rows of a Dask array, with one-dimensional arrays for the response and the like.

    All of them must have the same chunks of rows.
    """

    array: Any
    extras: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"x{j + 1}" for j in range(self.array.shape[1]))

    @property
    def named(self) -> bool:
        return False

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = dict(zip(self.names, np.asarray(self.array.compute()).T, strict=True))
        return columns, {role: column.compute() for role, column in self.extras.items()}

    def _partitions(self) -> Sequence[Any]:
        return list(self.array.to_delayed().ravel())

    def _tasks(
        self, work: Callable[[Batch], Any], names: Sequence[str]
    ) -> tuple[Callable[[Any, int], list[Any]], Sequence[Any]]:
        from dask import delayed

        columns = tuple(self.names.index(name) for name in names)
        parts = [self._partitions()]
        parts += [column.to_delayed().ravel() for column in self.extras.values()]
        joined = [delayed(tuple)(list(group)) for group in zip(*parts, strict=True)]
        return _OnArrays(work, tuple(names), columns, tuple(self.extras)), joined


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
