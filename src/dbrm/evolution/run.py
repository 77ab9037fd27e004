"""What every algorithm's chain can do: go on for a while, be frozen, be thawed."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dbrm.evolution.chain import ChainResult, Glimpse
from dbrm.evolution.layout import Layout
from dbrm.evolution.problem import Problem
from dbrm.evolution.snapshot import Snapshot

__all__ = ["AbstractRun", "Pause", "Report", "never", "proceed"]

Report = Callable[[Glimpse], None]
Run = TypeVar("Run", bound="AbstractRun")
# Asked between populations, and between parts of the sweep, whether to stop for now.
Pause = Callable[[], bool]


def never() -> bool:
    """Do not pause."""
    return False


class AbstractRun(ABC):
    """One chain under way.

    Its steps are a function of the problem and the generator it was given: not of how
    often it was interrupted, frozen and thawed.
    """

    @staticmethod
    @abstractmethod
    def layout(problem: Problem, content: Mapping[str, Any]) -> Layout:
        """What a snapshot with this content must hold, if it comes from a file."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether there is nothing left to do."""

    @property
    @abstractmethod
    def n_done(self) -> int:
        """Populations done, further steps counted with them."""

    @abstractmethod
    def advance(self, most: int) -> None:
        """Do the next population, or the next steps, so many at most."""

    @abstractmethod
    def glimpse(self) -> Glimpse:
        """How far it is, and the best model so far."""

    @abstractmethod
    def freeze(self) -> Snapshot:
        """All that the next steps depend on, besides the problem."""

    @abstractmethod
    def thaw(self, snapshot: Snapshot) -> None:
        """Go back to where `freeze` was called; for a run that has not begun."""

    @abstractmethod
    def result(self) -> ChainResult:
        """What was found so far."""


def proceed(
    run: Run, pause: Pause = never, report: Report | None = None, *, until: int = sys.maxsize
) -> Run:
    """Let a run go on until it is finished, so much is done, or it is told to pause.

    `report` hears of every population.
    """
    while not run.finished and run.n_done < until:
        run.advance(until - run.n_done)
        if report is not None:
            report(run.glimpse())
        if pause():
            break
    return run
