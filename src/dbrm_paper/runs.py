"""Studies, their runs, and the file in which finished runs are kept.

A study is one analysis of one data set by several methods. A run is identified by its key,
a few short texts such as preset, method and seed, and gives one record: the key and the
results, as texts too. Records are appended to a CSV file, so that no run is repeated.
"""

import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, final

import joblib
from threadpoolctl import threadpool_limits

from dbrm._typing import TableLike
from dbrm.errors import InvalidDataError
from dbrm.fitting import fit
from dbrm.posterior import Posterior

__all__ = ["AbstractStudy", "Key", "Options", "Record", "Results", "carry_out", "fit_completely"]

Key = dict[str, str]
Record = Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How much to run.

    Parameters
    ----------
    runs
        Number of seeds per method with a random result.
    chains
        Number of chains of the parallel methods; as in the paper if not given.
    presets
        Which model: as the paper writes it, as its scripts ran it, or both.
    populations
        Populations per chain; those of `dbrm_paper.settings` if not given.
    """

    runs: int = 3
    chains: int | None = None
    presets: tuple[str, ...] = ("paper_code",)
    populations: int | None = None

    @property
    def populations_text(self) -> str:
        """The number of populations as it stands in a key: empty if not given."""
        return "" if self.populations is None else str(self.populations)


class AbstractStudy(ABC):
    """One analysis, by several methods and seeds."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the file of its records."""

    @property
    @abstractmethod
    def key_columns(self) -> tuple[str, ...]:
        """Columns that identify a run."""

    @property
    @abstractmethod
    def value_columns(self) -> tuple[str, ...]:
        """Columns of the results of a run."""

    @abstractmethod
    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:
        """Keys of all requested runs, those of the first seed first."""

    @abstractmethod
    def run(self, key: Key) -> dict[str, str]:
        """Carry out one run; its results depend on the key alone, except the seconds."""


@final
class Results:
    """The records of one study in a folder.

    A record is written and flushed when its run ends. A line that was cut off when the
    machine stopped is dropped at the next start, and its run is repeated.
    """

    def __init__(self, folder: Path, study: AbstractStudy) -> None:
        self.path = folder / f"{study.name}.csv"
        self._key = study.key_columns
        self._columns = (*study.key_columns, *study.value_columns)
        self._records = self._read()

    @property
    def records(self) -> list[Record]:
        """All records, in the order in which their runs ended."""
        return list(self._records)

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those keys whose runs are not in the file."""
        known = {self._identity(record) for record in self._records}
        return [key for key in keys if self._identity(key) not in known]

    def append(self, record: Record) -> None:
        """Write one record and wait until it is on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(record)
            file.flush()
            os.fsync(file.fileno())
        self._records.append(record)

    def _identity(self, record: Record) -> tuple[str, ...]:
        return tuple(record[name] for name in self._key)

    def _read(self) -> list[Record]:
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        if not whole:
            self.path.unlink()
            return []
        rows = list(csv.reader(whole.splitlines()))
        if tuple(rows[0]) != self._columns:
            msg = (
                f"{str(self.path)!r} has the columns {', '.join(rows[0])}; expected "
                f"{', '.join(self._columns)}. Another version wrote it: choose another --out."
            )
            raise InvalidDataError(msg)
        return [dict(zip(self._columns, row, strict=True)) for row in rows[1:]]


def carry_out(
    study: AbstractStudy, keys: list[Key], results: Results, *, jobs: int = 1
) -> Iterator[int]:
    """Carry out the runs that are not in the file yet, and write each record when it is there.

    Parameters
    ----------
    jobs
        Number of processes, each with one run at a time; -1 for all cores.

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


def fit_completely(X: TableLike, y: Any, **settings: Any) -> Posterior:
    """Fit; raise where Ctrl-C ended the search early, because half a run is not a result.

    Raises
    ------
    KeyboardInterrupt
        If the posterior holds only what was found until the interrupt.
    """
    posterior = fit(X, y, check=False, **settings)
    if posterior.record.ended.startswith("SIG"):
        raise KeyboardInterrupt(posterior.record.ended)
    return posterior
