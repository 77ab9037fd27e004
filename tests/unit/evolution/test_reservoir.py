"""Tests of `dbrm.evolution.algorithms.sampling`."""

import numpy as np
import pytest

from dbrm.evolution import proceed
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.algorithms.sampling import fill_reservoir
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.operators import Operators
from dbrm.features import covariate, evaluate, multiply


@pytest.fixture
def values(rng):
    return rng.normal(size=(60, 4))


@pytest.fixture
def evolved(pose, values, rng):
    """A chain whose first phase is over; the response is a product and noise."""
    response = values[:, 0] * values[:, 1] + 0.5 * rng.normal(size=60)
    product = multiply(covariate("x1"), covariate("x2"))
    chain = ChainRecord(pose(values, response, pool=(product,), operators=Operators(informed=0.0)))
    proceed(Evolution(rng, chain))
    return chain


def texts(chain, reservoir):
    return [str(chain.registry.features[number]) for number in reservoir.numbers]


def test_what_was_found_comes_with_its_inclusion(evolved):
    reservoir = fill_reservoir(evolved, 50)
    names = texts(evolved, reservoir)
    weight = dict(zip(names, reservoir.weights, strict=True))
    assert weight["x1*x2"] == pytest.approx(1.02, abs=1e-3)
    assert max(weight.values()) == weight["x1*x2"]
    assert min(weight.values()) >= 0.02


def test_covariates_are_there_even_without_support(evolved):
    assert {"x1", "x2", "x3", "x4"} <= set(texts(evolved, fill_reservoir(evolved, 50)))


def test_columns_belong_to_their_numbers(evolved):
    reservoir = fill_reservoir(evolved, 50)
    features = [evolved.registry.features[number] for number in reservoir.numbers]
    columns, _ = evaluate(features, evolved.problem.table)
    for mine, exact in zip(reservoir.columns.T, columns.T, strict=True):
        assert abs(np.corrcoef(mine, exact)[0, 1]) == pytest.approx(1.0)
    assert len(set(reservoir.numbers.tolist())) == reservoir.numbers.size


def test_capacity_holds_and_the_best_come_first(evolved):
    reservoir = fill_reservoir(evolved, 3)
    assert reservoir.numbers.size == 3
    assert reservoir.columns.shape == (60, 3)
    assert "x1*x2" in texts(evolved, reservoir)


def test_the_pool_fills_what_is_left(pose, values, rng):
    swept = multiply(covariate("x3"), covariate("x4"))
    problem = pose(values, rng.normal(size=60), pool=(swept,), n_populations=1, population_size=2)
    chain = ChainRecord(problem)
    proceed(Evolution(rng, chain))
    assert "x3*x4" in texts(chain, fill_reservoir(chain, 50))


def test_columns_that_every_model_holds_are_left_out(pose, values, rng):
    chain = ChainRecord(pose(values, rng.normal(size=60), always=("x1",)))
    proceed(Evolution(rng, chain))
    assert "x1" not in texts(chain, fill_reservoir(chain, 50))
