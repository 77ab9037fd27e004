r"""Pool-Gibbs: an exact sampler over the models of a finite pool; it rejects nothing.

The state is a model :math:`M` and a window :math:`\mathcal S` of :math:`s` features of a pool
of :math:`N`, with joint distribution :math:`p(M|y)\,u(\mathcal S|M)`, where :math:`u` is uniform
over the windows that contain :math:`M`: :math:`u(\mathcal S|M) = 1/\binom{N-|M|}{s-|M|}`. Both
conditionals are drawn exactly:

1. :math:`\mathcal S | M`: the model and :math:`s-|M|` others at random;
2. :math:`M | \mathcal S`: from :math:`p(\tilde M|y)\,u(\mathcal S|\tilde M)` over all subsets
   :math:`\tilde M` of the window, by enumeration; where that costs too much, by steps of
   MJMCMC with this very target.

Leaving the factor :math:`u` out of the second step would change the stationary
distribution. The
conditional inclusion probabilities are averaged over the steps, which has less
variance than counting visits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import lgamma
from typing import Any, final

import numpy as np

from dbrm._typing import FloatArray
from dbrm.data.schema import ArrayOf, ListOf, Text, Whole
from dbrm.evolution.algorithms.base import ALGORITHMS
from dbrm.evolution.algorithms.sampling import (
    AbstractSampling,
    Reservoir,
    fill_reservoir,
    reservoir_layout,
    sampling_layout,
)
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.population import Population
from dbrm.evolution.problem import Problem
from dbrm.evolution.snapshot import Layout, Snapshot
from dbrm.features import Feature
from dbrm.search import effects_of, enumerate_population

__all__ = ["PoolGibbs", "draw_window", "log_window_count"]


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


def _layout(problem: Problem, content: Mapping[str, Any]) -> Layout:
    """Layout of the state of a chain over a pool."""
    sampler = Layout(
        {"sampler.state.model": ListOf(Whole(low=-len(problem.latent), below="pool"))},
        {"sampler.state.total": ArrayOf("<f8", ("pool",), low=0.0, high=1e15)},
        {"sampler.pool.own.names": ListOf(Text(), "pool")},
    )
    pool = reservoir_layout("sampler.pool.pool", "pool")
    return sampling_layout(problem, content, pool.with_parts(sampler))


@final
@ALGORITHMS.register("pool-gibbs")
class PoolGibbs(AbstractSampling):
    """One chain: a GMJMCMC phase fills the pool, then models of it are drawn exactly."""

    layout = staticmethod(_layout)

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        super().__init__(rng, problem)
        self._sampler: _Sampler | None = None
        self._model: list[int] = []
        self._total: FloatArray = np.zeros(0)

    def _draw(self) -> tuple[float, int]:
        if self._sampler is None:
            pool = fill_reservoir(self._chain, self._chain.problem.budget.reservoir)
            names = [self._chain.registry.features[number] for number in pool.numbers]
            self._sampler = _Sampler(self._chain, pool, names)
            self._model = self._sampler.best_known()
            self._total = np.zeros(pool.numbers.size)
        self._model, value, window, inclusion = self._sampler.step(self._rng, self._model)
        self._total[window] += inclusion
        return value, len(self._model)

    def _frequency(self) -> FloatArray:
        frequency = np.zeros(len(self._chain.registry))
        if self._sampler is not None:
            frequency[self._sampler.pool.numbers] = self._total / len(self._draws)
        return frequency

    def _get_sampler_state(self) -> Snapshot:
        own = Snapshot(content={"model": self._model}, arrays={"total": self._total})
        pool = Snapshot() if self._sampler is None else self._sampler.get_state()
        return Snapshot.join(state=own, pool=pool)

    def _set_sampler_state(self, snapshot: Snapshot) -> None:
        own, frozen = snapshot.part("state"), snapshot.part("pool")
        self._model = own.content["model"]
        self._total = own.arrays["total"].copy()
        pool = Reservoir.from_state(frozen.part("pool"), self._chain.problem.table)
        self._sampler = _Sampler(self._chain, pool, frozen.part("own").features["names"])


class _Sampler:
    """The two conditional draws over one pool, whose features have these names."""

    def __init__(self, chain: ChainRecord, pool: Reservoir, features: list[Feature]) -> None:
        self._chain = chain
        self.pool = pool
        prior = chain.problem.model_prior
        self._features = features
        self._heredity_rule = chain.problem.heredity_rule(chain.registry)
        self._terms = np.array(
            [
                prior.feature_log_prior(feature) + chain.registry.log_share(int(number), feature)
                for number, feature in zip(pool.numbers, features, strict=True)
            ]
        )
        self._size = min(chain.problem.budget.population_size, len(features))

    def best_known(self) -> list[int]:
        """Best model found so far whose features are all in the pool, to start from."""
        models = self._chain.models()
        position = {int(number): place for place, number in enumerate(self.pool.numbers)}
        for row in np.argsort(-(models.log_evidence + models.log_prior), kind="stable"):
            members = models.features_of(int(row)).tolist()
            if len(members) <= self._size and all(number in position for number in members):
                effects = effects_of(models.latent[[row]], len(self._chain.problem.latent))[0]
                numbers = [-1 - k for k in np.flatnonzero(effects).tolist()]
                return sorted(numbers + [position[number] for number in members])
        return []

    def step(
        self, rng: np.random.Generator, model: list[int]
    ) -> tuple[list[int], float, list[int], FloatArray]:
        """New model, its log posterior, the window, and the inclusion within the window.

        In models latent effect k has the number -1 - k; latent effects are in every window.
        """
        problem = self._chain.problem
        n_pool = len(self.pool.numbers)
        features = [position for position in model if position >= 0]
        window = draw_window(rng, features, n_pool, self._size)
        prepared = problem.engine.prepare(self.pool.columns[:, window])
        numbers = self.pool.numbers[window]
        terms = problem.prior_terms([float(self._terms[position]) for position in window])
        members = [self._features[position] for position in window]
        terms = self._heredity_rule.restrict(terms, members, numbers)
        windows = log_window_count(n_pool, self._size)
        target = replace(terms, size=terms.size - windows)
        population = Population(numbers, self.pool.columns[:, window])
        budget = problem.budget
        if prepared.size <= prepared.enumeration_limit:
            found = enumerate_population(
                prepared, target, window=budget.window, max_kept=budget.max_models, rng=rng
            )
            inclusion = found.inclusion
        else:
            effects = [-1 - k for k in range(len(problem.latent))]
            start = np.array([number in model for number in (*window, *effects)], dtype=np.bool_)
            # No adaptation, no ascent: the steps must leave the conditional distribution alone.
            steps = replace(budget.mjmcmc, adapt=0.0, ascend=False)
            found = steps.explore(rng, prepared, target, start)
            assert found.walk is not None
            inclusion = found.walk.frequency
        # The record holds the posterior itself, without the factor for the window.
        found = replace(
            found,
            log_prior=terms.of(found.masks),
            log_lost=found.log_lost + float(windows.max()),
        )
        self._chain.record(found, population)
        chosen = found.last[None]
        value = float(prepared.log_evidence(chosen)[0][0] + terms.of(chosen)[0])
        size = len(window)
        places = np.flatnonzero(found.last).tolist()
        model = [window[j] if j < size else size - 1 - j for j in places]
        return model, value, window, inclusion[:size]

    def get_state(self) -> Snapshot:
        """The pool under its names."""
        names = Snapshot(features={"names": self._features})
        return Snapshot.join(own=names, pool=self.pool.get_state())
