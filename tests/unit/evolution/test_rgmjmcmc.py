"""Tests of `dbrm.evolution.algorithms.rgmjmcmc`; its chains are tested in `tests/statistical`."""

from dataclasses import replace

import numpy as np
import pytest

from dbrm.evolution import proceed
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.algorithms.rgmjmcmc import Rgmjmcmc, _draw_start, _FeatureSpace
from dbrm.evolution.algorithms.sampling import fill_reservoir
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.problem import Stop
from dbrm.features import parse_feature


@pytest.fixture
def problem(pose, rng):
    values = rng.normal(size=(60, 4))
    response = values[:, 0] * values[:, 1] + 0.7 * rng.normal(size=60)
    return pose(values, response, max_model_size=3)


@pytest.fixture
def chain(problem, rng):
    chain = ChainRecord(problem)
    proceed(Evolution(rng, chain))
    return chain


@pytest.fixture
def space(chain):
    return _FeatureSpace(chain, fill_reservoir(chain, 20))


def test_a_population_contains_its_model(space, rng):
    for model in (frozenset(), frozenset({0}), frozenset({1, 3})):
        for _ in range(20):
            population = space.grow(rng, model)
            assert model <= set(population)
            assert len(set(population)) == len(population) == 6


def test_a_model_larger_than_a_population_is_still_inside(space, rng):
    model = frozenset(range(8))
    assert model <= set(space.grow(rng, model))


def test_a_dependent_model_is_still_inside(space, chain, rng):
    """The ratio of a step assumes that a population holds its model, whatever it is."""
    table = chain.problem.table
    column = table.column("x1") + 1e-7 * table.column("x2")
    twin = chain.registry.number(parse_feature("x1 * x1 * x1", table.names), column)
    space._columns[twin] = column
    first = chain.registry.known(parse_feature("x1", table.names))
    model = frozenset({first, twin})
    assert model <= set(space.grow(rng, model))


def test_populations_depend_on_the_generator_and_the_model_alone(space):
    """What happened in between leaves no trace in the law of populations."""
    model = frozenset({0, 2})
    before = space.grow(np.random.default_rng(3), model)
    other = np.random.default_rng(4)
    for _ in range(30):
        space.optimise(other, model, space.grow(other, model))
    assert space.grow(np.random.default_rng(3), model) == before


def test_a_spelling_learned_later_moves_neither_prior_nor_parents(space, chain):
    """The registry renames a feature; the target of the running chain stays."""
    table = chain.problem.table
    number = chain.registry.number(
        parse_feature("tanh(x1*x2*x3)", table.names), np.linspace(0, 1, 60) ** 3
    )
    value = space.log_posterior(frozenset({number}))
    chain.registry.alias(number, parse_feature("x1*x4", table.names))
    assert str(chain.registry.features[number]) == "x1*x4"
    assert str(space._feature(number)) == "tanh(x1*x2*x3)"
    space._known.clear()
    assert space.log_posterior(frozenset({number})) == value


def test_the_posterior_of_a_model_is_evidence_and_prior(space, chain):
    problem = chain.problem
    features = [chain.registry.features[number] for number in (0, 2)]
    columns = np.column_stack([space._column(0), space._column(2)])
    prior = sum(problem.model_prior.feature_log_prior(feature) for feature in features)
    expected = problem.engine.log_evidence(columns)[0] + prior
    assert space.log_posterior(frozenset({0, 2})) == pytest.approx(expected)
    assert space.log_posterior(frozenset(range(4))) == -np.inf


def test_climbing_stays_inside_and_never_descends(space, rng):
    """Greedy ascent from the empty model; other optimisers may end lower."""
    budget = space._problem.budget
    greedy = replace(budget.mjmcmc.optimisers, annealing=0.0, local=0.0)
    climb = replace(budget.mjmcmc, optimisers=greedy)
    space._problem = replace(space._problem, budget=replace(budget, mjmcmc=climb))
    for _ in range(10):
        population = space.grow(rng, frozenset())
        top = space.optimise(rng, frozenset(), population)
        assert top <= set(population)
        assert space.log_posterior(top) >= space.log_posterior(frozenset()) - 1e-9


def test_a_chain_starts_at_a_model_it_knows(chain, space, rng):
    models = chain.models()
    known = {frozenset(models.features_of(row).tolist()) for row in range(len(models))}
    assert all(_draw_start(rng, chain, space) in known for _ in range(20))


def test_no_chain_starts_where_the_rows_say_that_the_posterior_is_zero(chain, space, rng):
    """Gram matrix and rows may disagree on columns that are nearly dependent."""
    models = chain.models()
    best = int(np.argmax(models.log_evidence + models.log_prior))
    refused = frozenset(models.features_of(best).tolist())
    assert refused in {_draw_start(rng, chain, space) for _ in range(50)}
    space._known[refused] = -np.inf
    assert refused not in {_draw_start(rng, chain, space) for _ in range(50)}


def test_where_no_model_is_left_a_chain_starts_at_the_empty_one(chain, space, rng):
    models = chain.models()
    for row in range(len(models)):
        space._known[frozenset(models.features_of(row).tolist())] = -np.inf
    assert _draw_start(rng, chain, space) == frozenset()


def test_draws_are_recorded_step_by_step(problem, rng):
    budget = replace(problem.budget, n_final=80)
    result = proceed(Rgmjmcmc(rng, replace(problem, budget=budget))).result()
    assert result.draws.log_posterior.shape == result.draws.size.shape == (80,)
    assert result.draws.frequency.sum() == pytest.approx(result.draws.size.mean())
    assert result.moves["population swap"][0] == 80
    best = (result.models.log_evidence + result.models.log_prior).max()
    assert result.draws.log_posterior.max() <= best + 1e-6


def test_a_chain_that_is_out_of_time_takes_one_step(problem, rng):
    budget = replace(problem.budget, n_final=10_000, stop=Stop(seconds=0.0))
    result = proceed(Rgmjmcmc(rng, replace(problem, budget=budget))).result()
    assert result.draws.size.shape == (1,)
