"""What is repeated: studies, and the runs they consist of.

A study is one analysis of one data set by several methods. A run is named by its key, a
few short texts such as preset, method and seed, and gives one record: the key and what came
out, as texts too. Nothing here knows where records are kept or how they are shown.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

__all__ = ["AbstractStudy", "Key", "Options", "Record"]

Key = dict[str, str]
Record = Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How much to run.

    Parameters
    ----------
    runs
        Seeds per method with a random outcome.
    chains
        Chains of the parallel methods; as in the paper if not given.
    presets
        Which model: as the paper writes it, as its scripts ran it, or both.
    populations
        Populations per chain; those of `dbrm.reproduce.settings` if not given.
    """

    runs: int = 3
    chains: int | None = None
    presets: tuple[str, ...] = ("paper_code",)
    populations: int | None = None


class AbstractStudy(ABC):
    """One analysis, by several methods and seeds."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the file of its records."""

    @property
    @abstractmethod
    def key_columns(self) -> tuple[str, ...]:
        """What names a run."""

    @property
    @abstractmethod
    def value_columns(self) -> tuple[str, ...]:
        """What a run gives."""

    @abstractmethod
    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:
        """Keys of all runs asked for, those of the first seed first."""

    @abstractmethod
    def run(self, key: Key) -> dict[str, str]:
        """Carry out one run; the values depend on the key alone, but for the seconds."""
