"""How a posterior came about, for summaries and for the file it is saved in."""

from dataclasses import dataclass, field
from typing import final

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
        What came with the rows besides the covariates: ``offset``, ``trials`` and the like.
    n_rows
        Rows of the training data, before equal ones were merged.
    version
        Of dbrm.
    extrapolate
        What bounded functions do outside their range in training: hold its edge or follow.
    n_finished, failures, ended
        Chains that came to their end; how those failed that are not in the posterior; and
        why the run ended early: ``"SIGINT"``, ``"SIGTERM"``, ``"agreement"``, or empty.
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
