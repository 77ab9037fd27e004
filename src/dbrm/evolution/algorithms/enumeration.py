"""All subsets of the given covariates: the exact posterior, without chains or engineering."""

from collections.abc import Callable
from typing import final

from dbrm.evolution.algorithms.base import ALGORITHMS, AbstractAlgorithm
from dbrm.evolution.chain import ChainRecord, ChainResult
from dbrm.evolution.population import all_covariates
from dbrm.evolution.problem import Problem
from dbrm.search import enumerate_population

__all__ = ["Enumeration", "run_enumeration"]


@final
@ALGORITHMS.register("enumerate")
class Enumeration(AbstractAlgorithm):
    """The traits of `run_enumeration`."""

    engineers = False
    searches = False
    unit = "models"


def run_enumeration(
    problem: Problem, report: Callable[[int, int], None] | None = None
) -> ChainResult:
    """Evaluate all subsets of the covariates: the exact posterior.

    `report` is called with the numbers of models done and to do, where that takes time.
    """
    chain = ChainRecord(problem)
    population = all_covariates(problem, chain.registry)
    found = enumerate_population(
        problem.prepare(population.features(chain.registry), population.columns),
        population.prior_terms(problem, chain.registry),
        window=problem.budget.window,
        max_kept=problem.budget.max_models,
        report=report,
    )
    chain.record(found, population)
    return chain.result()
