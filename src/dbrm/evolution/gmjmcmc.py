r"""GMJMCMC (paper, Algorithm 2): search within populations that evolve.

Inside a population every model is enumerated where that is affordable, otherwise a
Markov chain visits models. All models met in all populations count, each with its
exact posterior mass (renormalised estimates, Sec. 3); the published implementation
forgot those of earlier populations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask
from dbrm.evolution.population import (
    Population,
    Rejections,
    all_covariates,
    first_population,
    next_population,
)
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.features import Feature
from dbrm.search import Exploration, Ledger, ModelTable, enumerate_population

__all__ = ["ChainResult", "Glimpse", "run_enumeration", "run_gmjmcmc"]


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
class ChainResult:
    """What one chain brings home.

    `features` are numbered as in ``models.members``; `trace` holds the log mass found
    in each population.
    """

    features: list[Feature]
    aliases: dict[int, list[Feature]]
    models: ModelTable
    log_lost: float
    n_evaluated: int
    status_counts: dict[int, int]
    rejections: dict[str, int]
    trace: FloatArray


def run_gmjmcmc(
    rng: np.random.Generator,
    problem: Problem,
    report: Callable[[Glimpse], None] | None = None,
) -> ChainResult:
    """Run one chain of populations.

    Parameters
    ----------
    report
        Called after every population.
    """
    registry, rejections = Registry(problem.table), Rejections()
    ledger = Ledger(problem.effort.max_models)
    status_counts: dict[int, int] = {}
    trace: list[float] = []
    n_evaluated = 0
    best = _Best()
    population = first_population(problem, registry, rejections)
    start: Mask = np.zeros(population.size, dtype=np.bool_)
    for t in range(problem.effort.n_populations):
        found = _explore(rng, problem, registry, population, start)
        ledger.record(_to_models(found, population, registry), found.log_lost)
        n_evaluated += found.n_evaluated
        for status, count in found.status_counts.items():
            status_counts[status] = status_counts.get(status, 0) + count
        trace.append(found.log_mass)
        best.update(found, population, registry)
        if report is not None:
            report(best.glimpse(t + 1, problem.effort.n_populations, n_evaluated))
        if t + 1 < problem.effort.n_populations:
            kept = population
            population = next_population(
                rng,
                problem,
                registry,
                rejections,
                population,
                found.inclusion,
                first=t == 0,
            )
            start = _carry_over(found.last, kept, population)
    models = ledger.models()
    return ChainResult(
        features=registry.features,
        aliases=registry.aliases,
        models=models,
        log_lost=ledger.log_lost,
        n_evaluated=n_evaluated,
        status_counts=status_counts,
        rejections=rejections.counts,
        trace=np.array(trace),
    )


def run_enumeration(problem: Problem) -> ChainResult:
    """All subsets of the covariates, no engineering: the exact posterior."""
    registry = Registry(problem.table)
    population = all_covariates(problem, registry)
    terms = population.prior_terms(problem, registry)
    found = enumerate_population(
        problem.engine.prepare(population.columns),
        terms,
        window=problem.effort.window,
        max_kept=problem.effort.max_models,
    )
    ledger = Ledger(problem.effort.max_models)
    ledger.record(_to_models(found, population, registry), found.log_lost)
    return ChainResult(
        features=registry.features,
        aliases=registry.aliases,
        models=ledger.models(),
        log_lost=ledger.log_lost,
        n_evaluated=found.n_evaluated,
        status_counts=found.status_counts,
        rejections={},
        trace=np.array([found.log_mass]),
    )


class _Best:
    """The best model so far, for the progress bar."""

    def __init__(self) -> None:
        self._value = -np.inf
        self._text = ""

    def update(self, found: Exploration, population: Population, registry: Registry) -> None:
        log_posterior = found.log_evidence + found.log_prior
        row = int(np.argmax(log_posterior))
        if log_posterior[row] > self._value:
            self._value = float(log_posterior[row])
            features = population.features(registry)
            self._text = " + ".join(str(features[j]) for j in np.flatnonzero(found.masks[row]))

    def glimpse(self, population: int, n_populations: int, n_evaluated: int) -> Glimpse:
        return Glimpse(population, n_populations, n_evaluated, self._value, self._text or "1")


def _explore(
    rng: np.random.Generator,
    problem: Problem,
    registry: Registry,
    population: Population,
    start: Mask,
) -> Exploration:
    prepared = problem.engine.prepare(population.columns)
    terms = population.prior_terms(problem, registry)
    effort = problem.effort
    if population.size <= prepared.enumeration_limit:
        return enumerate_population(
            prepared, terms, window=effort.window, max_kept=effort.max_models
        )
    return effort.mjmcmc.explore(rng, prepared, terms, start)


def _to_models(found: Exploration, population: Population, registry: Registry) -> ModelTable:
    return ModelTable.from_masks(
        found.masks,
        population.numbers,
        registry.keys,
        log_evidence=found.log_evidence,
        log_prior=found.log_prior,
        statuses=found.statuses,
    )


def _carry_over(last: Mask, kept: Population, population: Population) -> Mask:
    """The last model, as far as its features are still there."""
    inside = set(kept.numbers[last].tolist())
    return np.array([number in inside for number in population.numbers.tolist()], dtype=np.bool_)
