"""What one chain knows while it runs, and what it brings home."""

from collections import Counter
from dataclasses import dataclass
from time import monotonic
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask
from dbrm.evolution.population import Population, Rejections
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.features import Feature
from dbrm.search import Exploration, Ledger, Mjmcmc, ModelTable, enumerate_population

__all__ = ["Chain", "ChainResult", "Draws", "Glimpse"]


@final
@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a progress bar can show after one population."""

    population: int
    n_populations: int
    n_evaluated: int
    best_log_posterior: float
    best_model: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """States of a chain whose stationary law is the posterior.

    Parameters
    ----------
    log_posterior, size
        Of the state after each step.
    frequency
        Share of the steps with each feature in the model, by feature number
        (for pool-Gibbs averaged over the exact conditional law).
    """

    log_posterior: FloatArray
    size: FloatArray
    frequency: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class ChainResult:
    """What one chain brings home.

    `features` are numbered as in ``models.members``; `trace` holds the log mass found
    in each population, `moves` how often each kind of move was tried and accepted.
    """

    features: list[Feature]
    aliases: dict[int, list[Feature]]
    models: ModelTable
    log_lost: float
    n_evaluated: int
    status_counts: dict[int, int]
    rejections: dict[str, int]
    trace: FloatArray
    moves: dict[str, tuple[int, int]]
    draws: Draws | None = None


class Chain:
    """Features met, models visited, numbers that failed: the books of one chain."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.registry = Registry(problem.table)
        self.rejections = Rejections()
        self._ledger = Ledger(problem.effort.max_models)
        self._status_counts: Counter[int] = Counter()
        self._proposed: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._trace: list[float] = []
        self._best = (-np.inf, "1")
        self._started = monotonic()
        self.n_evaluated = 0

    @property
    def n_unique(self) -> int:
        """Different models in the ledger."""
        return len(self._ledger.models())

    def out_of_time(self, share: float = 1.0) -> bool:
        """Whether this share of the time budget is spent."""
        return monotonic() - self._started > share * self.problem.effort.stop.seconds

    def has_enough(self) -> bool:
        """Whether as many models were evaluated, or are different, as were asked for."""
        stop = self.problem.effort.stop
        if self.n_evaluated >= stop.evaluations:
            return True
        return stop.unique_models is not None and self.n_unique >= stop.unique_models

    def explore(
        self,
        rng: np.random.Generator,
        population: Population,
        start: Mask,
        mjmcmc: Mjmcmc | None = None,
    ) -> Exploration:
        """Visit the models of a population, all of them where that is affordable."""
        prepared = self.problem.engine.prepare(population.columns)
        terms = population.prior_terms(self.problem, self.registry)
        effort = self.problem.effort
        if population.size <= prepared.enumeration_limit:
            found = enumerate_population(
                prepared, terms, window=effort.window, max_kept=effort.max_models
            )
        else:
            found = (mjmcmc or effort.mjmcmc).explore(rng, prepared, terms, start)
        self.record(found, population)
        self._trace.append(found.log_mass)
        return found

    def record(self, found: Exploration, population: Population) -> None:
        """Enter what was found into the books."""
        models = ModelTable.from_masks(
            found.masks,
            population.numbers,
            self.registry.keys,
            log_evidence=found.log_evidence,
            log_prior=found.log_prior,
            statuses=found.statuses,
        )
        self._ledger.record(models, found.log_lost)
        self.n_evaluated += found.n_evaluated
        self._status_counts.update(found.status_counts)
        if found.walk is not None:
            self._proposed.update(found.walk.proposed)
            self._accepted.update(found.walk.accepted)
        self._note_best(found, population)

    def count_move(self, name: str, *, accepted: bool) -> None:
        """Note one move of a kind that is not counted elsewhere."""
        self._proposed[name] += 1
        self._accepted[name] += accepted

    def _note_best(self, found: Exploration, population: Population) -> None:
        log_posterior = found.log_evidence + found.log_prior
        row = int(np.argmax(log_posterior))
        if log_posterior[row] > self._best[0]:
            features = population.features(self.registry)
            text = " + ".join(str(features[j]) for j in np.flatnonzero(found.masks[row]))
            self._best = (float(log_posterior[row]), text or "1")

    def glimpse(self, done: int, total: int) -> Glimpse:
        """What to show after `done` of `total` populations."""
        return Glimpse(done, total, self.n_evaluated, *self._best)

    def models(self) -> ModelTable:
        """Every model visited so far, once."""
        return self._ledger.models()

    def result(self, draws: Draws | None = None) -> ChainResult:
        """Close the books."""
        models = self._ledger.models()
        return ChainResult(
            features=self.registry.features,
            aliases=self.registry.aliases,
            models=models,
            log_lost=self._ledger.log_lost,
            n_evaluated=self.n_evaluated,
            status_counts=dict(self._status_counts),
            rejections=self.rejections.counts,
            trace=np.array(self._trace),
            moves={name: (n, self._accepted[name]) for name, n in self._proposed.items()},
            draws=draws,
        )
