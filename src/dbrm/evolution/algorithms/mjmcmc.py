"""MJMCMC over the subsets of the given covariates (paper, Algorithm 1); no engineering."""

from dataclasses import replace
from time import perf_counter
from typing import final

import numpy as np

from dbrm.evolution.algorithms.base import ALGORITHMS, AbstractChain
from dbrm.evolution.chain import ChainProgress, ChainRecord, ChainResult, Draws
from dbrm.evolution.layout import walk_layout
from dbrm.evolution.population import all_covariates
from dbrm.evolution.problem import Problem, SearchBudget
from dbrm.evolution.snapshot import Snapshot, get_generator_state, set_generator_state
from dbrm.search import Walker

__all__ = ["MjmcmcChain"]

# The walk is made in pieces of about so many seconds, the first of so many steps.
_PIECE_SECONDS = 0.1
_FIRST_PIECE = 200


@final
@ALGORITHMS.register("mjmcmc")
class MjmcmcChain(AbstractChain):
    """One walk through the subsets of the covariates.

    Budgets are looked at between pieces of it. The pieces change nothing but that.
    """

    engineers = False
    unit = "steps"
    layout = staticmethod(walk_layout)

    @staticmethod
    def total(budget: SearchBudget) -> int:
        return budget.n_final

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        self._rng = rng
        self._chain = ChainRecord(problem)
        self._population = all_covariates(problem, self._chain.registry)
        self._n_steps = problem.budget.n_final
        self._piece = _FIRST_PIECE
        terms = self._population.prior_terms(problem, self._chain.registry)
        empty = np.zeros(self._population.size + len(problem.latent), dtype=np.bool_)
        steps = replace(problem.budget.mjmcmc, n_steps=self._n_steps)
        features = self._population.features(self._chain.registry)
        prepared = problem.prepare(features, self._population.columns)
        start = steps.begin(rng, prepared, terms, terms.with_favoured(empty))
        self._walker = Walker(steps, prepared, terms, start)

    @property
    def finished(self) -> bool:
        stop = self._chain.problem.budget.stop
        n_models = self._walker.n_models
        return (
            self._walker.n_done == self._n_steps
            or (self._walker.n_done > 0 and self._chain.out_of_time())
            or n_models >= stop.evaluations
            or (stop.unique_models is not None and n_models >= stop.unique_models)
        )

    @property
    def n_done(self) -> int:
        return self._walker.n_done

    def advance(self, most: int) -> None:
        before = perf_counter()
        self._walker.walk(self._rng, min(self._piece, most))
        spent = max(perf_counter() - before, 1e-6)
        self._piece = int(self._piece * min(max(_PIECE_SECONDS / spent, 0.1), 10.0)) + 1

    def progress(self) -> ChainProgress:
        best, mask = self._walker.best()
        parts = [str(feature) for feature in self._population.features(self._chain.registry)]
        parts += self._chain.problem.latent.names
        text = " + ".join(parts[j] for j in np.flatnonzero(mask)) or "1"
        return ChainProgress(self.n_done, self._n_steps, self._walker.n_models, best, text)

    def get_state(self) -> Snapshot:
        return Snapshot.join(
            generator=get_generator_state(self._rng),
            walker=Snapshot({"seconds": self._chain.seconds}, self._walker.to_arrays()),
        )

    def set_state(self, snapshot: Snapshot) -> None:
        set_generator_state(self._rng, snapshot.part("generator"))
        walker = snapshot.part("walker")
        self._walker.restore(walker.arrays)
        self._chain.set_clock(walker.content["seconds"])

    def result(self) -> ChainResult:
        problem, population = self._chain.problem, self._population
        books = ChainRecord(problem)
        books.registry = self._chain.registry
        found = self._walker.found()
        books.record(found, population)
        walk = found.walk
        assert walk is not None
        frequency = np.zeros(len(books.registry))
        frequency[population.numbers] = walk.frequency[: population.size]
        return books.result(Draws(walk.log_posterior, walk.size.astype(np.float64), frequency))
