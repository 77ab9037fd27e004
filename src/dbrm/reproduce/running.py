"""Carry out the runs of a study that are not in its file yet, several at a time."""

from collections.abc import Iterator
from time import perf_counter

import joblib
from threadpoolctl import threadpool_limits

from dbrm.reproduce.results import Results
from dbrm.reproduce.study import AbstractStudy, Key, Record

__all__ = ["carry_out"]


def carry_out(
    study: AbstractStudy, keys: list[Key], results: Results, *, jobs: int = 1
) -> Iterator[int]:
    """Do what is missing and keep every record as soon as it is there.

    Parameters
    ----------
    jobs
        Processes, each with one run at a time; -1 for all cores.

    Yields
    ------
        How many of `keys` are done, at the start and after each run.
    """
    missing = results.missing(keys)
    done = len(keys) - len(missing)
    yield done
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    for record in parallel(joblib.delayed(_run_one)(study, key) for key in missing):
        results.append(record)
        done += 1
        yield done


def _run_one(study: AbstractStudy, key: Key) -> Record:
    started = perf_counter()
    with threadpool_limits(limits=1):
        values = study.run(key)
    return {**key, **values, "seconds": f"{perf_counter() - started:.2f}"}
