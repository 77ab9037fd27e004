"""Rows out of core on a graphics processor: their response, and columns as they are needed.

Rows are read in blocks of the data's own size and held in larger ones. Columns stay on the device
from one population to the next, which has most of them in common, for all chains.
"""

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Matrix
from dbrm.evidence.device.platform import load_program, padded_rows, padded_width

__all__ = ["DeviceRows", "HeldPopulation", "Part", "work_ahead"]

# Rows of one block on the device.
_MOST_ROWS = 1 << 18
# Numbers in columns that are kept for the next population.
_MOST_NUMBERS = 1_000_000_000
# Models whose sums are worked out together.
_BATCHES = (16, 256)
# Threads of one chain that make columns.
_THREADS = min(max((os.cpu_count() or 1) // 4, 1), 4)

Given = TypeVar("Given")
Done = TypeVar("Done")
# Ones and standardised columns by row; mean response, weight and offset by row; and which columns
# are not finite.
Part = tuple[FloatArray, FloatArray, Mask]


def work_ahead(work: Callable[[Given], Done], items: Iterable[Given]) -> Iterator[Done]:
    """The work on each item, in order, done by a few threads: the device must not wait for it."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[Done]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


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
    """

    def __init__(self, platform: str, family: int, link: int, n_rows: int) -> None:
        self._program = load_program()
        self._device = self._program.find_devices(platform)[0]
        self._likelihood = self._program.Likelihood(family, link, True)
        self._block = min(padded_rows(n_rows), _MOST_ROWS)
        self._most_columns = max(_MOST_NUMBERS // n_rows, 1)
        self._response: tuple[Any, ...] = ()
        self._columns: dict[Hashable, _Column] = {}
        self._lock = Lock()

    def hold(
        self, sources: Sequence[Hashable], read: Callable[[IntArray], Iterable[Part]]
    ) -> "HeldPopulation":
        """Hold the columns of a population; `read` visits the rows for some of them.

        Columns of equal sources are read once.
        """
        with self._lock:
            found = {source: self._columns.get(source) for source in sources}
        missing = np.array([j for j, source in enumerate(sources) if found[source] is None], int)
        if missing.size or not self._response:
            columns, response = self._read(read(missing), missing.size)
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
        return self._assemble([held[source] for source in sources])

    def _read(
        self, parts: Iterable[Part], n_columns: int
    ) -> tuple[list[_Column], tuple[Any, ...]]:
        """Columns and response of all rows, block by block on the device."""
        bad = np.zeros(n_columns, dtype=np.bool_)
        buffer, place = np.zeros((n_columns + 4, self._block)), 0
        blocks: list[list[Any]] = []
        for columns, rows, found in parts:
            bad |= found
            start, n = 0, rows.shape[1]
            while start < n:
                stop = min(n, start + self._block - place)
                here = slice(place, place + stop - start)
                buffer[:3, here] = rows[:, start:stop]
                buffer[3:, here] = columns[:, start:stop]
                start, place = stop, here.stop
                if place == self._block:
                    blocks.append(self._place(buffer))
                    buffer, place = np.zeros_like(buffer), 0
        if place:
            blocks.append(self._place(buffer))
        response, free = slice(4), range(4, n_columns + 4)
        return (
            [
                _Column(tuple(block[row] for block in blocks), bool(is_bad))
                for row, is_bad in zip(free, bad, strict=True)
            ],
            tuple(block[response] for block in blocks),
        )

    def _place(self, buffer: Matrix) -> list[Any]:
        return [self._program.place(self._device, row) for row in buffer]

    def _assemble(self, columns: list[_Column]) -> "HeldPopulation":
        width = padded_width(len(columns) + 1)
        blocks = []
        for number, (mean, total, offset, ones) in enumerate(self._response):
            inside = [ones, *(column.blocks[number] for column in columns)]
            blocks.append(self._program.stack_rows(inside, width, mean, total, offset))
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
