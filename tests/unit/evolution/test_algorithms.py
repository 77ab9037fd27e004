"""Tests of `dbrm.evolution.algorithms`: names and traits."""

import pytest

from dbrm.errors import UnknownNameError
from dbrm.evolution import ALGORITHMS, AbstractChain, SearchBudget, find_algorithm


def test_every_algorithm_registers_itself():
    assert set(ALGORITHMS) == {"gmjmcmc", "rgmjmcmc", "pool-gibbs", "mjmcmc", "enumerate"}


def test_an_unknown_name_is_answered_with_those_that_exist():
    with pytest.raises(UnknownNameError, match=r"no algorithm 'gmjmc'.*'gmjmcmc'.*Known: "):
        find_algorithm("gmjmc")


def test_a_name_cannot_be_taken_twice():
    with pytest.raises(ValueError, match="name 'gmjmcmc' of this algorithm is taken"):
        ALGORITHMS.register("gmjmcmc")(object)


def test_algorithms_that_search_have_chains():
    for algorithm in ALGORITHMS.values():
        assert algorithm.searches == issubclass(algorithm, AbstractChain)


@pytest.mark.parametrize(
    ("name", "total"), [("gmjmcmc", 7), ("rgmjmcmc", 18), ("pool-gibbs", 18), ("mjmcmc", 11)]
)
def test_total_counts_populations_and_steps(name, total):
    budget = SearchBudget(15, n_populations=7, n_init=5, n_final=11)
    assert find_algorithm(name).total(budget) == total
