"""Tests of expressions, of their spelling, and of laws as two expressions that meet."""

import numpy as np
import pytest

from dbrm.evolution.sweep.expressions import Apply, Expressions, Leaf, Number, Pair
from dbrm.evolution.sweep.meetings import sweep_meetings
from dbrm.evolution.sweep.spelt_sums import Speller
from dbrm.features import covariate, evaluate, resolve_transforms

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
TRANSFORMS = resolve_transforms(LAWS)
NAMED = {g.name: g for g in TRANSFORMS}
WHOLE = {"transforms": LAWS, "max_complexity": 20, "max_depth": 8, "penalty": 3.0}

MEETINGS = {
    "a product": lambda a, b: (a + b) * a / (a**2 + 3 * b),
    "a product beside a number": lambda a, b: np.sin(a**3) * np.cos(b**2) - 1,
    "a root of a sum": lambda a, b: np.log(a + np.sqrt(b**2 + a)),
    "one expression": lambda a, b: np.sin(a * (a + b * a)),
}
PEELED = {
    "a part taken off": lambda a, b: np.sqrt(a) * np.cos(b) / (b + 2) + b / a,
    "a factor": lambda a, b: a * np.exp(np.sin(b) - np.sqrt(a)),
}


def value_of(expression, columns):
    """Values of an expression."""
    if isinstance(expression, Leaf):
        return columns[expression.feature.text]
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, Apply):
        return expression.transform(value_of(expression.inner, columns))
    left, right = (value_of(part, columns) for part in (expression.left, expression.right))
    signs = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
    return signs[expression.sign](left, right)


def left_of(features, table, response):
    """Share of the response's variance that the features leave."""
    design = np.column_stack([np.ones(response.size), evaluate(features, table)[0]])
    design /= np.abs(design).max(axis=0)
    rest = response - design @ np.linalg.lstsq(design, response, rcond=None)[0]
    return float(rest @ rest) / float(np.sum((response - response.mean()) ** 2))


def found_and_left(pose, rng, law, **options):
    """Features that are found, and what they leave where they were not fitted."""
    x, fresh = rng.uniform(1, 3, (60, 2)), rng.uniform(0.7, 3.5, (60, 2))
    problem = pose(x, law(*x.T), **WHOLE)
    features = sweep_meetings(problem, **options)
    table = dict(zip(problem.table.names, fresh.T, strict=True))
    return features, left_of(features, table, law(*fresh.T)) if features else 1.0


@pytest.fixture
def expressions(rng):
    columns = {"x": rng.uniform(1, 3, 16), "y": rng.uniform(1, 3, 16)}
    leaves = [Leaf(covariate(name)) for name in columns]
    made = Expressions(leaves, np.array(list(columns.values())), (1.0, 2.0), TRANSFORMS, 3_000)
    return made, columns


def test_every_expression_has_its_values_and_is_there_once(expressions):
    made, columns = expressions
    for position in range(2, len(made.values), 37):
        value = value_of(made.expression(position), columns)
        np.testing.assert_allclose(value * np.ones(16), made.values[position], rtol=1e-12)
    upright = made.values * np.sign(made.values[:, :1])
    assert len(np.unique(np.round(upright, 8), axis=0)) > 0.999 * len(made.values)
    assert np.all(np.diff(made.sizes) >= 0)


def test_all_of_three_nodes_are_there(expressions):
    made, columns = expressions
    x, y = columns.values()
    for value in (x + y, x - y, x * y, x / y, y / x, x + 2, 2 / x, np.sqrt(np.exp(y)), np.sin(x)):
        gap = np.min(np.abs(np.abs(made.values) - np.abs(value)).max(axis=1))
        assert gap < 1e-12


@pytest.mark.parametrize("expands", [True, False])
def test_spelt_sums_have_the_values_of_expressions(expressions, expands):
    made, columns = expressions
    speller = Speller(TRANSFORMS, expands=expands)
    for position in range(2, len(made.values), 53):
        total = speller.sum(made.expression(position))
        column = evaluate(list(total.features), columns)[0] @ np.array(total.weights) + total.bias
        # A root of a square, which is how some sums are spelt, has no sign.
        np.testing.assert_allclose(np.abs(column), np.abs(made.values[position]), rtol=1e-8)


def test_functions_take_out_what_is_a_scale_or_a_shift():
    x = Leaf(covariate("x"))
    inner = Pair("+", Pair("*", Number(2.0), x), Number(1.0))
    speller = Speller(TRANSFORMS, expands=True)
    exponential = speller.sum(Apply(NAMED["exp"], inner))
    assert exponential.features[0].text == "exp{2.0*x}"
    assert exponential.weights == pytest.approx((np.e,))
    logarithm = speller.sum(Apply(NAMED["log_abs"], inner))
    assert logarithm.features[0].text == "log_abs{0.5 + 1.0*x}"
    assert logarithm.bias == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("name", MEETINGS)
def test_the_law_is_found(rng, pose, name):
    assert found_and_left(pose, rng, MEETINGS[name])[1] < 1e-18


@pytest.mark.parametrize("name", PEELED)
def test_the_law_is_found_once_something_is_peeled_off(rng, pose, name):
    assert found_and_left(pose, rng, PEELED[name], peels=True)[1] < 1e-18


def test_differences_are_leaves_where_the_data_show_them(rng, pose):
    """Of four covariates, in a function that has too many nodes otherwise."""
    x = rng.uniform(1, 3, (200, 4))
    a, b, c, d = x.T
    response = a * np.sin((b - c) * d / 2) ** 2 / ((b - c) ** 2 * d)
    found = sweep_meetings(pose(x, response, **WHOLE))
    assert left_of(found, dict(zip(("x1", "x2", "x3", "x4"), x.T, strict=True)), response) < 1e-18


def test_with_noise_nothing_meets(rng, pose):
    """The control: neither noise nor a law with a little of it."""
    x = rng.uniform(1, 3, (60, 2))
    law = MEETINGS["a product"](*x.T)
    for response in (rng.normal(size=60), law * (1.0 + 1e-6 * rng.normal(size=60))):
        assert sweep_meetings(pose(x, response, **WHOLE)) == []


def test_a_pause_ends_the_search(rng, pose):
    x = rng.uniform(1, 3, (60, 2))
    assert sweep_meetings(pose(x, x[:, 0], transforms=LAWS), lambda: True) == []
