"""What an algorithm is: traits that other packages look up, and the interface of chains."""

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
SomeChain = TypeVar("SomeChain", bound="AbstractChain")
# Describes a snapshot with this content.
LayoutOf = Callable[[Problem, Mapping[str, Any]], Layout]
# Called between populations, and between parts of the sweep: whether to stop for now.
Pause = Callable[[], bool]


def never() -> bool:
    """Never pause."""
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
    takes_constraints
        Whether coefficients can be made to have given signs.
    settles
        Whether features that are certain leave their places, so that models grow beyond them.
    needs_all_rows
        Whether all rows must be in memory.
    unit
        What progress bars count: `AbstractChain.total` of these.
    """

    engineers: ClassVar[bool] = True
    searches: ClassVar[bool] = True
    default_draws: ClassVar[int | None] = None
    takes_groups: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True
    needs_all_rows: ClassVar[bool] = False
    settles: ClassVar[bool] = False
    unit: ClassVar[str] = "populations"


ALGORITHMS: Choices[type[AbstractAlgorithm]] = Choices("algorithm")


def find_algorithm(name: str) -> type[AbstractAlgorithm]:
    """Look up the class of an algorithm, for its traits."""
    return ALGORITHMS.find(name)


class AbstractChain(AbstractAlgorithm):
    """One chain of an algorithm.

    Its steps are a function of the problem and the generator it was given. How often it is
    interrupted, saved and restored does not change them.
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
        """What a snapshot with this content must hold; checked when it comes from a file."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether the chain is done."""

    @property
    @abstractmethod
    def n_done(self) -> int:
        """Populations done, plus steps or draws after them."""

    @abstractmethod
    def advance(self, most: int) -> None:
        """Do the next population, or at most `most` further steps."""

    @abstractmethod
    def progress(self) -> ChainProgress:
        """How far the chain is, and its best model so far."""

    @abstractmethod
    def get_state(self) -> Snapshot:
        """All that the next steps depend on, besides the problem."""

    @abstractmethod
    def set_state(self, snapshot: Snapshot) -> None:
        """Restore what `get_state` returned; for a chain that has not started."""

    @abstractmethod
    def result(self) -> ChainResult:
        """The result so far."""


def proceed(
    chain: SomeChain,
    pause: Pause = never,
    report: ProgressCallback | None = None,
    *,
    until: int = sys.maxsize,
) -> SomeChain:
    """Advance a chain until it is finished, `until` units are done, or `pause` returns true.

    `report` is called after every population.
    """
    while not chain.finished and chain.n_done < until:
        chain.advance(until - chain.n_done)
        if report is not None:
            report(chain.progress())
        if pause():
            break
    return chain
