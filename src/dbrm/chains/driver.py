"""The driver of a run: cuts chains into work units, sends them to workers, collects results.

One seed sequence is spawned into one child per chain. The same ``random_state`` therefore gives
the same chains for any number of workers, any order and length of work units, with or without
interruptions.
"""

import logging
import math
import os
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from dbrm.chains.checkpoint import Checkpoint
from dbrm.chains.executors import AbstractExecutor, InProcess, choose_executor
from dbrm.chains.interrupts import StopEvent, catch_interrupts
from dbrm.chains.log import log_event
from dbrm.chains.work_unit import ChainTask, Outcome, WorkUnit, begin, chain_class, run_unit
from dbrm.errors import ChainError, InvalidSettingError
from dbrm.evolution import ChainProgress, ChainResult, Problem, Snapshot

__all__ = ["Progress", "RunReport", "run_chains", "seed_sequence"]

# Called with a chain's number and its progress; with None when it has ended.
Progress = Callable[[int, ChainProgress | None], None]
# Whether the chains agree, given their results so far.
Agree = Callable[[list[ChainResult]], bool]

# Seconds of a round of work units: by default, and with a progress bar.
_ROUND, _WATCHED_ROUND = 5.0, 1.0
# With checkpoints a round takes this many times as long as writing them, within these limits.
_WRITING_SHARE, _SHORTEST, _LONGEST = 20.0, 0.2, 10.0
# Retries of a chain that fails or whose worker dies.
_RETRIES = 2
# Chains are compared after each of this many equal parts.
_PARTS = 8


@final
@dataclass(frozen=True, slots=True)
class RunReport:
    """How the chains of a run ended.

    Parameters
    ----------
    n_chains, n_begun, n_finished
        Chains that were asked for, those that took any step, and those that took all of them.
    failures
        Traceback of every chain that failed after all retries.
    ended
        Why the run ended before its time: ``"SIGINT"``, ``"SIGTERM"``, ``"agreement"``, or
        empty.
    """

    n_chains: int
    n_begun: int
    n_finished: int
    failures: dict[int, str]
    ended: str

    def followed_by(self, other: "RunReport") -> "RunReport":
        """The report of two calls, one after the other."""
        return RunReport(
            n_chains=self.n_chains + other.n_chains,
            n_begun=self.n_begun + other.n_begun,
            n_finished=self.n_finished + other.n_finished,
            failures=self.failures | other.failures,
            ended=other.ended,
        )


@dataclass(slots=True)
class _Chain:
    """State of one chain, as the driver sees it."""

    task: ChainTask
    snapshot: Snapshot | None = None
    result: ChainResult | None = None
    n_done: int = 0
    finished: bool = False
    attempts: int = 0
    failure: str = ""
    alone: bool = False
    flushed: bool = False

    def open(self, until: int) -> bool:
        return not (self.finished or self.failure) and self.n_done < until


