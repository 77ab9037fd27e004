"""Tests of `dbrm.evolution.operators`."""

from dataclasses import replace

import numpy as np
import pytest

from dbrm.evolution import Operators, proceed
from dbrm.evolution.algorithms.gmjmcmc import Gmjmcmc
from dbrm.evolution.operators import OperatorMemory


def teach(memory, kind, useful, made):
    numbers = np.arange(made, dtype=np.int32)
    for number in numbers:
        memory.note(int(number), kind)
    memory.learn(numbers, np.where(numbers < useful, 0.9, 0.0), 0.2)


def shares(operators):
    return (operators.mutation, operators.crossover, operators.modification, operators.projection)


def test_before_anything_is_known_the_weights_are_the_users():
    memory = OperatorMemory(Operators(1, 2, 3, 4))
    np.testing.assert_allclose(shares(memory.operators()), [0.1, 0.2, 0.3, 0.4])


def test_weights_follow_the_share_of_useful_features():
    memory = OperatorMemory(Operators(1, 1, 1, 1))
    teach(memory, 1, useful=7, made=8)
    teach(memory, 2, useful=3, made=8)
    np.testing.assert_allclose(shares(memory.operators()), np.array([5, 8, 4, 5]) / 22)


def test_no_operator_dies_and_none_is_revived():
    memory = OperatorMemory(Operators(1, 1, 1, 0))
    teach(memory, 0, useful=0, made=100_000)
    mutation, *_, projection = shares(memory.operators())
    assert mutation == pytest.approx(0.05, rel=0.06)
    assert projection == 0.0


def test_what_is_learned_diminishes():
    """The hundredth feature changes less than the first."""
    steps = []
    for made in (0, 100, 10_000):
        before, after = (OperatorMemory(Operators(1, 1, 1, 1)) for _ in range(2))
        teach(before, 0, useful=made // 2, made=made)
        teach(after, 0, useful=made // 2 + 1, made=made + 1)
        steps.append(abs(before.operators().mutation - after.operators().mutation))
    assert steps[0] > 10 * steps[1] > 100 * steps[2]


def test_features_nobody_noted_teach_nothing():
    memory = OperatorMemory(Operators(1, 4, 4, 1))
    memory.learn(np.array([1, 2], dtype=np.int32), np.ones(2), 0.2)
    np.testing.assert_allclose(shares(memory.operators()), np.array([1, 4, 4, 1]) / 10)


def test_a_chain_learns_population_by_population(pose, rng, monkeypatch):
    learned = []
    real = OperatorMemory.operators

    def spy(self):
        learned.append(real(self))
        return learned[-1]

    monkeypatch.setattr(OperatorMemory, "operators", spy)
    values = rng.normal(size=(100, 4))
    response = values[:, 0] * values[:, 1] + values[:, 2] * values[:, 3]
    problem = pose(
        values, response + 0.1 * rng.normal(size=100), operators=Operators(1, 1, 1, 1, informed=0.0)
    )
    problem = replace(
        problem,
        grammar=replace(problem.grammar, adaptive=True),
        budget=replace(problem.budget, n_populations=12),
    )
    proceed(Gmjmcmc(rng, problem)).result()
    assert len(learned) == 11
    assert learned[0] == Operators(0.25, 0.25, 0.25, 0.25, informed=0.0)
    assert len(set(learned)) > 2
    np.testing.assert_allclose([sum(shares(operators)) for operators in learned], 1.0)
