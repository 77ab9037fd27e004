"""A work unit: some steps of one chain, a pure function of its task, run on any worker.

A unit starts a chain from its seed, or restores it from a snapshot, and continues it until the
chain is finished or the unit ends. When a unit ends does not change the chain's steps.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Literal, final

import numpy as np
from threadpoolctl import ThreadpoolController

from dbrm.errors import DBRMError, InvalidSettingError
from dbrm.evolution import (
    AbstractChain,
    ChainProgress,
    ChainResult,
    Problem,
    ProgressCallback,
    Snapshot,
    find_algorithm,
    proceed,
)

__all__ = ["ChainTask", "Outcome", "WorkUnit", "begin", "chain_class", "run_unit"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ChainTask:
    """Everything that a chain depends on besides the problem."""

    index: int
    algorithm: str
    seed: np.random.SeedSequence


@final
@dataclass(frozen=True, slots=True, eq=False)
class WorkUnit:
    """How far to continue a chain, and what to return.

    Parameters
    ----------
    snapshot
        State of the chain; ``None`` if it has not begun.
    seconds, deadline
        The unit ends after this many seconds, or at this time of the clock.
    until
        Populations (and steps) at which it ends.
    patient
        Whether to ignore the deadline and do at least one population: workers may take long to
        start, and clocks differ. Other units that start after the deadline do nothing.
    keep
        Return the snapshot of a finished chain too, and the result of an unfinished one.
    folder
        A folder that the processes of one machine share: the unit ends when a file ``stop``
        is in it, and marks itself as running by a file.
    run, driver
        Name of the run, and number of the process that drives it.
    """

    task: ChainTask
    snapshot: Snapshot | None
    deadline: float
    seconds: float
    until: int = sys.maxsize
    patient: bool = False
    keep: bool = False
    folder: str = ""
    run: str = ""
    driver: int = 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Outcome of a work unit."""

    index: int
    status: Literal["finished", "paused", "untouched", "failed", "lost"]
    snapshot: Snapshot | None = None
    result: ChainResult | None = None
    chain_progress: ChainProgress | None = None
    failure: str = ""


def chain_class(algorithm: str) -> type[AbstractChain]:
    """The class of an algorithm's chains."""
    found = find_algorithm(algorithm)
    if not issubclass(found, AbstractChain):
        msg = f"algorithm={algorithm!r} has no chains."
        raise InvalidSettingError(msg)
    return found


def begin(task: ChainTask, problem: Problem, snapshot: Snapshot | None) -> AbstractChain:
    """A chain at its start, or restored from a snapshot."""
    rng = np.random.Generator(np.random.PCG64(task.seed))
    run = chain_class(task.algorithm)(rng, problem)
    if snapshot is not None:
        run.set_state(snapshot)
    return run


def run_unit(unit: WorkUnit, problem: Problem, report: ProgressCallback | None = None) -> Outcome:
    """Run one work unit.

    Linear algebra runs in one thread: how many there are changes the order of
    summation, and joblib gives its workers fewer than the main process has. An error in the
    chain is part of the outcome; errors about data and settings are raised.
    """
    index = unit.task.index
    stop = Path(unit.folder) / "stop"
    ends = time.time() + unit.seconds
    if not unit.patient:
        ends = min(ends, unit.deadline)

    def stopped() -> bool:
        return bool(unit.folder) and stop.exists()

    def over() -> bool:
        return time.time() >= ends or stopped()

    if stopped() or (time.time() >= ends and not unit.patient):
        return Outcome(index, "untouched", unit.snapshot)
    elsewhere = os.getpid() != unit.driver
    if elsewhere:
        _end_with_driver(os.getpid(), unit.driver)
    problem = _own(problem, unit.run) if elsewhere or _in_a_thread() else problem
    one_thread = _thread_pools(len(sys.modules)).limit(limits=1)
    with one_thread, _deaf_to_interrupts(elsewhere), _mark(unit):
        try:
            run = begin(unit.task, problem, unit.snapshot)
            proceed(run, over, report, until=unit.until)
            wanted = run.finished or unit.keep
            return Outcome(
                index,
                "finished" if run.finished else "paused",
                run.get_state() if unit.keep or not run.finished else None,
                run.result() if wanted else None,
                run.progress(),
            )
        except DBRMError:
            raise
        except Exception:
            return Outcome(index, "failed", unit.snapshot, failure=traceback.format_exc())


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:  # noqa: ARG001
    """The thread pools of linear algebra in this process, which modules bring along.

    Finding them takes milliseconds: again only if modules were loaded since.
    """
    return ThreadpoolController()


# The problem this thread works on: what it has learned, such as the weights of projections,
# serves the next unit too. One at a time, and never shared between threads.
_LOCAL = threading.local()


def _own(problem: Problem, run: str) -> Problem:
    if getattr(_LOCAL, "run", None) != run or not run:
        _LOCAL.run, _LOCAL.problem = run, replace(problem)
    known: Problem = _LOCAL.problem
    return known


# Seconds between two looks whether the driver is still there.
_LOOK = 0.5


@cache
def _end_with_driver(process: int, driver: int) -> None:  # noqa: ARG001 (once per process)
    """End this process when its driver dies, if the driver started it.

    Workers of a forked pool hold both ends of the pipe they wait on and would wait for ever,
    and a population may take long. Workers that others started, as those of Dask and Ray, are
    left to them.
    """
    starter = multiprocessing.parent_process()
    alive: Callable[[], bool]
    if os.getppid() == driver:
        # The system gives orphans another parent; on Windows it does not, and the pipe breaks.
        alive = partial(_is_parent, driver)
    elif starter is not None and starter.pid == driver:
        # Through a fork server, which outlives the driver.
        alive = starter.is_alive
    else:
        return

    def watch() -> None:
        while alive():
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="dbrm-driver-watch", daemon=True).start()


def _is_parent(process: int) -> bool:
    return os.getppid() == process


def _in_a_thread() -> bool:
    return threading.current_thread() is not threading.main_thread()


@contextmanager
def _deaf_to_interrupts(elsewhere: bool) -> Iterator[None]:
    """Ignore Ctrl-C, which a terminal sends to every process; the driver handles it."""
    if not elsewhere or _in_a_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _mark(unit: WorkUnit) -> Iterator[None]:
    """Mark this unit as running; if its process dies, the mark remains."""
    folder = Path(unit.folder)
    if not unit.folder or not folder.is_dir():
        yield
        return
    mark = folder / f"running-{unit.task.index}"
    mark.touch()
    yield
    mark.unlink(missing_ok=True)
