r"""GMJMCMC (paper, Algorithm 2): search within populations that evolve.

Inside a population every model is enumerated where that is affordable, otherwise a
Markov chain visits models. All models met in all populations count, each with its
exact posterior mass (renormalised estimates, Sec. 3); the published implementation
forgot those of earlier populations.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dbrm._typing import Mask
from dbrm.evolution.adaptation import OperatorMemory
from dbrm.evolution.chain import Chain, ChainResult, Draws, Glimpse
from dbrm.evolution.population import (
    Population,
    all_covariates,
    first_population,
    next_population,
)
from dbrm.evolution.problem import Problem
from dbrm.search import Exploration, enumerate_population

__all__ = ["Report", "evolve", "run_enumeration", "run_gmjmcmc", "run_mjmcmc"]

Report = Callable[[Glimpse], None]


def run_gmjmcmc(
    rng: np.random.Generator, problem: Problem, report: Report | None = None
) -> ChainResult:
    """Run one chain of populations; `report` is called after every one."""
    chain = Chain(problem)
    evolve(rng, chain, report)
    return chain.result()


def evolve(
    rng: np.random.Generator,
    chain: Chain,
    report: Report | None = None,
    *,
    share_of_time: float = 1.0,
) -> tuple[Population, Exploration]:
    """Let populations evolve; return the last one and what was found in it.

    Stops after :math:`T_{max}` populations, or earlier when enough models were met or
    this share of the time is over.
    """
    problem = chain.problem
    effort = problem.effort
    memory = OperatorMemory(problem.grammar.operators) if problem.grammar.adaptive else None
    population = first_population(problem, chain.registry, chain.rejections)
    start: Mask = np.zeros(population.size, dtype=np.bool_)
    first = replace(effort.mjmcmc, n_steps=effort.n_init)
    found = chain.explore(rng, population, start, first)
    for t in range(1, effort.n_populations):
        if report is not None:
            report(chain.glimpse(t, effort.n_populations))
        if chain.out_of_time(share_of_time) or chain.has_enough():
            break
        kept = population
        if memory is not None:
            memory.learn(population.numbers, found.inclusion, problem.filtration.threshold)
            grammar = replace(problem.grammar, operators=memory.operators())
            problem = replace(problem, grammar=grammar)
        population = next_population(
            rng,
            problem,
            chain.registry,
            chain.rejections,
            population,
            found.inclusion,
            first=t == 1,
            memory=memory,
        )
        start = _carry_over(found.last, kept, population)
        last = t + 1 == effort.n_populations
        steps = replace(effort.mjmcmc, n_steps=effort.n_final) if last else effort.mjmcmc
        found = chain.explore(rng, population, start, steps)
    if report is not None:
        report(chain.glimpse(effort.n_populations, effort.n_populations))
    return population, found


def run_mjmcmc(
    rng: np.random.Generator, problem: Problem, report: Report | None = None
) -> ChainResult:
    """MJMCMC over the given covariates, no engineering (paper, Algorithm 1)."""
    chain = Chain(problem)
    population = all_covariates(problem, chain.registry)
    prepared = problem.engine.prepare(population.columns)
    terms = population.prior_terms(problem, chain.registry)
    start = np.zeros(population.size, dtype=np.bool_)
    settings = replace(problem.effort.mjmcmc, n_steps=problem.effort.n_final)
    found = settings.explore(rng, prepared, terms, start)
    chain.record(found, population)
    if report is not None:
        report(chain.glimpse(1, 1))
    walk = found.walk
    assert walk is not None
    frequency = np.zeros(len(chain.registry))
    frequency[population.numbers] = walk.frequency
    return chain.result(Draws(walk.log_posterior, walk.size.astype(np.float64), frequency))


def run_enumeration(
    problem: Problem, report: Callable[[int, int], None] | None = None
) -> ChainResult:
    """All subsets of the covariates, no engineering: the exact posterior.

    `report` is told how many of how many models are done, where that takes time.
    """
    chain = Chain(problem)
    population = all_covariates(problem, chain.registry)
    found = enumerate_population(
        problem.engine.prepare(population.columns),
        population.prior_terms(problem, chain.registry),
        window=problem.effort.window,
        max_kept=problem.effort.max_models,
        report=report,
    )
    chain.record(found, population)
    return chain.result()


def _carry_over(last: Mask, kept: Population, population: Population) -> Mask:
    """The last model, as far as its features are still there."""
    inside = set(kept.numbers[last].tolist())
    return np.array([number in inside for number in population.numbers.tolist()], dtype=np.bool_)
