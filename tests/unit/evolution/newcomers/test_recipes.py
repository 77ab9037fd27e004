"""Tests of `dbrm.evolution.newcomers.recipes`: steps from a population, and their columns."""

import numpy as np
import pytest

from dbrm.evolution.newcomers.recipes import (
    complexity_of,
    draw_recipes,
    feature_of,
    fill_columns,
    find_bases,
)
from dbrm.evolution.operators import Operators, Parents
from dbrm.features import evaluate, fit_knots, parse_feature

NAMES = ("x1", "x2", "x3")


@pytest.fixture
def parents(rng, pose):
    def make(*population, **settings):
        values = rng.uniform(0.5, 2.0, size=(80, 3))
        problem = pose(values, rng.normal(size=80), **settings)
        features = [fit_knots(parse_feature(text, NAMES), problem.table) for text in population]
        return problem, Parents(features, np.ones(len(features)), problem.covariates)

    return make


def drawn(rng, problem, parents, count=3_000):
    bases = find_bases(rng, parents, problem.grammar, 5)
    recipes = draw_recipes(rng, bases, problem.grammar, count)
    return bases, recipes


def texts(recipes, bases, grammar):
    return {feature_of(recipe, bases, grammar).canonical for recipe in recipes.tolist()}


def test_columns_of_recipes_are_those_of_their_features(rng, parents):
    transforms = ("tanh", "sin[z]", "step[q0.5]")
    problem, given = parents("x1*x2", "tanh(x1*x3)", "x2*sin[z](x3)", transforms=transforms)
    bases, recipes = drawn(rng, problem, given, 400)
    values, _ = evaluate(bases.features, problem.table)
    columns = np.empty((len(recipes), len(values)))
    fill_columns(columns, recipes, np.ascontiguousarray(values.T), problem.grammar.transforms)
    features = [feature_of(recipe, bases, problem.grammar) for recipe in recipes.tolist()]
    fitted = [fit_knots(feature, problem.table) for feature in features]
    expected, _ = evaluate(fitted, problem.table)
    # Centre and scale of standardised arguments are rounded to four digits in features only.
    np.testing.assert_allclose(columns.T, expected, atol=2e-3)
    simple = [j for j, feature in enumerate(features) if "sin" not in str(feature)]
    np.testing.assert_allclose(columns[simple].T, expected[:, simple], rtol=1e-12)
    np.testing.assert_array_equal(
        complexity_of(recipes, bases), [feature.complexity for feature in features]
    )


@pytest.mark.parametrize(
    ("population", "step"),
    [
        ("x1*x2*x3", "x1*x3"),  # drop a factor
        ("x1*x2", "x2*x3"),  # replace a factor
        ("x1*x2", "x1*x1*x2"),  # raise an exponent
        ("tanh(x1*x2)", "x1*x2"),  # take a function off
        ("tanh(x1)", "sin(x1)"),  # exchange a function
        ("tanh(x1)", "tanh(x1*x3)"),  # multiply inside a function
        ("tanh(x1*x2)", "tanh(x1*x3)"),  # replace inside a function
        ("x3*tanh(x1*x2)", "x3*tanh(x1)"),  # drop inside a function that is a factor
        ("x3*tanh(x1)", "x3*sin(x1)"),  # exchange a function that is a factor
        ("x1*x2", "tanh(x1*x2)"),  # apply a function
        ("x1", "x1*tanh(x2)"),  # multiply by a function
    ],
)
def test_steps_from_a_population(rng, parents, population, step):
    problem, given = parents(population, transforms=("tanh", "sin"))
    bases, recipes = drawn(rng, problem, given)
    assert parse_feature(step, NAMES).canonical in texts(recipes, bases, problem.grammar)


@pytest.mark.parametrize(
    ("operators", "banned"),
    [(Operators(1, 0, 1, 0), "*"), (Operators(1, 1, 0, 0), "tanh")],
)
def test_operators_without_weight_make_nothing(rng, parents, operators, banned):
    problem, given = parents("x1", transforms=("tanh",), operators=operators)
    bases, recipes = drawn(rng, problem, given)
    assert len(recipes)
    assert not any(banned in text for text in texts(recipes, bases, problem.grammar))


def test_each_recipe_is_drawn_once(rng, parents):
    problem, given = parents("x1*x2", transforms=("tanh",))
    _, recipes = drawn(rng, problem, given)
    assert len(np.unique(recipes, axis=0)) == len(recipes)
