"""How a posterior came about, for summaries and for the file it is saved in."""

from dataclasses import dataclass, field
from typing import final

from dbrm.data import Label
from dbrm.evolution import ALGORITHMS

__all__ = ["RunRecord"]


@final
@dataclass(frozen=True, slots=True)
class RunRecord:
    """How the posterior came about.

    Parameters
    ----------
    settings
        Settings that were not left at their defaults, each as Python would write it.
    formula
        The formula that named response and covariates; empty without one.
    given
        Arguments of `dbrm.fit` per row besides the covariates: ``offset``, ``trials``, ...
    n_rows
        Rows of the training data, before equal ones were merged.
    version
        Of dbrm.
    extrapolate
        What bounded functions do outside their range in training: hold its edge or follow.
    n_finished, failures, ended
        Number of chains that finished; errors of the chains that failed and are left out, by
        number; and why the run ended early: ``"SIGINT"``, ``"SIGTERM"``, ``"agreement"``, or
        empty.
    sweep
        What the sweep before the chains did not look at, and why; empty if it looked at all that it
        was asked to.
    strata, classes
        Labels of the strata of survival times, and of the classes of the response.
    """

    response: str
    algorithm: str
    uncertainty: str
    n_chains: int
    n_evaluated: int
    seconds: float
    seed: int | None
    status_counts: dict[int, int]
    rejections: dict[str, int]
    moves: dict[str, tuple[int, int]]
    chain_log_mass: tuple[float, ...]
    settings: dict[str, str] = field(default_factory=dict)
    formula: str = ""
    given: tuple[str, ...] = ()
    n_rows: int = 0
    version: str = ""
    n_finished: int | None = None
    failures: dict[int, str] = field(default_factory=dict)
    ended: str = ""
    extrapolate: str = "hold"
    sweep: str = ""
    strata: tuple[str, ...] = ()
    classes: tuple[Label, ...] = ()

    @property
    def exhaustive(self) -> bool:
        """Whether every model was evaluated, so that there are no chains and nothing is random."""
        algorithm = ALGORITHMS.get(self.algorithm)
        return algorithm is not None and not algorithm.searches
