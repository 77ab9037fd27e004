"""What an algorithm is: traits that the rest of the package asks for, and how its chains run."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from dbrm._choices import Choices
from dbrm.evolution.chain import ChainProgress, ChainResult
from dbrm.evolution.problem import Problem, SearchBudget
from dbrm.evolution.snapshot import Layout, Snapshot

__all__ = [
    "ALGORITHMS",
    "AbstractAlgorithm",
    "AbstractChain",
    "LayoutOf",
    "Pause",
    "ProgressCallback",
    "find_algorithm",
    "never",
    "proceed",
]

ProgressCallback = Callable[[ChainProgress], None]
Run = TypeVar("Run", bound="AbstractChain")
# Describes a snapshot with this content.
LayoutOf = Callable[[Problem, Mapping[str, Any]], Layout]
# Asked between populations, and between parts of the sweep, whether to stop for now.
Pause = Callable[[], bool]


def never() -> bool:
    """Do not pause."""
    return False


class AbstractAlgorithm(ABC):  # noqa: B024 (what is abstract comes with chains)
    """The traits of an algorithm, which its class states where they differ from the defaults.

    Attributes
    ----------
    engineers
        Whether it creates features. If so, simple features are swept before the chains start,
        the transforms count in the multiplicity prior, and the check of candidates after the
        run tries engineered features too. If not, models are subsets of the given columns.
    searches
        Whether it runs chains, which can be resumed. If not, it visits every model once.
    default_draws
        Draws from the posterior after the last population, unless `n_final` is set. None: it
        does not draw in a phase of its own, and `n_final` defaults to the steps per population.
    takes_groups
        Whether models can be made to contain all or none of a group of columns.
    needs_all_rows
        Whether all rows must be in memory.
    unit
        What progress bars count: `AbstractChain.total` of these.
    """

    engineers: ClassVar[bool] = True
    searches: ClassVar[bool] = True
    default_draws: ClassVar[int | None] = None
    takes_groups: ClassVar[bool] = True
    needs_all_rows: ClassVar[bool] = False
    unit: ClassVar[str] = "populations"


ALGORITHMS: Choices[type[AbstractAlgorithm]] = Choices("algorithm")


def find_algorithm(name: str) -> type[AbstractAlgorithm]:
    """Look up the class of an algorithm, for its traits."""
    return ALGORITHMS.find(name)


class AbstractChain(AbstractAlgorithm):
    """One chain of an algorithm.

    Its steps are a function of the problem and the generator it was given: not of how
    often it was interrupted, frozen and thawed.
    """

    @abstractmethod
    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        """Start a chain."""

    @staticmethod
    @abstractmethod
    def total(budget: SearchBudget) -> int:
        """How far `n_done` goes unless a chain ends early; counted in `unit`."""

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
    def progress(self) -> ChainProgress:
        """How far it is, and the best model so far."""

    @abstractmethod
    def get_state(self) -> Snapshot:
        """All that the next steps depend on, besides the problem."""

    @abstractmethod
    def set_state(self, snapshot: Snapshot) -> None:
        """Go back to where `get_state` was called; for a run that has not begun."""

    @abstractmethod
    def result(self) -> ChainResult:
        """What was found so far."""


def proceed(
    run: Run,
    pause: Pause = never,
    report: ProgressCallback | None = None,
    *,
    until: int = sys.maxsize,
) -> Run:
    """Let a run go on until it is finished, so much is done, or it is told to pause.

    `report` hears of every population.
    """
    while not run.finished and run.n_done < until:
        run.advance(until - run.n_done)
        if report is not None:
            report(run.progress())
        if pause():
            break
    return run
