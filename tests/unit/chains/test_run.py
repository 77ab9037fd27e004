"""Tests of `dbrm.chains`: the same seed, the same numbers, however many workers."""

from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import dbrm
from dbrm.chains import run_chains as run
from dbrm.chains import seed_sequence
from dbrm.errors import InvalidSettingError
from dbrm.posterior import merge_chains

QUICK = {"n_chains": 3, "n_populations": 6, "transforms": ["sin", "tanh"], "random_state": 11}
QUICK |= {"prior": "jeffreys", "penalty": "bic"}


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(2)
    columns = draw.normal(size=(80, 5))
    return columns, np.sin(columns[:, 0] * columns[:, 1]) + 0.3 * draw.normal(size=80)


def run_chains(problem, n_chains, seed, **options):
    """The results in a list."""
    results = []
    run(problem, n_chains, seed, results.append, **options)
    return results


def assert_identical(one, other):
    """Bit for bit: features, models, probabilities."""
    for table in ("features", "models"):
        first, second = getattr(one, table), getattr(other, table)
        assert list(first.columns) == list(second.columns)
        for column in first.columns:
            assert first[column].tolist() == second[column].tolist(), (table, column)


@pytest.mark.parametrize("algorithm", ["gmjmcmc", "rgmjmcmc", "pool-gibbs", "mjmcmc"])
def test_one_and_two_workers_agree_to_the_last_bit(data, algorithm):
    options = QUICK | {"algorithm": algorithm, "n_final": 60, "n_chains": 2}
    one, two = (dbrm.fit(*data, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    assert_identical(one, two)
    np.testing.assert_array_equal(one.predict(data[0]), two.predict(data[0]))
    assert one.record.n_evaluated == two.record.n_evaluated


def test_populations_that_are_walked_agree_too(data):
    options = QUICK | {"population_size": 24, "n_iter": 300, "n_populations": 3}
    assert_identical(*(dbrm.fit(*data, n_jobs=n_jobs, **options) for n_jobs in (1, 2)))


def test_chains_use_one_thread_of_linear_algebra(data):
    """How many there are changes the order of sums, and workers have fewer than we do."""
    problem = dbrm.fit(*data, **QUICK | {"n_chains": 1})._problem
    threads = []

    def progress(chain, chain_progress):
        if chain_progress is not None:
            threads.extend(pool["num_threads"] for pool in threadpool_info())

    run_chains(problem, 1, np.random.SeedSequence(1), progress=progress)
    assert threads
    assert set(threads) == {1}


def test_a_seed_reproduces_and_another_does_not(data):
    one, again = dbrm.fit(*data, **QUICK), dbrm.fit(*data, **QUICK)
    assert_identical(one, again)
    other = dbrm.fit(*data, **QUICK | {"random_state": 12})
    assert other.models["probability"].tolist() != one.models["probability"].tolist()


def test_chains_differ_from_each_other(data):
    problem = dbrm.fit(*data, **QUICK | {"n_chains": 1})._problem
    results = run_chains(problem, 3, np.random.SeedSequence(5))
    texts = [frozenset(str(feature) for feature in result.features) for result in results]
    assert len(set(texts)) == 3


def test_the_first_chains_do_not_depend_on_how_many_follow(data):
    problem = dbrm.fit(*data, **QUICK | {"n_chains": 1})._problem
    two = run_chains(problem, 2, np.random.SeedSequence(5))
    four = run_chains(problem, 4, np.random.SeedSequence(5))
    for one, other in zip(two, four, strict=False):
        np.testing.assert_array_equal(one.models.keys, other.models.keys)


def test_the_order_of_the_chains_is_irrelevant_to_the_union(data):
    problem = dbrm.fit(*data, **QUICK | {"n_chains": 1})._problem
    results = run_chains(problem, 3, np.random.SeedSequence(5))
    forth, back = (merge_chains(list(r), problem) for r in (results, results[::-1]))

    def table(merged):
        return {
            frozenset(str(merged.features[j]) for j in merged.models.features_of(row)): p
            for row, p in enumerate(merged.probability)
        }

    first, second = table(forth), table(back)
    assert first.keys() == second.keys()
    np.testing.assert_allclose(
        [first[key] for key in first], [second[key] for key in first], rtol=1e-9
    )


def test_progress_is_told(data):
    problem = dbrm.fit(*data, **QUICK | {"n_chains": 1})._problem
    told = []

    def progress(chain, chain_progress):
        told.append((chain, chain_progress))

    run_chains(problem, 2, np.random.SeedSequence(1), progress=progress)
    assert [chain for chain, chain_progress in told if chain_progress is None] == [0, 1]
    seen = [
        chain_progress
        for chain, chain_progress in told
        if chain == 1 and chain_progress is not None
    ]
    assert [chain_progress.n_done for chain_progress in seen] == [1, 2, 3, 4, 5, 6]
    assert all(a.n_evaluated <= b.n_evaluated for a, b in pairwise(seen))
    bests = [chain_progress.best_log_posterior for chain_progress in seen]
    assert bests == sorted(bests)


@pytest.mark.parametrize(
    "state",
    [3, np.int64(3), np.random.SeedSequence(3), None],
    ids=["int", "numpy int", "sequence", "None"],
)
def test_whatever_users_call_a_random_state(state):
    assert isinstance(seed_sequence(state), np.random.SeedSequence)


def test_generators_as_random_states_move_on():
    """Two calls with one generator give two seeds; equal generators give equal ones."""
    for make in (np.random.default_rng, np.random.RandomState):
        generator = make(5)
        first, second = seed_sequence(generator), seed_sequence(generator)
        assert first.entropy != second.entropy
        assert seed_sequence(make(5)).entropy == first.entropy


@pytest.mark.parametrize("state", [-1, 1.5, "seed", [1, 2]])
def test_other_random_states_are_refused(state):
    with pytest.raises(InvalidSettingError, match="random_state must be None, a non-negative"):
        seed_sequence(state)


def test_no_chain_at_all_is_refused(data):
    problem = dbrm.fit(*data, **QUICK | {"n_chains": 1})._problem
    with pytest.raises(InvalidSettingError, match="n_chains must be at least 1"):
        run_chains(problem, 0, np.random.SeedSequence(1))
