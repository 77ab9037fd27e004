"""Chains with the posterior as their law: first an evolution, then draws of models.

The GMJMCMC phase finds the features and a model to start from. Then everything is frozen,
and a sampler makes `n_final` draws.
"""

from abc import abstractmethod

import numpy as np

from dbrm._typing import FloatArray
from dbrm.data.schema import refuse_unless
from dbrm.evolution.algorithms.base import AbstractChain
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.chain import ChainProgress, ChainRecord, ChainResult, Draws
from dbrm.evolution.problem import Problem, SearchBudget
from dbrm.evolution.snapshot import Snapshot, get_generator_state, set_generator_state

__all__ = ["AbstractSampling"]


class AbstractSampling(AbstractChain):
    """One chain that draws models after an evolution."""

    default_draws = 1_000
    takes_groups = False
    needs_all_rows = True
    unit = "steps"

    @staticmethod
    def total(budget: SearchBudget) -> int:
        return budget.n_populations + budget.n_final

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        self._rng = rng
        self._chain = ChainRecord(problem)
        self._evolution = Evolution(rng, self._chain, share_of_time=0.5)
        self._draws: list[tuple[float, float]] = []

    @abstractmethod
    def _draw(self) -> tuple[float, int]:
        """Draw the next model: its log posterior and its size."""

    @abstractmethod
    def _frequency(self) -> FloatArray:
        """Share of the draws with each feature of the registry."""

    @abstractmethod
    def _get_sampler_state(self) -> Snapshot:
        """State of the sampler, empty before the first draw."""

    @abstractmethod
    def _set_sampler_state(self, snapshot: Snapshot) -> None:
        """Go on from this state; the draws so far are known."""

    @property
    def finished(self) -> bool:
        return self._evolution.finished and (
            len(self._draws) == self._chain.problem.budget.n_final
            or (len(self._draws) > 0 and self._chain.out_of_time())
        )

    @property
    def n_done(self) -> int:
        return self._evolution.n_done + len(self._draws)

    def advance(self, most: int) -> None:
        if not self._evolution.finished:
            self._evolution.advance(most)
            return
        log_posterior, size = self._draw()
        self._draws.append((log_posterior, float(size)))

    def progress(self) -> ChainProgress:
        return self._chain.progress(self.n_done, self.total(self._chain.problem.budget))

    def get_state(self) -> Snapshot:
        draws = np.array(self._draws, dtype=np.float64).reshape(-1, 2)
        return Snapshot.join(
            generator=get_generator_state(self._rng),
            chain=self._chain.get_state(),
            evolution=self._evolution.get_state(),
            draws=Snapshot(arrays={"draws": draws}),
            sampler=self._get_sampler_state() if self._draws else Snapshot(),
        )

    def set_state(self, snapshot: Snapshot) -> None:
        set_generator_state(self._rng, snapshot.part("generator"))
        self._chain.set_state(snapshot.part("chain"))
        self._evolution.set_state(snapshot.part("evolution"))
        draws = snapshot.part("draws").arrays["draws"]
        refuse_unless(len(draws) <= self._chain.problem.budget.n_final, "The draws of a chain")
        self._draws = [(value, size) for value, size in draws.tolist()]
        if self._draws:
            self._set_sampler_state(snapshot.part("sampler"))

    def result(self) -> ChainResult:
        log_posterior, size = np.array(self._draws, dtype=np.float64).reshape(-1, 2).T
        return self._chain.result(Draws(log_posterior, size, self._frequency()))
