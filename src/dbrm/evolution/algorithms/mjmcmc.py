"""MJMCMC over the subsets of the given covariates (paper, Algorithm 1); no engineering."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from time import perf_counter
from typing import Any, final

import numpy as np

from dbrm.data.schema import ArrayOf, Real
from dbrm.evolution.algorithms.base import ALGORITHMS, AbstractChain
from dbrm.evolution.chain import ChainProgress, ChainRecord, ChainResult, Draws
from dbrm.evolution.population import all_covariates
from dbrm.evolution.problem import Problem, SearchBudget
from dbrm.evolution.snapshot import (
    GENERATOR_LAYOUT,
    Layout,
    Snapshot,
    get_generator_state,
    set_generator_state,
)
from dbrm.search import Walker

__all__ = ["MjmcmcChain"]

# Seconds that a piece of the walk should take, and steps of the first piece.
_PIECE_SECONDS = 0.1
_FIRST_PIECE = 200


def _layout(problem: Problem, content: Mapping[str, Any]) -> Layout:  # noqa: ARG001
    """Layout of the state of one walk."""
    return GENERATOR_LAYOUT.with_parts(
        Layout(
            {"walker.seconds": Real(low=0.0)},
            {
                "walker.store_words": ArrayOf("<u8", ("models", None)),
                "walker.store_values": ArrayOf("<f8", ("models",), high=1e300),
                "walker.store_priors": ArrayOf("<f8", ("models",), high=1e300),
                "walker.store_statuses": ArrayOf("|u1", ("models",)),
                "walker.store_counts": ArrayOf("<i8", (3,), low=0),
                "walker.store_log_lost": ArrayOf("<f8", (1,), high=1e300),
                "walker.position_mask": ArrayOf("|b1", ("population",)),
                "walker.position_propensity": ArrayOf("<f8", ("population",), low=0.0, high=1.0),
                "walker.position_seen": ArrayOf("<f8", ("population",), low=0.0, high=1e15),
                "walker.position_value": ArrayOf("<f8", (1,), high=1e300),
                "walker.position_entry": ArrayOf("<i8", (1,), low=-1, below="models"),
                "walker.position_step": ArrayOf("<i8", (1,), low=0),
                "walker.trace_log_posterior": ArrayOf("<f8", ("steps",), high=1e300),
                "walker.trace_size": ArrayOf("<i4", ("steps",), low=0),
                "walker.trace_kernel": ArrayOf("|i1", ("steps",), low=-1),
                "walker.trace_accepted": ArrayOf("|b1", ("steps",)),
                "walker.trace_visits": ArrayOf("<i8", ("models",), low=0),
                "walker.trace_proposed_by": ArrayOf("<i8", ("kernels",), low=0),
                "walker.trace_accepted_by": ArrayOf("<i8", ("kernels",), low=0),
            },
        )
    )


@final
@ALGORITHMS.register("mjmcmc")
class MjmcmcChain(AbstractChain):
    """One walk through the subsets of the covariates.

    It is made in pieces, between which limits are checked. The pieces do not change its steps.
    """

    engineers = False
    unit = "steps"
    layout = staticmethod(_layout)

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
        return (
            self._walker.n_done == self._n_steps
            or (self._walker.n_done > 0 and self._chain.out_of_time())
            or self._n_wanted <= 0
        )

    @property
    def _n_wanted(self) -> float:
        """Models that are left to visit within the limits."""
        stop = self._chain.problem.budget.stop
        unique = inf if stop.unique_models is None else stop.unique_models
        return min(stop.evaluations, unique) - self._walker.n_models

    @property
    def n_done(self) -> int:
        return self._walker.n_done

    def advance(self, most: int) -> None:
        before = perf_counter()
        n_steps = min(self._piece, most)
        # Most steps visit one model or none; near a limit few are made at once.
        if (n_wanted := self._n_wanted) < inf:
            n_steps = min(n_steps, max(int(n_wanted), 1))
        self._walker.walk(self._rng, n_steps)
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
        record = ChainRecord(problem)
        record.registry = self._chain.registry
        found = self._walker.found()
        record.record(found, population)
        walk = found.walk
        assert walk is not None
        frequency = np.zeros(len(record.registry))
        frequency[population.numbers] = walk.frequency[: population.size]
        return record.result(Draws(walk.log_posterior, walk.size.astype(np.float64), frequency))