@final
@dataclass(slots=True)
class _Driver:
    """Sends work units to the executor and collects their outcomes."""

    problem: Problem
    executor: AbstractExecutor
    chains: list[_Chain]
    stop: StopEvent
    take: Callable[[ChainResult], None]
    progress: Progress | None
    checkpoint: Checkpoint | None
    agree: Agree | None
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    written: float = 0.0
    n_ended: int = sys.maxsize

    def drive(self) -> str:
        """Run all chains; returns why the run ended early, or an empty string."""
        self._resume()
        for until in self._milestones():
            while not self.stop.is_set:
                chains = [chain for chain in self.chains if chain.open(until)]
                if not chains:
                    break
                self._round(chains, until)
            if self.stop.is_set:
                if self.stop.reason == "SIGINT":
                    self._begin_one()
                return str(self.stop.reason)
            if self.agree is not None and until < sys.maxsize:
                results = [chain.result for chain in self.chains if chain.result is not None]
                if len(results) > 1 and self.agree(results):
                    message = f"The chains agree after {until} populations"
                    log_event(logging.INFO, "agreement", message, population=until)
                    return "agreement"
        return ""

    def _milestones(self) -> list[int]:
        """Populations at which chains are compared; last, their end."""
        if self.agree is None:
            return [sys.maxsize]
        algorithm = chain_class(self.chains[0].task.algorithm)
        total = algorithm.total(self.problem.budget)
        milestones = {math.ceil(total * k / _PARTS) for k in range(1, _PARTS)}
        return [*sorted(milestones - {total}), sys.maxsize]

    def _resume(self) -> None:
        """Restore the chains that are in the checkpoint."""
        if self.checkpoint is None:
            return
        for chain in self.chains:
            layout = chain_class(chain.task.algorithm).layout
            snapshot = self.checkpoint.load_chain(chain.task.index, self.problem, layout)
            if snapshot is None:
                continue
            run = begin(chain.task, self.problem, snapshot)
            chain.snapshot, chain.n_done = snapshot, run.n_done
            message = f"Chain {chain.task.index} goes on from population {run.n_done}"
            log_event(
                logging.INFO, "resumed", message, chain=chain.task.index, population=run.n_done
            )
            if run.finished or self.agree is not None:
                chain.result = run.result()
            if run.finished:
                chain.finished, chain.snapshot = True, None
                self._notify(chain, None)
        self._flush_results()

    def _round(self, chains: list[_Chain], until: int) -> None:
        """Run one work unit of each of some chains, chains that have begun first."""
        seconds = self._seconds()
        units = [
            WorkUnit(
                task=chain.task,
                snapshot=chain.snapshot,
                deadline=time.time() + seconds,
                seconds=seconds,
                until=until,
                patient=place < self.executor.count,
                keep=self.checkpoint is not None or self.agree is not None,
                folder=self.stop.folder,
                run=self.run,
                driver=os.getpid(),
            )
            for place, chain in enumerate(self._choose(chains))
        ]
        self.written, self.n_ended = 0.0, 0
        lost = []
        for outcome in self.executor.run(units):
            chain = self.chains[outcome.index - self.chains[0].task.index]
            if outcome.status == "lost":
                lost.append((chain, outcome.failure))
            else:
                chain.alone = False
                self._update(chain, outcome)
            # Free its memory before the next outcome arrives.
            del outcome
        self._handle_lost_workers(lost)

    def _begin_one(self) -> None:
        """If no chain has begun, run one on the covariates and the pool, to have a result."""
        if self.chains[0].task.index > 0 or any(chain.n_done for chain in self.chains):
            return
        chain = self.chains[0]
        for _ in range(2 if self.problem.pool else 1):
            unit = WorkUnit(
                task=chain.task,
                snapshot=chain.snapshot,
                deadline=0.0,
                seconds=0.0,
                patient=True,
                keep=self.checkpoint is not None,
                driver=os.getpid(),
            )
            self._update(chain, run_unit(unit, self.problem))

    def _choose(self, chains: list[_Chain]) -> list[_Chain]:
        for chain in chains:
            if chain.alone:
                return [chain]
        ordered = sorted(chains, key=lambda chain: (chain.n_done == 0, chain.task.index))
        return ordered[: 2 * (self.executor.count + self.n_ended)]

    def _seconds(self) -> float:
        if self.checkpoint is not None:
            return min(max(_WRITING_SHARE * self.written, _SHORTEST), _LONGEST)
        if isinstance(self.executor, InProcess):
            return math.inf
        return _ROUND if self.progress is None else _WATCHED_ROUND

    def _update(self, chain: _Chain, outcome: Outcome) -> None:
        """Update a chain from the outcome of its work unit."""
        index = chain.task.index
        if outcome.status == "untouched":
            return
        if outcome.status == "failed":
            self._count_failure(chain, outcome.failure)
            return
        assert outcome.chain_progress is not None
        chain.n_done = outcome.chain_progress.n_done
        chain.finished = outcome.status == "finished"
        chain.result = outcome.result
        chain.snapshot = None if chain.finished else outcome.snapshot
        if self.checkpoint is not None:
            assert outcome.snapshot is not None
            before = time.perf_counter()
            self.checkpoint.save_chain(index, outcome.snapshot, self.problem, chain.n_done)
            self.written += time.perf_counter() - before
        if chain.finished:
            self.n_ended += 1
            fields = {"chain": index, "evaluated": outcome.chain_progress.n_evaluated}
            log_event(logging.INFO, "finished", f"Chain {index} has finished", **fields)
        self._notify(chain, None if chain.finished else outcome.chain_progress)
        self._flush_results()

    def _notify(self, chain: _Chain, chain_progress: ChainProgress | None) -> None:
        if self.progress is not None:
            self.progress(chain.task.index, chain_progress)

    def _handle_lost_workers(self, lost: list[tuple[_Chain, str]]) -> None:
        """Find the chain that killed its worker; if several may have, run each alone next."""
        begun = self.stop.unfinished_chains()
        suspects = [pair for pair in lost if pair[0].task.index in begun] or lost
        if len(suspects) == 1:
            self._count_failure(*suspects[0])
        for chain, _ in suspects:
            chain.alone = True
        failed = [chain.failure for chain in self.chains if chain.failure]
        if failed and not any(chain.n_done for chain in self.chains):
            # No worker ever finished anything, for example for lack of a module: give up.
            for chain in self.chains:
                chain.failure = chain.failure or failed[0]

    def _count_failure(self, chain: _Chain, failure: str) -> None:
        chain.attempts += 1
        index = chain.task.index
        final = chain.attempts > _RETRIES
        if final:
            chain.failure = failure.strip()
        level, event = (logging.ERROR, "failed") if final else (logging.WARNING, "retry")
        reason = failure.strip().splitlines()[-1]
        log_event(level, event, f"Chain {index}: {reason}", chain=index, attempt=chain.attempts)

    def _flush_results(self) -> None:
        """Pass results on in the order of the chains, as soon as possible."""
        if self.agree is not None:
            return
        for chain in self.chains:
            if not (chain.finished or chain.failure):
                return
            self._flush_one(chain)

    def close(self) -> None:
        """Pass on what is left: chains that ended out of order or were cut short."""
        for chain in self.chains:
            if chain.result is None and chain.snapshot is not None and not chain.failure:
                chain.result = begin(chain.task, self.problem, chain.snapshot).result()
            self._flush_one(chain)

    def _flush_one(self, chain: _Chain) -> None:
        if chain.result is not None and not chain.flushed:
            self.take(chain.result)
            chain.result, chain.flushed = None, True


