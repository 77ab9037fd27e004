"""RGMJMCMC: a chain over models with the posterior as stationary distribution (Sec. 3.4).

A GMJMCMC phase comes first; it fills the reservoir from which populations are grown and
finds a model to start from. After that nothing adapts, and `reversible_step` runs.

In the sets of numbers that stand for models here, latent effect k has the number -1 - k. All
effects are in every population.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.data.schema import ArrayOf, ListOf, Text, Whole, refuse_unless
from dbrm.evidence import log_evidence_with
from dbrm.evolution.algorithms.base import ALGORITHMS
from dbrm.evolution.algorithms.reversible import Model, reversible_step
from dbrm.evolution.algorithms.sampling import (
    AbstractSampling,
    Reservoir,
    fill_reservoir,
    reservoir_layout,
    sampling_layout,
)
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.operators import Parents, create
from dbrm.evolution.population import Basis, Population
from dbrm.evolution.problem import Problem
from dbrm.evolution.snapshot import Layout, Snapshot
from dbrm.features import Feature, Transform, evaluate
from dbrm.search import PriorTerms, effects_of, log_sum_exp
from dbrm.status import Status

__all__ = ["Rgmjmcmc"]

# Share of candidates created by the operators instead of drawn from the reservoir.
_CREATED = 0.2
_TRIES_PER_PLACE = 20


def _layout(problem: Problem, content: Mapping[str, Any]) -> Layout:
    """Layout of the state of a reversible chain."""
    # Latent effects have the numbers -1, -2, ... among the features of a model.
    space, first = "sampler.space", -len(problem.latent)
    own = f"{space}.own"
    sampler = Layout(
        {"sampler.state.model": ListOf(Whole(low=first, below="registered"))},
        {
            "sampler.state.visits": ArrayOf("<i8", (None, 2), low=0),
            f"{own}.spelled": ArrayOf("<i8", ("spelled",), low=0, below="registered"),
            f"{own}.named": ArrayOf("<i8", ("named",), low=0, below="registered"),
            f"{own}.log_priors": ArrayOf("<f8", ("named",), high=1e300),
            f"{own}.known_sizes": ArrayOf("<i8", ("known",), low=0, high=2**20),
            f"{own}.known_members": ArrayOf("<i8", (None,), low=first, below="registered"),
            f"{own}.known_values": ArrayOf("<f8", ("known",), high=1e300),
        },
        {
            f"{own}.spelled": ListOf(Text(), "spelled"),
            f"{own}.named": ListOf(Text(), "named"),
        },
    )
    reservoir = reservoir_layout(f"{space}.reservoir", "reservoir")
    return sampling_layout(problem, content, reservoir.with_parts(sampler))


@final
@ALGORITHMS.register("rgmjmcmc")
class Rgmjmcmc(AbstractSampling):
    """One reversible chain."""

    layout = staticmethod(_layout)

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        super().__init__(rng, problem)
        self._space: _FeatureSpace | None = None
        self._model: Model = frozenset()
        self._visits: dict[int, int] = {}

    def _draw(self) -> tuple[float, int]:
        if self._space is None:
            reservoir = fill_reservoir(self._chain, self._chain.problem.budget.reservoir)
            self._space = _FeatureSpace(self._chain, reservoir)
            self._model = _draw_start(self._rng, self._chain, self._space)
        rate = self._chain.problem.budget.mjmcmc.rate
        self._model, swap = reversible_step(self._rng, self._space, self._model, rate)
        self._chain.count_move("population swap", accepted=swap.accepted)
        for number in _features_of(self._model):
            self._visits[number] = self._visits.get(number, 0) + 1
        return self._space.log_posterior(self._model), len(self._model)

    def _frequency(self) -> FloatArray:
        frequency = np.zeros(len(self._chain.registry))
        for number, count in self._visits.items():
            frequency[number] = count / len(self._draws)
        return frequency

    def _get_sampler_state(self) -> Snapshot:
        visits = np.array(list(self._visits.items()), dtype=np.int64).reshape(-1, 2)
        own = Snapshot(content={"model": sorted(self._model)}, arrays={"visits": visits})
        space = Snapshot() if self._space is None else self._space.get_state()
        return Snapshot.join(state=own, space=space)

    def _set_sampler_state(self, snapshot: Snapshot) -> None:
        own, space = snapshot.part("state"), snapshot.part("space")
        self._model = frozenset(own.content["model"])
        visits = own.arrays["visits"]
        refuse_unless(np.all(visits[:, 0] < len(self._chain.registry)), "The visits of a chain")
        self._visits = dict(visits.tolist())
        reservoir = Reservoir.from_state(space.part("reservoir"), self._chain.problem.table)
        self._space = _FeatureSpace(self._chain, reservoir)
        self._space.set_state(space)


def _draw_start(rng: np.random.Generator, chain: ChainRecord, space: "_FeatureSpace") -> Model:
    """A model drawn from what the first phase found.

    The first phase works on Gram matrices. Of nearly dependent columns the rows may say
    that they are dependent, and a chain must not start where the posterior is zero.
    """
    models = chain.models()
    log_posterior = models.log_evidence + models.log_prior
    share = np.exp(log_posterior - log_sum_exp(log_posterior))
    while share.any():
        cumulative = np.cumsum(share)
        row = min(bisect_right(cumulative, rng.random() * cumulative[-1]), len(models) - 1)
        effects = effects_of(models.latent[[row]], len(chain.problem.latent))[0]
        numbers = [-1 - k for k in np.flatnonzero(effects).tolist()]
        model = frozenset([*models.features_of(row).tolist(), *numbers])
        if space.log_posterior(model) > -np.inf:
            return model
        share[row] = 0.0
    return frozenset()


def _features_of(model: Model) -> list[int]:
    """Features of a model, in order; what is left are latent effects."""
    return sorted(number for number in model if number >= 0)


class _FeatureSpace:
    """The feature space of one chain; implements `ModelSpace`."""

    def __init__(self, chain: ChainRecord, reservoir: Reservoir) -> None:
        self._chain = chain
        self._problem = chain.problem
        self._reservoir = reservoir
        self._cumulative = np.cumsum(reservoir.weights)
        self._columns: dict[int, Column] = {}
        # The spelling that each column was computed from.
        self._spellings: dict[int, Feature] = {}
        for position, number in enumerate(reservoir.numbers.tolist()):
            self._columns[number] = reservoir.columns[:, position]
            self._spellings[number] = reservoir.spellings[position]
        self._features: dict[int, Feature] = {}
        self._log_priors: dict[int, float] = {}
        self._heredity_rule = self._problem.heredity_rule(chain.registry)
        self._known: dict[Model, float] = {}

    def grow(self, rng: np.random.Generator, model: Model) -> Sequence[int]:
        """The model, then candidates from the reservoir and from the operators."""
        problem = self._problem
        population = _features_of(model)
        size = max(problem.budget.population_size, len(population))
        basis = Basis(problem.always_columns, size)
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
            candidate = self._draw_candidate(rng, parents)
            if candidate is None:
                continue
            for number in (*self._missing(candidate, population), candidate):
                room = len(population) < size and number not in population
                if room and basis.admit(self._column(number)):
                    population.append(number)
        return [*population, *(-1 - k for k in range(len(problem.latent)))]

    def _missing(self, candidate: int, population: list[int]) -> list[int]:
        """Factors that a candidate needs beside it."""
        feature = self._feature(candidate)
        if self._heredity_rule.satisfied(feature, population):
            return []
        factors = self._heredity_rule.missing(feature, population)
        numbers = [self._enter(factor) for factor in factors if self._admits(factor)]
        return [number for number in numbers if number is not None]

    def _admits(self, feature: Feature) -> bool:
        return self._problem.grammar.admits(feature)

    def _draw_candidate(self, rng: np.random.Generator, parents: Parents) -> int | None:
        if len(self._reservoir.numbers) and not rng.random() < _CREATED:
            position = bisect_right(self._cumulative, rng.random() * self._cumulative[-1])
            return int(self._reservoir.numbers[min(position, len(self._cumulative) - 1)])
        feature = create(rng, parents, self._problem.grammar, self._project)
        return None if feature is None else self._enter(feature)

    def _project(
        self, rng: np.random.Generator, transform: Transform, children: list[Feature]
    ) -> Feature | None:
        """A projection of the children; none where its weights would be drawn.

        No way back leads through the same draw, and the draws that share a prior are counted.
        """
        if self._problem.integrates_weights:
            return None
        return self._problem.projector.build(rng, transform, children)

    def _enter(self, feature: Feature) -> int | None:
        """Number of a created feature, none if its column is not fit for use."""
        feature, column, status = self._problem.column_of(self._problem.simplify(feature))
        if status is not Status.OK:
            self._chain.rejections.count(status.meaning)
            return None
        number = self._chain.registry.number(feature, column)
        if number not in self._spellings:
            self._spellings[number] = feature
            self._columns[number] = column
        return number

    def _column(self, number: int) -> Column:
        if number not in self._columns:
            feature = self._spellings.setdefault(number, self._feature(number))
            self._columns[number] = evaluate([feature], self._problem.table)[0][:, 0]
        return self._columns[number]

    def _feature(self, number: int) -> Feature:
        """A feature under the spelling, and with the prior, it had when it was first asked for.

        The registry may learn a simpler one later. Here neither the target nor the law of
        the populations may move.
        """
        if number not in self._features:
            registry = self._chain.registry
            self._features[number] = registry.features[number]
            self._log_priors[number] = registry.log_prior(number, self._problem.model_prior)
        return self._features[number]

    def _terms(self, numbers: Sequence[int]) -> PriorTerms:
        """Prior of the models over these features."""
        features = [self._feature(number) for number in numbers]
        terms = self._problem.prior_terms([self._log_priors[number] for number in numbers])
        return self._heredity_rule.restrict(terms, features, numbers)

    def optimise(self, rng: np.random.Generator, model: Model, population: Sequence[int]) -> Model:
        """Maximise inside the population; every model evaluated enters the record."""
        features = [number for number in population if number >= 0]
        columns = self._columns_of(features)
        prepared = self._problem.engine.prepare(columns)
        terms = self._terms(features)
        start = np.array([number in model for number in population], dtype=np.bool_)
        found = self._problem.budget.mjmcmc.maximize(rng, prepared, terms, start)
        self._chain.record(found, Population(np.array(features, dtype=np.int32), columns))
        return frozenset(int(population[j]) for j in np.flatnonzero(found.last).tolist())

    def log_posterior(self, model: Model) -> float:
        """Exact log posterior, from the rows."""
        if model not in self._known:
            self._known[model] = self._evaluate(model)
        return self._known[model]

    def _evaluate(self, model: Model) -> float:
        members = _features_of(model)
        effects = self._problem.latent.none()
        effects[[-1 - number for number in model if number < 0]] = True
        mask = np.concatenate([np.ones(len(members), dtype=np.bool_), effects])
        prior = float(self._terms(members).of(mask[None])[0])
        if prior == -np.inf:
            return -np.inf
        columns = self._columns_of(members)
        return prior + log_evidence_with(self._problem.engine, columns, effects)[0]

    def _columns_of(self, numbers: Sequence[int]) -> Matrix:
        columns = [self._column(number) for number in numbers]
        return np.column_stack(columns) if columns else np.empty((self._problem.table.n_rows, 0))

    def get_state(self) -> Snapshot:
        """The reservoir, spellings and values met so far; columns are computed again."""
        members = [number for model in self._known for number in sorted(model)]
        own = Snapshot(
            arrays={
                "spelled": np.array(list(self._spellings), dtype=np.int64),
                "named": np.array(list(self._features), dtype=np.int64),
                "log_priors": np.array(list(self._log_priors.values()), dtype=np.float64),
                "known_sizes": np.array([len(model) for model in self._known], dtype=np.int64),
                "known_members": np.array(members, dtype=np.int64),
                "known_values": np.array(list(self._known.values()), dtype=np.float64),
            },
            features={
                "spelled": list(self._spellings.values()),
                "named": list(self._features.values()),
            },
        )
        return Snapshot.join(own=own, reservoir=self._reservoir.get_state())

    def set_state(self, snapshot: Snapshot) -> None:
        """Know the spellings and values of the frozen space."""
        own = snapshot.part("own")
        arrays, features = own.arrays, own.features
        self._spellings = dict(zip(arrays["spelled"].tolist(), features["spelled"], strict=True))
        self._features = dict(zip(arrays["named"].tolist(), features["named"], strict=True))
        self._log_priors = dict(zip(self._features, arrays["log_priors"].tolist(), strict=True))
        sound = arrays["known_sizes"].sum() == arrays["known_members"].size
        refuse_unless(sound, "The values that a chain knows")
        ends = np.cumsum(arrays["known_sizes"])[:-1]
        models = [frozenset(part.tolist()) for part in np.split(arrays["known_members"], ends)]
        self._known = dict(zip(models, arrays["known_values"].tolist(), strict=False))
