"""What every algorithm's chain can do: go on for a while, be frozen, be thawed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from dbrm.evolution.chain import ChainResult, Glimpse
from dbrm.evolution.snapshot import Snapshot

__all__ = ["AbstractRun", "Pause", "Report", "proceed"]

Report = Callable[[Glimpse], None]
Run = TypeVar("Run", bound="AbstractRun")
# Asked between populations whether to stop for now.
Pause = Callable[[], bool]


class AbstractRun(ABC):
    """One chain under way.

    Its steps are a function of the problem and the generator it was given: not of how
    often it was interrupted, frozen and thawed.
    """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether there is nothing left to do."""

    @abstractmethod
    def advance(self) -> None:
        """Do the next population, or the next steps."""

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


def proceed(run: Run, pause: Pause | None = None, report: Report | None = None) -> Run:
    """Let a run go on until it is finished or told to pause; `report` hears of every step."""
    while not run.finished:
        run.advance()
        if report is not None:
            report(run.glimpse())
        if pause is not None and pause():
            break
    return run
