r"""GMJMCMC (paper, Algorithm 2): search within populations that evolve.

Inside a population every model is enumerated where that is affordable, otherwise a
Markov chain visits models. All models met in all populations count, each with its
exact posterior mass (renormalised estimates, Sec. 3); the published implementation
forgot those of earlier populations.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from dbrm._typing import FloatArray, Mask
from dbrm.data.schema import ArrayOf, Flag, Whole, refuse_unless
from dbrm.evolution.algorithms.base import ALGORITHMS, AbstractChain
from dbrm.evolution.chain import CHAIN_LAYOUT, ChainProgress, ChainRecord, ChainResult
from dbrm.evolution.newcomers import Screener
from dbrm.evolution.operators import KINDS, OperatorMemory
from dbrm.evolution.population import Population, first_population, next_population
from dbrm.evolution.problem import Problem, SearchBudget
from dbrm.evolution.snapshot import (
    GENERATOR_LAYOUT,
    Layout,
    Snapshot,
    get_generator_state,
    set_generator_state,
)

__all__ = ["Evolution", "Gmjmcmc", "evolution_layout"]


class Evolution:
    """Populations that evolve, one after the other.

    Ends after :math:`T_{max}` populations, or earlier when enough models were met or its
    share of the time is over: not before the second where the pool holds features that
    the first has not seen.
    """

    def __init__(self, rng: np.random.Generator, chain: ChainRecord, *, share: float = 1.0) -> None:
        grammar = chain.problem.grammar
        self._rng = rng
        self._chain = chain
        self._share = share
        self._memory = OperatorMemory(grammar.operators) if grammar.adaptive else None
        self._screener = Screener(chain.problem) if grammar.operators.informed > 0.0 else None
        self._numbers = np.zeros(0, dtype=np.int32)
        self._inclusion: FloatArray = np.zeros(0)
        self._last: Mask = np.zeros(0, dtype=np.bool_)
        self.n_done = 0
        self.finished = False

    def advance(self, most: int = 1) -> None:  # noqa: ARG002
        """Make the next population and explore it."""
        chain = self._chain
        budget = chain.problem.budget
        population = self._next()
        start = self._carry_over(population)
        is_first, is_last = self.n_done == 0, self.n_done + 1 == budget.n_populations
        n_steps = budget.mjmcmc.n_steps
        if is_first:
            n_steps = budget.n_init
        elif is_last:
            n_steps = budget.n_final
        steps = replace(budget.mjmcmc, n_steps=n_steps, ascend=budget.mjmcmc.ascend and is_first)
        found = chain.explore(
            self._rng, population, start, steps, is_first=is_first, is_last=is_last
        )
        self._numbers, self._last = population.numbers, found.last
        self._inclusion = found.inclusion[: population.size]
        self.n_done += 1
        # The sweep may have taken all the time; its pool is used at least once.
        owed = self.n_done == 1 and bool(chain.problem.pool)
        self.finished = (
            self.n_done == budget.n_populations
            or (chain.out_of_time(self._share) and not owed)
            or chain.has_enough(self._share)
            or chain.has_stalled()
        )

    def _carry_over(self, population: Population) -> Mask:
        """The last model without features that have left the population."""
        n_features = self._numbers.size
        inside = set(self._numbers[self._last[:n_features]].tolist())
        features = [number in inside for number in population.numbers.tolist()]
        effects = self._last[n_features:] if self.n_done else self._chain.problem.latent.none()
        return np.concatenate([np.array(features, dtype=np.bool_), effects])

    def _next(self) -> Population:
        chain, problem = self._chain, self._chain.problem
        if self.n_done == 0:
            return first_population(problem, chain.registry, chain.rejections)
        if self._memory is not None:
            self._memory.learn(self._numbers, self._inclusion, problem.filtration.threshold)
            grammar = replace(problem.grammar, operators=self._memory.operators())
            problem = replace(problem, grammar=grammar)
        return next_population(
            self._rng,
            problem,
            chain.registry,
            chain.rejections,
            # Its columns are not needed: they are computed again from the current names.
            Population(self._numbers, np.empty((0, self._numbers.size))),
            self._inclusion,
            first=self.n_done == 1,
            memory=self._memory,
            screener=self._screener,
        )

    def get_state(self) -> Snapshot:
        """The last population, its inclusion probabilities and its last model."""
        own = Snapshot(
            content={"n_done": self.n_done, "finished": self.finished},
            arrays={"numbers": self._numbers, "inclusion": self._inclusion, "last": self._last},
        )
        memory = Snapshot() if self._memory is None else self._memory.get_state()
        return Snapshot.join(own=own, memory=memory)

    def set_state(self, snapshot: Snapshot) -> None:
        """Restore the last population."""
        own = snapshot.part("own")
        self.n_done, self.finished = own.content["n_done"], own.content["finished"]
        self._numbers, self._inclusion = own.arrays["numbers"], own.arrays["inclusion"]
        self._last = own.arrays["last"]
        size, problem = self._numbers.size, self._chain.problem
        sound = self._last.size == size + len(problem.latent) and size > 0
        sound = sound and 0 < self.n_done <= problem.budget.n_populations
        refuse_unless(sound, "The population of a chain")
        if self._memory is not None:
            self._memory.set_state(snapshot.part("memory"))


# The names are those of `Evolution.get_state`.
# Sums of probabilities are one up to rounding.
_OWN = Layout(
    {
        "evolution.own.n_done": Whole(),
        "evolution.own.finished": Flag(),
    },
    {
        "evolution.own.numbers": ArrayOf("<i4", ("population",), low=0, below="registered"),
        "evolution.own.inclusion": ArrayOf("<f8", ("population",), low=0.0, high=1.0 + 1e-6),
        "evolution.own.last": ArrayOf("|b1", (None,)),
    },
)
_OPERATORS = len(KINDS)
_MEMORY = Layout(
    {},
    {
        "evolution.memory.made": ArrayOf("<f8", (_OPERATORS,), low=0.0, high=1e15),
        "evolution.memory.useful": ArrayOf("<f8", (_OPERATORS,), low=0.0, high=1e15),
        "evolution.memory.waiting": ArrayOf("<i8", (None, 2), low=0),
    },
)


def evolution_layout(problem: Problem, content: Mapping[str, Any]) -> Layout:  # noqa: ARG001
    """Layout of the state of a chain of populations."""
    layout = GENERATOR_LAYOUT.with_parts(CHAIN_LAYOUT).with_parts(_OWN)
    return layout.with_parts(_MEMORY) if problem.grammar.adaptive else layout


@final
@ALGORITHMS.register("gmjmcmc")
class Gmjmcmc(AbstractChain):
    """One chain of populations."""

    settles = True
    layout = staticmethod(evolution_layout)

    @staticmethod
    def total(budget: SearchBudget) -> int:
        return budget.n_populations

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        self._rng = rng
        self._chain = ChainRecord(problem)
        self._evolution = Evolution(rng, self._chain)

    @property
    def finished(self) -> bool:
        return self._evolution.finished

    @property
    def n_done(self) -> int:
        return self._evolution.n_done

    def advance(self, most: int) -> None:
        self._evolution.advance(most)

    def progress(self) -> ChainProgress:
        return self._chain.progress(self.n_done, self.total(self._chain.problem.budget))

    def get_state(self) -> Snapshot:
        return Snapshot.join(
            generator=get_generator_state(self._rng),
            chain=self._chain.get_state(),
            evolution=self._evolution.get_state(),
        )

    def set_state(self, snapshot: Snapshot) -> None:
        set_generator_state(self._rng, snapshot.part("generator"))
        self._chain.set_state(snapshot.part("chain"))
        self._evolution.set_state(snapshot.part("evolution"))

    def result(self) -> ChainResult:
        return self._chain.result()
