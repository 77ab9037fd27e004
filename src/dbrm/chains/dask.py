"""Slices on a Dask cluster, through its client."""

from collections.abc import Iterator
from typing import Any, final

from dbrm.chains.task import Outcome, Slice, run_slice
from dbrm.chains.workers import AbstractWorkers, lost
from dbrm.errors import DBRMError
from dbrm.evolution import Problem

__all__ = ["DaskTasks"]


@final
class DaskTasks(AbstractWorkers):
    """The workers of a `dask.distributed.Client`; each gets the problem once."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def count(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    def share(self, problem: Problem) -> None:
        self._problem = problem
        self._shared: Any = None

    def run(self, slices: list[Slice]) -> Iterator[Outcome]:
        from dask.distributed import as_completed

        if self._shared is None:
            self._shared = self._client.scatter(self._problem, broadcast=True, hash=False)
        futures = {
            self._client.submit(run_slice, piece, self._shared, pure=False): piece.task.index
            for piece in slices
        }
        for future in as_completed(list(futures)):
            try:
                yield future.result()
            except DBRMError:
                raise
            except Exception as error:
                # The problem may have gone with the last worker that held it.
                self._shared = None
                yield from lost([futures[future]], error)
