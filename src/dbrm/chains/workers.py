"""Where slices run: in this process, through joblib, or on an executor of the user's.

All take a list of slices and give their outcomes as they come, in any order. A worker that
dies takes its slices with it: their outcomes are ``"lost"``, and what to do about it is
decided elsewhere.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, as_completed
from typing import Any, final

import joblib
from threadpoolctl import threadpool_limits

from dbrm.chains.log import log_event
from dbrm.chains.task import Outcome, Slice, run_slice
from dbrm.errors import DBRMError, InvalidSettingError
from dbrm.evolution import ChainProgress, Problem

__all__ = ["AbstractWorkers", "choose_workers"]

Live = Callable[[int, ChainProgress], None]


class AbstractWorkers(ABC):
    """A place where slices can run."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many slices run at a time."""

    @abstractmethod
    def share(self, problem: Problem) -> None:
        """Take the problem that all slices work on, once."""

    def close(self) -> None:  # noqa: B027 (most have nothing to give back)
        """Give the workers back."""

    @abstractmethod
    def run(self, slices: list[Slice]) -> Iterator[Outcome]:
        """Run the slices; one outcome each, as they come."""


def choose_workers(
    n_jobs: int | None, executor: Any, n_chains: int, live: Live | None, *, threads: bool = False
) -> AbstractWorkers:
    """The place that the settings `n_jobs` and `executor`, or joblib's context, ask for.

    With `threads`, joblib's workers are threads, which have all data in common.
    """
    if executor is None:
        count = min(joblib.effective_n_jobs(n_jobs), n_chains)
        return Here(live) if count == 1 else Joblib(count, threads=threads)
    if isinstance(executor, Executor):
        return Futures(executor, getattr(executor, "_max_workers", None) or n_chains)
    if executor == "ray":
        from dbrm.chains.ray import RayTasks

        return RayTasks()
    if all(hasattr(executor, name) for name in ("submit", "scatter", "scheduler_info")):
        from dbrm.chains.dask import DaskTasks

        return DaskTasks(executor)
    msg = (
        "executor must be a dask.distributed.Client, 'ray', or a concurrent.futures.Executor; got "
        f"executor={executor!r}. To run on the cores of this machine, leave it out and set n_jobs."
    )
    raise InvalidSettingError(msg)


@final
class Here(AbstractWorkers):
    """The process that asks; `live` hears of every population."""

    count = 1

    def __init__(self, live: Live | None) -> None:
        self._live = live

    def share(self, problem: Problem) -> None:
        self._problem = problem

    def run(self, slices: list[Slice]) -> Iterator[Outcome]:
        for piece in slices:
            yield run_slice(piece, self._problem, self._report(piece.task.index))

    def _report(self, index: int) -> Callable[[ChainProgress], None] | None:
        live = self._live
        return None if live is None else lambda chain_progress: live(index, chain_progress)


@final
class Joblib(AbstractWorkers):
    """The workers of joblib: processes by default, or whatever `joblib.parallel_config` says.

    Large arrays of the problem are shared between processes as memory maps, which is one more
    copy of them. Threads need none.
    """

    def __init__(self, count: int, *, threads: bool = False) -> None:
        self._count = count
        self._threads = threads
        self._limits: Any = None
        self._parallel: Any = None

    @property
    def count(self) -> int:
        return self._count

    def share(self, problem: Problem) -> None:
        self._problem = problem

    def run(self, slices: list[Slice]) -> Iterator[Outcome]:
        if self._parallel is None:
            if self._threads:
                # For all threads until the end: each would restore what it found.
                self._limits = threadpool_limits(limits=1)
            self._parallel = _open_parallel(self._count, threads=self._threads)
        work = joblib.delayed(run_slice)
        waiting = {piece.task.index for piece in slices}
        try:
            for outcome in self._parallel(work(piece, self._problem) for piece in slices):
                waiting.discard(outcome.index)
                yield outcome
        except DBRMError:
            raise
        except Exception as error:
            self.close()
            yield from lost(waiting, error)

    def close(self) -> None:
        if self._parallel is not None:
            self._parallel.__exit__(None, None, None)
            self._parallel = None
        if self._limits is not None:
            self._limits.restore_original_limits()
            self._limits = None


def _open_parallel(n_jobs: int, *, threads: bool) -> Any:
    """Workers that stay; outcomes as they come, or, if the backend cannot do that, at the end."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "batch_size": 1}
    if threads:
        options["backend"] = "threading"
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:
        parallel = joblib.Parallel(**options)
    return parallel.__enter__()


@final
class Futures(AbstractWorkers):
    """Any executor of `concurrent.futures`."""

    def __init__(self, executor: Executor, count: int) -> None:
        self._executor = executor
        self._count = count

    @property
    def count(self) -> int:
        return self._count

    def share(self, problem: Problem) -> None:
        self._problem = problem

    def run(self, slices: list[Slice]) -> Iterator[Outcome]:
        submit = self._executor.submit
        try:
            futures = {submit(run_slice, piece, self._problem): piece for piece in slices}
        except Exception as error:
            yield from lost((piece.task.index for piece in slices), error)
            return
        for future in as_completed(futures):
            try:
                yield future.result()
            except DBRMError:
                raise
            except Exception as error:
                yield from lost([futures[future].task.index], error)


def lost(indices: Iterable[int], error: Exception) -> Iterator[Outcome]:
    """Outcomes of slices whose worker died."""
    reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    for index in sorted(indices):
        log_event(logging.WARNING, "worker_lost", f"Chain {index}: {reason}", chain=index)
        yield Outcome(index, "lost", failure=reason)
