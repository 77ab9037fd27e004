"""Chains with the posterior as their law: first an evolution, then draws of models.

The GMJMCMC phase finds the features and a model to start from. Then everything is frozen,
and a sampler makes `n_final` draws.
"""

from abc import abstractmethod

import numpy as np

from dbrm._typing import FloatArray
from dbrm.data.schema import refuse_unless
from dbrm.evolution.algorithms.base import AbstractRun
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.chain import Chain, ChainResult, Draws, Glimpse
from dbrm.evolution.problem import Effort, Problem
from dbrm.evolution.snapshot import Snapshot, freeze_generator, thaw_generator

__all__ = ["AbstractSampling"]


class AbstractSampling(AbstractRun):
    """One chain that draws models after an evolution."""

    default_draws = 1_000
    takes_groups = False
    needs_all_rows = True
    unit = "steps"

    @staticmethod
    def total(effort: Effort) -> int:
        return effort.n_populations + effort.n_final

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        self._rng = rng
        self._chain = Chain(problem)
        self._evolution = Evolution(rng, self._chain, share_of_time=0.5)
        self._draws: list[tuple[float, float]] = []

    @abstractmethod
    def _draw(self) -> tuple[float, int]:
        """Draw the next model: its log posterior and its size."""

    @abstractmethod
    def _frequency(self) -> FloatArray:
        """Share of the draws with each feature of the registry."""

    @abstractmethod
    def _freeze_sampler(self) -> Snapshot:
        """State of the sampler, empty before the first draw."""

    @abstractmethod
    def _thaw_sampler(self, snapshot: Snapshot) -> None:
        """Go on from this state; the draws so far are known."""

    @property
    def finished(self) -> bool:
        return self._evolution.finished and (
            len(self._draws) == self._chain.problem.effort.n_final
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

    def glimpse(self) -> Glimpse:
        return self._chain.glimpse(self.n_done, self.total(self._chain.problem.effort))

    def freeze(self) -> Snapshot:
        draws = np.array(self._draws, dtype=np.float64).reshape(-1, 2)
        return Snapshot.join(
            generator=freeze_generator(self._rng),
            chain=self._chain.freeze(),
            evolution=self._evolution.freeze(),
            draws=Snapshot(arrays={"draws": draws}),
            sampler=self._freeze_sampler() if self._draws else Snapshot(),
        )

    def thaw(self, snapshot: Snapshot) -> None:
        thaw_generator(self._rng, snapshot.part("generator"))
        self._chain.thaw(snapshot.part("chain"))
        self._evolution.thaw(snapshot.part("evolution"))
        draws = snapshot.part("draws").arrays["draws"]
        refuse_unless(len(draws) <= self._chain.problem.effort.n_final, "The draws of a chain")
        self._draws = [(value, size) for value, size in draws.tolist()]
        if self._draws:
            self._thaw_sampler(snapshot.part("sampler"))

    def result(self) -> ChainResult:
        log_posterior, size = np.array(self._draws, dtype=np.float64).reshape(-1, 2).T
        return self._chain.result(Draws(log_posterior, size, self._frequency()))
