"""RGMJMCMC: a chain over models whose stationary law is the posterior (paper, Sec. 3.4).

A GMJMCMC phase comes first; it fills the reservoir from which populations are grown and
finds a model to start from. Then everything is frozen and `reversible_step` runs.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from dbrm._typing import Column
from dbrm.evolution.chain import Chain, ChainResult, Draws
from dbrm.evolution.gmjmcmc import Report, evolve
from dbrm.evolution.independence import Basis
from dbrm.evolution.operators import Parents, create
from dbrm.evolution.population import Population
from dbrm.evolution.problem import Problem
from dbrm.evolution.reservoir import Reservoir, fill_reservoir
from dbrm.evolution.reversible import Model, reversible_step
from dbrm.features import Feature, evaluate, fit_knots
from dbrm.search import PriorTerms, log_sum_exp
from dbrm.status import Status

__all__ = ["run_rgmjmcmc"]

# Share of newcomers created by the operators instead of drawn from the reservoir.
_CREATED = 0.2
_TRIES_PER_PLACE = 20


def run_rgmjmcmc(
    rng: np.random.Generator, problem: Problem, report: Report | None = None
) -> ChainResult:
    """Run one reversible chain."""
    chain = Chain(problem)
    evolve(rng, chain, report, share_of_time=0.5)
    space = _FeatureSpace(chain, fill_reservoir(chain, problem.effort.reservoir))
    model = _draw_start(rng, chain)
    n_steps = problem.effort.n_final
    log_posterior, size = np.empty(n_steps), np.empty(n_steps)
    visits: dict[int, int] = {}
    done = 0
    for step in range(n_steps):
        model, swap = reversible_step(rng, space, model, problem.effort.mjmcmc.rate)
        chain.count_move("population swap", accepted=swap.accepted)
        log_posterior[step] = space.log_posterior(model)
        size[step] = len(model)
        for number in model:
            visits[number] = visits.get(number, 0) + 1
        done = step + 1
        if chain.out_of_time():
            break
    frequency = np.zeros(len(chain.registry))
    for number, count in visits.items():
        frequency[number] = count / done
    return chain.result(Draws(log_posterior[:done], size[:done], frequency))


def _draw_start(rng: np.random.Generator, chain: Chain) -> Model:
    """A model drawn from what the first phase found."""
    models = chain.models()
    log_posterior = models.log_evidence + models.log_prior
    cumulative = np.cumsum(np.exp(log_posterior - log_sum_exp(log_posterior)))
    row = min(bisect_right(cumulative, rng.random() * cumulative[-1]), len(models) - 1)
    return frozenset(models.features_of(row).tolist())


class _FeatureSpace:
    """The feature space of one chain, frozen: `dbrm.evolution.reversible.ModelSpace`."""

    def __init__(self, chain: Chain, reservoir: Reservoir) -> None:
        self._chain = chain
        self._problem = chain.problem
        self._reservoir = reservoir
        self._cumulative = np.cumsum(reservoir.weights)
        self._columns: dict[int, Column] = {
            int(number): reservoir.columns[:, position]
            for position, number in enumerate(reservoir.numbers)
        }
        self._features: dict[int, Feature] = {}
        self._kinship = self._problem.kinship(chain.registry)
        self._known: dict[Model, float] = {}

    def grow(self, rng: np.random.Generator, model: Model) -> Sequence[int]:
        """The model, then newcomers from the reservoir and from the operators."""
        problem = self._problem
        size = max(problem.effort.population_size, len(model))
        basis = Basis(problem.always_columns, size)
        population = sorted(model)
        # The model is inside whatever the basis says of it, or the ratio would not hold.
        for number in population:
            basis.admit(self._column(number))
        features = [self._feature(number) for number in population]
        parents = Parents(
            population=features,
            weights=np.ones(len(features)),
            covariates=self._problem.covariates,
            pool=problem.pool,
        )
        for _ in range(_TRIES_PER_PLACE * size):
            if len(population) >= size:
                break
            newcomer = self._newcomer(rng, parents)
            if newcomer is None:
                continue
            for number in (*self._missing(newcomer, population), newcomer):
                room = len(population) < size and number not in population
                if room and basis.admit(self._column(number)):
                    population.append(number)
        return population

    def _missing(self, newcomer: int, population: list[int]) -> list[int]:
        """Factors that a newcomer needs beside it."""
        feature = self._feature(newcomer)
        if self._kinship.satisfied(feature, population):
            return []
        factors = self._kinship.missing(feature, population)
        numbers = [self._enter(factor) for factor in factors if self._admits(factor)]
        return [number for number in numbers if number is not None]

    def _admits(self, feature: Feature) -> bool:
        return self._problem.grammar.admits(feature)

    def _newcomer(self, rng: np.random.Generator, parents: Parents) -> int | None:
        if len(self._reservoir.numbers) and not rng.random() < _CREATED:
            position = bisect_right(self._cumulative, rng.random() * self._cumulative[-1])
            return int(self._reservoir.numbers[min(position, len(self._cumulative) - 1)])
        feature = create(rng, parents, self._problem.grammar, self._problem.projector.build)
        return None if feature is None else self._enter(feature)

    def _enter(self, feature: Feature) -> int | None:
        """Number of a created feature, none if its column is not fit for use."""
        feature = fit_knots(self._problem.simplify(feature), self._problem.table)
        columns, statuses = evaluate([feature], self._problem.table)
        if statuses[0] != Status.OK:
            self._chain.rejections.count(Status(statuses[0]).meaning)
            return None
        number = self._chain.registry.number(feature, columns[:, 0])
        self._columns.setdefault(number, columns[:, 0])
        return number

    def _column(self, number: int) -> Column:
        if number not in self._columns:
            feature = self._feature(number)
            self._columns[number] = evaluate([feature], self._problem.table)[0][:, 0]
        return self._columns[number]

    def _feature(self, number: int) -> Feature:
        """A feature under the spelling it had when it was first asked for.

        The registry may learn a simpler one later. Here neither the target nor the law of
        the populations may move.
        """
        return self._features.setdefault(number, self._chain.registry.features[number])

    def _terms(self, numbers: Sequence[int]) -> PriorTerms:
        """Prior of the models over these features."""
        features = [self._feature(number) for number in numbers]
        prior = self._problem.model_prior
        terms = self._problem.prior_terms([prior.feature_log_prior(f) for f in features])
        return self._kinship.restrict(terms, features, numbers)

    def optimise(self, rng: np.random.Generator, model: Model, population: Sequence[int]) -> Model:
        """Climb inside the population; every model looked at enters the books."""
        columns = np.column_stack([self._column(number) for number in population])
        prepared = self._problem.engine.prepare(columns)
        terms = self._terms(population)
        start = np.array([number in model for number in population], dtype=np.bool_)
        found = self._problem.effort.mjmcmc.climb(rng, prepared, terms, start)
        self._chain.record(found, Population(np.array(population, dtype=np.int32), columns))
        return frozenset(int(population[j]) for j in np.flatnonzero(found.last).tolist())

    def log_posterior(self, model: Model) -> float:
        """Exact log posterior, from the rows."""
        if model not in self._known:
            self._known[model] = self._evaluate(model)
        return self._known[model]

    def _evaluate(self, model: Model) -> float:
        members = sorted(model)
        prior = float(self._terms(members).of(np.ones((1, len(members)), dtype=np.bool_))[0])
        if prior == -np.inf:
            return -np.inf
        columns = [self._column(number) for number in members]
        values = np.column_stack(columns) if columns else np.empty((self._problem.table.n_rows, 0))
        return prior + self._problem.engine.log_evidence(values)[0]
