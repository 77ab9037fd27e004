"""Executors: where work units run. In this process, through joblib, Dask, Ray or futures.

Each takes a list of work units and yields their outcomes as they arrive, in any order. The
outcome of a unit whose worker dies is ``"lost"``; the driver decides what to do about it.
To add an executor, write its class here and name it in `choose_executor`.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, as_completed
from typing import Any, final

import joblib
from threadpoolctl import threadpool_limits

from dbrm.chains.log import log_event
from dbrm.chains.work_unit import Outcome, WorkUnit, run_unit
from dbrm.errors import DBRMError, InvalidSettingError
from dbrm.evolution import ChainProgress, Problem

__all__ = ["AbstractExecutor", "choose_executor"]

Live = Callable[[int, ChainProgress], None]


class AbstractExecutor(ABC):
    """Runs work units."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of units that run at a time."""

    @abstractmethod
    def share(self, problem: Problem) -> None:
        """Receive the problem that all units work on, once."""

    def close(self) -> None:  # noqa: B027 (most have nothing to release)
        """Release the workers."""

    @abstractmethod
    def run(self, units: list[WorkUnit]) -> Iterator[Outcome]:
        """Run the units and yield one outcome each, as they arrive."""


@final
class InProcess(AbstractExecutor):
    """The calling process; `live` is called after every population."""

    count = 1

    def __init__(self, live: Live | None) -> None:
        self._live = live

    def share(self, problem: Problem) -> None:
        self._problem = problem

    def run(self, units: list[WorkUnit]) -> Iterator[Outcome]:
        for unit in units:
            yield run_unit(unit, self._problem, self._report(unit.task.index))

    def _report(self, index: int) -> Callable[[ChainProgress], None] | None:
        live = self._live
        return None if live is None else lambda chain_progress: live(index, chain_progress)


@final
class Joblib(AbstractExecutor):
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

    def run(self, units: list[WorkUnit]) -> Iterator[Outcome]:
        if self._parallel is None:
            if self._threads:
                # For all threads until the end: each would restore what it found.
                self._limits = threadpool_limits(limits=1)
            self._parallel = _open_parallel(self._count, threads=self._threads)
        work = joblib.delayed(run_unit)
        waiting = {unit.task.index for unit in units}
        try:
            for outcome in self._parallel(work(unit, self._problem) for unit in units):
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
    """Workers that persist; outcomes as they arrive or, if the backend cannot, at the end."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "batch_size": 1}
    if threads:
        options["backend"] = "threading"
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:
        parallel = joblib.Parallel(**options)
    return parallel.__enter__()


@final
class Futures(AbstractExecutor):
    """Any executor of `concurrent.futures`."""

    def __init__(self, executor: Executor, n_chains: int) -> None:
        self._executor = executor
        self._count = getattr(executor, "_max_workers", None) or n_chains

    @staticmethod
    def accepts(executor: Any) -> bool:
        return isinstance(executor, Executor)

    @property
    def count(self) -> int:
        return self._count

    def share(self, problem: Problem) -> None:
        self._problem = problem

    def run(self, units: list[WorkUnit]) -> Iterator[Outcome]:
        submit = self._executor.submit
        try:
            futures = {submit(run_unit, unit, self._problem): unit for unit in units}
        except Exception as error:
            yield from lost((unit.task.index for unit in units), error)
            return
        for future in as_completed(futures):
            try:
                yield future.result()
            except DBRMError:
                raise
            except Exception as error:
                yield from lost([futures[future].task.index], error)


@final
class Dask(AbstractExecutor):
    """The workers of a `dask.distributed.Client`; each gets the problem once."""

    def __init__(self, client: Any, n_chains: int) -> None:  # noqa: ARG002
        self._client = client

    @staticmethod
    def accepts(executor: Any) -> bool:
        return all(hasattr(executor, name) for name in ("submit", "scatter", "scheduler_info"))

    @property
    def count(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    def share(self, problem: Problem) -> None:
        self._problem = problem
        self._shared: Any = None

    def run(self, units: list[WorkUnit]) -> Iterator[Outcome]:
        from dask.distributed import as_completed

        if self._shared is None:
            self._shared = self._client.scatter(self._problem, broadcast=True, hash=False)
        futures = {
            self._client.submit(run_unit, unit, self._shared, pure=False): unit.task.index
            for unit in units
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


@final
class Ray(AbstractExecutor):
    """Tasks on the cluster that `ray.init` connected to; the problem is in its object store."""

    def __init__(self, executor: Any, n_chains: int) -> None:  # noqa: ARG002
        try:
            import ray
        except ImportError as error:
            msg = "executor='ray' needs Ray: pip install 'dbrm[ray]'."
            raise InvalidSettingError(msg) from error
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self._ray: Any = ray
        self._work = ray.remote(num_cpus=1, max_retries=0)(run_unit)

    @staticmethod
    def accepts(executor: Any) -> bool:
        return bool(executor == "ray")

    @property
    def count(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def share(self, problem: Problem) -> None:
        self._problem = self._ray.put(problem)

    def run(self, units: list[WorkUnit]) -> Iterator[Outcome]:
        waiting = {self._work.remote(unit, self._problem): unit.task.index for unit in units}
        while waiting:
            (reference,), _ = self._ray.wait(list(waiting), num_returns=1)
            index = waiting.pop(reference)
            try:
                yield self._ray.get(reference)
            except DBRMError:
                raise
            except Exception as error:
                yield from lost([index], error)


def choose_executor(
    n_jobs: int | None, executor: Any, n_chains: int, live: Live | None, *, threads: bool = False
) -> AbstractExecutor:
    """The executor that the settings `n_jobs` and `executor`, or joblib's context, ask for.

    With `threads`, the workers of joblib are threads, which share all data.
    """
    if executor is None:
        count = min(joblib.effective_n_jobs(n_jobs), n_chains)
        return InProcess(live) if count == 1 else Joblib(count, threads=threads)
    for kind in (Futures, Ray, Dask):
        if kind.accepts(executor):
            return kind(executor, n_chains)
    msg = (
        "executor must be a dask.distributed.Client, 'ray', or a concurrent.futures.Executor; got "
        f"executor={executor!r}. To run on the cores of this machine, leave it out and set n_jobs."
    )
    raise InvalidSettingError(msg)


def lost(indices: Iterable[int], error: Exception) -> Iterator[Outcome]:
    """Outcomes of units whose worker died."""
    reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    for index in sorted(indices):
        log_event(logging.WARNING, "worker_lost", f"Chain {index}: {reason}", chain=index)
        yield Outcome(index, "lost", failure=reason)