def run_chains(
    problem: Problem,
    n_chains: int,
    seed: np.random.SeedSequence,
    take: Callable[[ChainResult], None],
    *,
    first: int = 0,
    algorithm: str = "gmjmcmc",
    n_jobs: int | None = None,
    executor: Any = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    agree: Agree | None = None,
    stop: StopEvent | None = None,
) -> RunReport:
    """Run all chains and pass their results to `take`, in the order of their numbers.

    Parameters
    ----------
    seed
        Spawned into one child per chain; a second call with it adds other chains.
    first
        Number of the first chain.
    n_jobs, executor
        Where to run: joblib's workers, or a Dask client, Ray, any executor.
    checkpoint
        An open folder. Chains that are in it are continued.
    agree
        Called seven times during the run, at even distances: do the chains agree?
    stop
        Ends the run at the next population once it is set. By default Ctrl-C and SIGTERM set it.

    Raises
    ------
    KeyboardInterrupt
        If the stop was requested before there is any result, of chains before `first` neither.
    """
    if n_chains < 1:
        msg = f"n_chains must be at least 1; got n_chains={n_chains!r}."
        raise InvalidSettingError(msg)
    workers = choose_executor(
        n_jobs,
        executor,
        n_chains,
        progress,
        threads=problem.out_of_core is not None or problem.engine.platform is not None,
    )
    problem = _share_time(problem, workers.count / n_chains)
    workers.share(problem)
    chains = [
        _Chain(ChainTask(index, algorithm, child))
        for index, child in enumerate(seed.spawn(n_chains), start=first)
    ]
    with catch_interrupts() if stop is None else nullcontext(stop) as stop:
        driver = _Driver(problem, workers, chains, stop, take, progress, checkpoint, agree)
        message = f"{n_chains} chains of {algorithm} on {workers.count} workers"
        log_event(logging.INFO, "started", message, chains=n_chains, workers=workers.count)
        try:
            ended = driver.drive()
        finally:
            workers.close()
        driver.close()
    return _report(chains, ended)


def _share_time(problem: Problem, share: float) -> Problem:
    """Divide the time budget among the chains."""
    stop = replace(problem.budget.stop, seconds=problem.budget.stop.seconds * min(share, 1.0))
    return replace(problem, budget=replace(problem.budget, stop=stop))


def _report(chains: list[_Chain], ended: str) -> RunReport:
    failures = {chain.task.index: chain.failure for chain in chains if chain.failure}
    # Chains that are added may all be missing: there is the result of those before.
    if chains[0].task.index == 0 and not any(chain.flushed for chain in chains):
        if not failures:
            raise KeyboardInterrupt
        first = failures[min(failures)]
        msg = f"All {len(chains)} chains failed. The first one:\n{first}"
        raise ChainError(msg)
    return RunReport(
        n_chains=len(chains),
        n_begun=sum(chain.n_done > 0 for chain in chains),
        n_finished=sum(chain.finished for chain in chains),
        failures=failures,
        ended=ended,
    )


def seed_sequence(
    random_state: int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None,
) -> np.random.SeedSequence:
    """Turn any kind of `random_state` into a seed sequence."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(0, 2**63, size=2).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(0, 2**31 - 1, size=4).tolist())
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    msg = (
        "random_state must be None, a non-negative integer, a NumPy Generator, RandomState or "
        f"SeedSequence; got {random_state!r}."
    )
    raise InvalidSettingError(msg)
