"""Tests of `dbrm.evolution.algorithms.gmjmcmc`: when an evolution ends."""

from dataclasses import replace

import numpy as np
import pytest

from dbrm.evolution import proceed
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.problem import Stop
from dbrm.features import parse_feature
from dbrm.search import Mjmcmc


@pytest.fixture
def evolve(pose, rng):
    values = rng.normal(size=(60, 4))
    response = values[:, 0] * values[:, 1] + 0.1 * rng.normal(size=60)

    def evolve(pool=(), **stop):
        features = [parse_feature(text, ("x1", "x2", "x3", "x4")) for text in pool]
        problem = pose(values, response, pool=features)
        chain = ChainRecord(replace(problem, budget=replace(problem.budget, stop=Stop(**stop))))
        evolution = Evolution(rng, chain)
        proceed(evolution)
        return evolution.n_done, chain

    return evolve


def test_an_evolution_makes_all_its_populations(evolve):
    assert evolve()[0] == 5


def test_out_of_time_it_ends_after_the_first(evolve):
    assert evolve(seconds=0.0)[0] == 1


def test_out_of_time_it_still_looks_at_what_a_sweep_has_found(evolve):
    n_done, chain = evolve(pool=["x1*x2"], seconds=0.0)
    assert n_done == 2
    best = chain.models().log_evidence.argmax()
    names = {str(chain.registry.features[j]) for j in chain.models().features_of(best)}
    assert "x1*x2" in names


def test_enough_models_are_enough_whatever_the_pool_holds(evolve):
    assert evolve(pool=["x1*x2"], evaluations=1)[0] == 1


def test_only_the_walk_through_the_first_population_begins_on_a_hill(pose, rng, monkeypatch):
    """Later ones go on from the last model. Thirty columns are too many to enumerate."""
    begun, explore = [], Mjmcmc.explore

    def spy(self, *arguments):
        begun.append(self.ascend)
        return explore(self, *arguments)

    monkeypatch.setattr(Mjmcmc, "explore", spy)
    values = rng.normal(size=(60, 30))
    problem = pose(values, values[:, 0] + rng.normal(size=60), population_size=30, n_populations=3)
    steps = Mjmcmc(n_steps=20, ascend=True)
    budget = replace(problem.budget, mjmcmc=steps, n_init=20, n_final=20)
    proceed(Evolution(rng, ChainRecord(replace(problem, budget=budget))))
    assert begun == [True, False, False]


def test_the_first_population_is_enumerated_once_for_all_chains(pose, rng, monkeypatch):
    """Chains that share it end as those that do not."""
    values = rng.normal(size=(60, 4))
    problem = pose(values, values[:, 0] + rng.normal(size=60), n_populations=2)
    prepared, prepare = [], type(problem).prepare

    def spy(self, *arguments):
        prepared.append(len(arguments[0]))
        return prepare(self, *arguments)

    monkeypatch.setattr(type(problem), "prepare", spy)

    def models(problem, seed):
        chain = ChainRecord(problem)
        proceed(Evolution(np.random.default_rng(seed), chain))
        return chain.models()

    together = [models(problem, seed) for seed in (1, 2)]
    assert len(prepared) == 3
    apart = [models(replace(problem), seed) for seed in (1, 2)]
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.log_evidence, other.log_evidence)
