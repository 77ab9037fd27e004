"""Tests of `dbrm.evolution.algorithms.pool_gibbs`; its law is tested in `tests/statistical`."""

from collections import Counter
from dataclasses import replace
from math import comb, log

import numpy as np
import pytest

from dbrm.evolution import proceed
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.algorithms.pool_gibbs import PoolGibbs, _Sampler, draw_window, log_window_count
from dbrm.evolution.algorithms.sampling import Reservoir, fill_reservoir
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.problem import Stop
from dbrm.features import covariate, multiply
from dbrm.search import Mjmcmc


@pytest.fixture
def problem(pose, rng):
    values = rng.normal(size=(60, 4))
    response = values[:, 0] * values[:, 1] + 0.7 * rng.normal(size=60)
    product = multiply(covariate("x1"), covariate("x2"))
    return pose(values, response, max_model_size=3, population_size=5, pool=(product,))


def test_windows_are_counted():
    expected = [log(comb(9 - k, 4 - k)) for k in range(5)]
    np.testing.assert_allclose(log_window_count(9, 4), expected)


def test_windows_hold_the_model_and_are_uniform(rng):
    """Ten windows of four out of six around a model of one: one false alarm in a million."""
    counts = Counter(tuple(draw_window(rng, [2], 6, 4)) for _ in range(5_000))
    assert len(counts) == comb(5, 3)
    assert all(2 in window and len(set(window)) == 4 for window in counts)
    deviation = max(abs(count - 500) for count in counts.values())
    assert deviation < 5.4 * np.sqrt(5_000 * 0.1 * 0.9)


def test_a_window_as_large_as_the_pool_is_the_pool(rng):
    assert draw_window(rng, [1], 4, 4) == [0, 1, 2, 3]
    assert draw_window(rng, [], 3, 5) == [0, 1, 2]


@pytest.fixture
def sampler(problem, rng):
    chain = ChainRecord(problem)
    proceed(Evolution(rng, chain))
    pool = fill_reservoir(chain, 12)
    return _Sampler(chain, pool, [chain.registry.features[number] for number in pool.numbers])


def test_a_step_reports_the_posterior_of_its_model(sampler, rng):
    """Without the factor for the window, and with the prior as it is."""
    problem, pool = sampler._chain.problem, sampler.pool
    model = sampler.best_known()
    for _ in range(10):
        model, value, window, inclusion = sampler.step(rng, model)
        assert set(model) <= set(window)
        prior = float(sampler._terms[model].sum())
        evidence = problem.engine.log_evidence(pool.columns[:, model])[0]
        assert value == pytest.approx(evidence + prior, abs=1e-6)
        assert inclusion.shape == (len(window),)
        assert np.all((inclusion >= 0) & (inclusion <= 1))


def test_the_books_hold_the_posterior_without_the_window(sampler, rng):
    problem = sampler._chain.problem
    sampler.step(rng, [])
    models = sampler._chain.models()
    features = sampler._chain.registry.features
    for row in range(min(len(models), 50)):
        members = [features[number] for number in models.features_of(row)]
        prior = sum(problem.model_prior.feature_log_prior(feature) for feature in members)
        assert models.log_prior[row] == pytest.approx(prior)


def test_the_start_is_the_best_model_of_the_pool(sampler):
    start = sampler.best_known()
    models = sampler._chain.models()
    best = int(np.argmax(models.log_evidence + models.log_prior))
    assert set(sampler.pool.numbers[start]) == set(models.features_of(best).tolist())


def test_draws_are_averages_of_conditional_inclusion(problem, rng):
    budget = replace(problem.budget, n_final=50)
    result = proceed(PoolGibbs(rng, replace(problem, budget=budget))).result()
    assert result.draws.size.shape == (50,)
    assert result.draws.frequency.max() <= 1.0 + 1e-12
    product = [str(feature) for feature in result.features].index("x1*x2")
    assert result.draws.frequency[product] > 0.9


def test_a_chain_that_is_out_of_time_takes_one_step(problem, rng):
    budget = replace(problem.budget, n_final=10_000, stop=Stop(seconds=0.0))
    result = proceed(PoolGibbs(rng, replace(problem, budget=budget))).result()
    assert result.draws.size.shape == (1,)


def test_no_step_begins_on_a_hill(pose):
    """A climb before a step would not leave the posterior alone; here windows are walked."""
    draw = np.random.default_rng(2)
    values = draw.normal(size=(60, 30))
    problem = pose(values, values[:, 0] + draw.normal(size=60), population_size=28)
    chain = ChainRecord(problem)
    for name in problem.free_names:
        chain.registry.number(covariate(name), problem.table.column(name))
    features = chain.registry.features
    pool = Reservoir(np.arange(30, dtype=np.int32), values, np.ones(30), features)
    ends = []
    for ascend in (False, True):
        mjmcmc = Mjmcmc(n_steps=3, ascend=ascend)
        chain.problem = replace(problem, budget=replace(problem.budget, mjmcmc=mjmcmc))
        model = _Sampler(chain, pool, features).step(np.random.default_rng(1), [5, 6, 7])[0]
        ends.append(model)
    assert ends[0] == ends[1]
