"""How a posterior came about, for summaries and for the file it is saved in."""

from dataclasses import dataclass
from typing import final

__all__ = ["RunRecord"]


@final
@dataclass(frozen=True, slots=True)
class RunRecord:
    """How the posterior came about."""

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
