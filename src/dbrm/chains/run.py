"""Many chains: each a pure function of its task, run by joblib in this order or any other.

Randomness is an argument: one seed sequence is spawned into one child per chain, so the
same ``random_state`` gives the same chains however many workers run them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from dbrm.errors import InvalidSettingError
from dbrm.evolution import (
    ChainResult,
    Glimpse,
    Problem,
    run_gmjmcmc,
    run_mjmcmc,
    run_pool_gibbs,
    run_rgmjmcmc,
)

__all__ = ["ChainTask", "Progress", "run_chain", "run_chains", "seed_sequence"]

ALGORITHMS = {
    "gmjmcmc": run_gmjmcmc,
    "rgmjmcmc": run_rgmjmcmc,
    "pool-gibbs": run_pool_gibbs,
    "mjmcmc": run_mjmcmc,
}

# Told after every population in this process, and after every chain from another one.
Progress = Callable[[int, Glimpse | None], None]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ChainTask:
    """All that a chain depends on."""

    index: int
    algorithm: str
    problem: Problem
    seed: np.random.SeedSequence


def run_chain(task: ChainTask, report: Callable[[Glimpse], None] | None = None) -> ChainResult:
    """Run one chain; the result depends on the task alone.

    Linear algebra runs in one thread: how many there are changes the order of
    summation, and joblib gives its workers fewer than the main process has.
    """
    rng = np.random.Generator(np.random.PCG64(task.seed))
    with threadpool_limits(limits=1):
        return ALGORITHMS[task.algorithm](rng, task.problem, report)


def run_chains(
    problem: Problem,
    n_chains: int,
    seed: np.random.SeedSequence,
    *,
    algorithm: str = "gmjmcmc",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[ChainResult]:
    """Run all chains and return their results in the order of their numbers."""
    if n_chains < 1:
        msg = f"n_chains must be at least 1; got n_chains={n_chains!r}."
        raise InvalidSettingError(msg)
    workers = min(joblib.effective_n_jobs(n_jobs), n_chains)
    problem = _share_time(problem, workers / n_chains)
    tasks = [
        ChainTask(index, algorithm, problem, child)
        for index, child in enumerate(seed.spawn(n_chains))
    ]
    if workers == 1:
        return [_run_here(task, progress) for task in tasks]
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator", pre_dispatch="all")
    results = []
    for index, result in enumerate(parallel(joblib.delayed(run_chain)(task) for task in tasks)):
        results.append(result)
        if progress is not None:
            progress(index, None)
    return results


def _share_time(problem: Problem, share: float) -> Problem:
    """Give every chain its part of the time budget."""
    stop = replace(problem.effort.stop, seconds=problem.effort.stop.seconds * min(share, 1.0))
    return replace(problem, effort=replace(problem.effort, stop=stop))


def _run_here(task: ChainTask, progress: Progress | None) -> ChainResult:
    if progress is None:
        return run_chain(task)

    def report(glimpse: Glimpse) -> None:
        progress(task.index, glimpse)

    result = run_chain(task, report)
    progress(task.index, None)
    return result


def seed_sequence(
    random_state: int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None,
) -> np.random.SeedSequence:
    """Turn whatever users call a random state into one seed sequence."""
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
