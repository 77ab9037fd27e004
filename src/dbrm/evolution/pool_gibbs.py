r"""Pool-Gibbs: an exact sampler over the models of a finite pool, without a way back.

The state is a model :math:`M` and a window :math:`\mathcal S` of :math:`s` features of a pool
of :math:`N`, with joint law :math:`p(M|y)\,u(\mathcal S|M)`, where :math:`u` is uniform over the
windows that contain :math:`M`: :math:`u(\mathcal S|M) = 1/\binom{N-|M|}{s-|M|}`. Both conditionals
are drawn exactly:

1. :math:`\mathcal S | M`: the model and :math:`s-|M|` others at random;
2. :math:`M | \mathcal S`: from :math:`p(\tilde M|y)\,u(\mathcal S|\tilde M)` over all subsets
   :math:`\tilde M` of the window, by enumeration; where that costs too much, by steps of
   MJMCMC with this very target.

Leaving the factor :math:`u` out of the second step would change the stationary law. The
conditional inclusion probabilities are averaged over the steps, which has less
variance than counting visits.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import lgamma

import numpy as np

from dbrm._typing import FloatArray
from dbrm.evolution.chain import Chain, ChainResult, Draws
from dbrm.evolution.gmjmcmc import Report, evolve
from dbrm.evolution.population import Population
from dbrm.evolution.problem import Problem
from dbrm.evolution.reservoir import Reservoir, fill_reservoir
from dbrm.search import enumerate_population

__all__ = ["draw_window", "log_window_count", "run_pool_gibbs"]


def draw_window(
    rng: np.random.Generator, model: Sequence[int], n_pool: int, size: int
) -> list[int]:
    """The model and as many other positions of the pool, drawn uniformly, as there is room."""
    others = [position for position in range(n_pool) if position not in set(model)]
    count = min(size - len(model), len(others))
    for i in range(count):
        k = i + int(rng.random() * (len(others) - i))
        others[i], others[k] = others[k], others[i]
    return sorted([*model, *others[:count]])


def log_window_count(n_pool: int, size: int) -> FloatArray:
    r"""Logs of :math:`\binom{N-k}{s-k}`, the windows that hold a given model of size k."""
    return np.array(
        [
            lgamma(n_pool - k + 1) - lgamma(size - k + 1) - lgamma(n_pool - size + 1)
            for k in range(size + 1)
        ]
    )


def run_pool_gibbs(
    rng: np.random.Generator, problem: Problem, report: Report | None = None
) -> ChainResult:
    """Fill the pool by a GMJMCMC phase, then sample exactly over its models."""
    chain = Chain(problem)
    evolve(rng, chain, report, share_of_time=0.5)
    pool = fill_reservoir(chain, problem.effort.reservoir)
    sampler = _Sampler(chain, pool)
    n_steps = problem.effort.n_final
    log_posterior, sizes = np.empty(n_steps), np.empty(n_steps)
    total = np.zeros(len(chain.registry))
    model = sampler.best_known()
    done = 0
    for step in range(n_steps):
        model, log_posterior[step], window, inclusion = sampler.step(rng, model)
        sizes[step] = len(model)
        total[pool.numbers[window]] += inclusion
        done = step + 1
        if chain.out_of_time():
            break
    return chain.result(Draws(log_posterior[:done], sizes[:done], total / done))


class _Sampler:
    """The two conditional draws over one pool."""

    def __init__(self, chain: Chain, pool: Reservoir) -> None:
        self._chain = chain
        self._pool = pool
        features = [chain.registry.features[number] for number in pool.numbers]
        prior = chain.problem.model_prior
        self._features = features
        self._kinship = chain.problem.kinship(chain.registry)
        self._terms = np.array([prior.feature_log_prior(feature) for feature in features])
        self._size = min(chain.problem.effort.population_size, len(features))

    def best_known(self) -> list[int]:
        """Best model found so far whose features are all in the pool, to start from."""
        models = self._chain.models()
        position = {int(number): place for place, number in enumerate(self._pool.numbers)}
        for row in np.argsort(-(models.log_evidence + models.log_prior), kind="stable"):
            members = models.features_of(int(row)).tolist()
            if len(members) <= self._size and all(number in position for number in members):
                return sorted(position[number] for number in members)
        return []

    def step(
        self, rng: np.random.Generator, model: list[int]
    ) -> tuple[list[int], float, list[int], FloatArray]:
        """New model, its log posterior, the window, and the inclusion within the window."""
        problem = self._chain.problem
        n_pool = len(self._pool.numbers)
        window = draw_window(rng, model, n_pool, self._size)
        prepared = problem.engine.prepare(self._pool.columns[:, window])
        numbers = self._pool.numbers[window]
        terms = problem.prior_terms([float(self._terms[position]) for position in window])
        features = [self._features[position] for position in window]
        terms = self._kinship.restrict(terms, features, numbers)
        windows = log_window_count(n_pool, self._size)
        target = replace(terms, size=terms.size - windows)
        population = Population(numbers, self._pool.columns[:, window])
        effort = problem.effort
        if len(window) <= prepared.enumeration_limit:
            found = enumerate_population(
                prepared, target, window=effort.window, max_kept=effort.max_models, rng=rng
            )
            inclusion = found.inclusion
        else:
            start = np.array([position in model for position in window], dtype=np.bool_)
            # Nothing learned on the way: the steps must leave the conditional law alone.
            steps = replace(effort.mjmcmc, adapt=0.0)
            found = steps.explore(rng, prepared, target, start)
            assert found.walk is not None
            inclusion = found.walk.frequency
        # The books hold the posterior itself, without the factor for the window.
        found = replace(
            found,
            log_prior=terms.of(found.masks),
            log_lost=found.log_lost + float(windows.max()),
        )
        self._chain.record(found, population)
        chosen = found.last[None]
        value = float(prepared.log_evidence(chosen)[0][0] + terms.of(chosen)[0])
        return [window[j] for j in np.flatnonzero(found.last)], value, window, inclusion
