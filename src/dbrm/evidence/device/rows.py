"""Rows out of core on a graphics processor: their response, and columns as they are needed.

Columns are made block by block, in a few threads, and stay on the device from one population to
the next, which has most of them in common, for all chains.
"""

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock, Thread
from typing import Any, TypeVar, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Matrix
from dbrm.data import Block
from dbrm.evidence.device.platform import load_program, padded_rows, padded_width

__all__ = ["DeviceRows", "HeldPopulation", "Part", "Reader"]

# Numbers in columns that are kept for the next population, and their share of the memory.
_MOST_NUMBERS, _MOST_MEMORY = 1_000_000_000, 0.25
# Models whose sums are worked out together.
_BATCHES = (16, 256)
# Models and columns beside the intercept of which nearly every fit needs the sums: chains for a
# population of the default size, the end of a fit for models with forty columns in common.
_USUAL = ((_BATCHES[0], 15), (_BATCHES[0], 40), (_BATCHES[1], 40))
# Threads of one chain that make columns.
_THREADS = min(max((os.cpu_count() or 1) // 4, 1), 4)

Done = TypeVar("Done")
# Ones and standardised columns by row; mean response, weight and offset by row; and which columns
# are not finite. All of them end with zeros where a block is shorter than others.
Part = tuple[FloatArray, FloatArray, Mask]
# The rows in blocks, and what makes their parts.
Reader = tuple[Iterable[Block], Callable[[Block], Part]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """A standardised column in blocks on the device."""

    blocks: tuple[Any, ...]
    is_bad: bool


@final
class DeviceRows:
    """The rows of one response on a device; may be shared between threads.

    Parameters
    ----------
    platform
        Of JAX.
    family, link
        Numbers of `dbrm._kernels.glm_rows`.
    n_rows
        Number of rows.
    block_rows
        Most rows of one block.
    """

    def __init__(self, platform: str, family: int, link: int, n_rows: int, block_rows: int) -> None:
        self._program = load_program()
        self._device = self._program.find_devices(platform)[0]
        self._likelihood = self._program.Likelihood(family, link, True)
        self._block = padded_rows(min(n_rows, block_rows))
        most = min(_MOST_NUMBERS, _MOST_MEMORY * self._program.memory_of(self._device) / 8)
        self._most_columns = max(int(most / n_rows), 1)
        self._response: tuple[Any, ...] = ()
        self._columns: dict[Hashable, _Column] = {}
        self._lock = Lock()
        Thread(target=self._compile, name="dbrm-device-compile").start()

    @cached_property
    def _nothing(self) -> Any:
        """A column of zeros."""
        return self._program.place(self._device, np.zeros(self._block))

    def _compile(self) -> None:
        """Compile the programs of most fits while chains make features, by using them once."""
        response = [(self._nothing,) * 4]
        for n_models, n_columns in _USUAL:
            column = _Column((self._nothing,), is_bad=False)
            population = self._assemble([column] * n_columns, response)
            population.sums([(np.arange(1), np.zeros(1))] * n_models)

    def hold(
        self, sources: Sequence[Hashable], read: Callable[[IntArray], Reader]
    ) -> "HeldPopulation":
        """Hold the columns of a population; `read` visits the rows for some of them.

        Columns of equal sources are read once.
        """
        with self._lock:
            found = {source: self._columns.get(source) for source in sources}
        missing = np.array([j for j, source in enumerate(sources) if found[source] is None], int)
        if missing.size or not self._response:
            columns, response = self._read(*read(missing), missing.size)
            self._response = self._response or response
            found |= {sources[j]: column for j, column in zip(missing, columns, strict=True)}
        held = {source: column for source, column in found.items() if column is not None}
        with self._lock:
            # Those used last are dropped last.
            for source, column in held.items():
                self._columns.pop(source, None)
                self._columns[source] = column
            for oldest in list(self._columns)[: -self._most_columns]:
                del self._columns[oldest]
        return self._assemble([held[source] for source in sources], self._response)

    def _read(
        self, blocks: Iterable[Block], make: Callable[[Block], Part], n_columns: int
    ) -> tuple[list[_Column], tuple[Any, ...]]:
        """Columns and response of all rows, block by block on the device."""
        wants_response = not self._response

        def work(block: Block) -> tuple[list[Any], list[Any], Mask]:
            columns, rows, bad = make(block)
            response = [*rows, columns[0]] if wants_response else []
            return self._place(columns[1:]), self._place(response), bad

        found = list(_work_ahead(work, blocks))
        bad = np.any([part[2] for part in found], axis=0)
        columns = [
            _Column(tuple(part[0][j] for part in found), bool(bad[j])) for j in range(n_columns)
        ]
        return columns, tuple(part[1] for part in found)

    def _place(self, values: Iterable[FloatArray]) -> list[Any]:
        return [self._program.place(self._device, self._fill(row)) for row in values]

    def _fill(self, row: FloatArray) -> FloatArray:
        """The row in the length of all blocks, with zeros at its end."""
        if row.size >= self._block:
            return row[: self._block]
        wide = np.zeros(self._block)
        wide[: row.size] = row
        return wide

    def _assemble(self, columns: list[_Column], response: Sequence[Any]) -> "HeldPopulation":
        missing = [self._nothing] * (padded_width(len(columns) + 1) - len(columns) - 1)
        blocks = []
        for number, (mean, total, offset, ones) in enumerate(response):
            inside = [ones, *(column.blocks[number] for column in columns), *missing]
            blocks.append(self._program.stack_rows(inside, mean, total, offset))
        bad = np.array([column.is_bad for column in columns], dtype=np.bool_)
        return HeldPopulation(self._program, self._likelihood, blocks, bad)


@final
@dataclass(frozen=True, slots=True, eq=False)
class HeldPopulation:
    """Columns of a population on the device. Those that are `bad` count as zero."""

    program: Any
    likelihood: Any
    blocks: list[Any]
    bad: Mask

    def sums(self, points: Sequence[tuple[IntArray, FloatArray]]) -> list[Matrix]:
        """Sums over all rows of models at coefficients; a point is columns and coefficients.

        The information, bordered by the score, with the log likelihood in the corner.
        """
        return [
            total
            for start in range(0, len(points), _BATCHES[-1])
            for total in self._sums(points[start : start + _BATCHES[-1]])
        ]

    def _sums(self, points: Sequence[tuple[IntArray, FloatArray]]) -> list[Matrix]:
        size = next(batch for batch in _BATCHES if batch >= len(points))
        beta = np.zeros((size, self.blocks[0].columns.shape[1]))
        for row, (members, coefficients) in enumerate(points):
            beta[row, members] = coefficients
        sums = self.program.sum_blocks(self.likelihood, self.blocks, beta)
        value, score, information = self.program.to_host(sums)
        sound = np.concatenate([[1.0], ~self.bad])
        found = []
        for row, (members, _) in enumerate(points):
            kept = sound[members]
            total = np.empty((members.size + 1, members.size + 1))
            total[:-1, :-1] = information[row][np.ix_(members, members)] * np.outer(kept, kept)
            total[-1, :-1] = total[:-1, -1] = score[row][members] * kept
            total[-1, -1] = value[row]
            found.append(total)
        return found


def _work_ahead(work: Callable[[Block], Done], blocks: Iterable[Block]) -> Iterator[Done]:
    """The work on each block, in order, done by a few threads: the device must not wait for it."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[Done]] = deque()
        for block in blocks:
            waiting.append(pool.submit(work, block))
            if len(waiting) > 2 * _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
