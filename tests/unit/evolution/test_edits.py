"""Tests of changes of a model, one at a time, and of the numbers inside features."""

import numpy as np
import pytest

from dbrm.evolution import best_with
from dbrm.evolution.sweep.edits import sweep_edits
from dbrm.evolution.sweep.inner_numbers import InnerNumbers, fit_inner_numbers
from dbrm.evolution.sweep.places import places
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import evaluate, modify, multiply, parse_feature, project

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
WHOLE = {"transforms": LAWS, "max_complexity": 20, "max_depth": 8, "penalty": 3.0}
TERM = "x2*exp{-0.4*x1 + 0.3*sqrt_abs(x2)}*sqrt_abs{1.0*x1 + 2.0*square(x2) + 0.5}"


def parsed(texts, problem):
    names, transforms = problem.table.names, problem.grammar.transforms
    return [parse_feature(text, names, transforms=transforms) for text in texts]


@pytest.fixture
def problem(rng, pose):
    x = rng.uniform(1, 3, (60, 3))
    return pose(x, x[:, 0] + rng.normal(size=60), **WHOLE)


def test_derivatives_by_numbers_are_those_of_differences(problem):
    (term,) = parsed([TERM], problem)
    inside = InnerNumbers(term, problem.table)
    column, slopes = inside.linearize(inside.start)
    assert inside.feature(inside.start) is term
    assert np.allclose(column, evaluate([term], problem.table)[0][:, 0], rtol=1e-13)
    assert slopes.shape[1] == 5
    for j in range(5):
        step = 1e-6 * np.eye(5)[j]
        ends = inside.value(inside.start + step), inside.value(inside.start - step)
        assert np.allclose((ends[0] - ends[1]) / 2e-6, slopes[:, j], rtol=1e-6)


def test_one_weight_of_a_power_belongs_to_the_coefficient(problem):
    """Only its scale would move with it; an exponential has no such weight."""
    (term,) = parsed([TERM], problem)
    inside = InnerNumbers(term, problem.table)
    fixed = inside.start[inside.free == 0.0]
    assert fixed.tolist() == [1.0]


def test_numbers_are_fitted_beside_others_and_rounded(rng, problem):
    """The wrong numbers do not matter, nor does what the others explain."""
    right, wrong, other = parsed(
        [
            "x2*exp{-0.5*x1}",
            "x2*exp{-0.9*x1}",
            "square(x3)",
        ],
        problem,
    )
    columns = evaluate([right, other], problem.table)[0]
    response = 3.0 + columns @ [2.0, -40.0] + 0.001 * rng.normal(size=60)
    table = problem.table
    assert fit_inner_numbers(wrong, columns[:, [1]], response, table) is right
    # Without the other one there is nothing to see.
    assert fit_inner_numbers(wrong, columns[:, :0], response, table) is not right
    # Without numbers a feature stays as it is.
    assert fit_inner_numbers(other, columns[:, :1], response, table) is other


def test_what_is_in_a_place_leads_to_the_term(problem):
    """Columns and features in every place, unchanged, with another one, and added to."""
    (term, other) = parsed([TERM, "cos(x3)"], problem)
    powers = Powers(problem.grammar.transforms)
    beside = evaluate([other], problem.table)[0]
    found = list(places(term, problem.table, powers))
    assert {place.node.text for place in found} >= {"x1", "x2", "sqrt_abs(x2)", term.text}
    for place in found:
        column = place.column[:, None]
        for feature, changed in (
            (place.node, column),
            (multiply(place.node, other), column * beside),
            (other, beside),
        ):
            expected = evaluate([place.rebuild(feature)], problem.table)[0]
            assert np.allclose(place.lift(changed), expected, rtol=1e-12)
        if place.add is None:
            continue
        for feature, added in ((other, beside), (None, 1.0)):
            made = place.add(feature, 0.1)
            expected = evaluate([made], problem.table)[0]
            ratio = place.lift(column + 0.1 * added) / expected
            # A sum is spelt up to its scale.
            assert np.allclose(ratio, ratio[0], rtol=1e-12)
    without = {variant.text for variant in found[0].variants}
    assert len(without) == 3


def test_a_sum_of_one_weight_without_its_constant_is_a_plain_function(problem):
    g, (x, *_) = problem.grammar.transforms[0], problem.covariates
    term = project(g, [x], [1.0], 0.3, weights_in_identity=True)
    place = next(places(term, problem.table, Powers(problem.grammar.transforms)))
    assert place.variants == [modify(g, x)]


CHANGES = {
    "a factor is missing": (
        lambda a, b, c: a * np.tan(b / 2) - c * a**2 / (2 * np.cos(b / 2) ** 2),
        ["x1*sin{0.5*x2}*power[-1](cos{0.5*x2})", "x3*square(x1)"],
    ),
    "a summand is missing in a root": (
        lambda a, b, c: np.sqrt(a**2 + (b * c) ** 2 + 3 * b / a),
        ["sqrt_abs{1.0*square(x1) + 1.0*square(x2*x3)}"],
    ),
    "a summand is superfluous": (
        lambda a, b, c: a / (1 + b**2 + c**2),
        ["x1*power[-1]{1.0 + 0.02*x2 + 1.0*square(x2) + 1.0*square(x3)}"],
    ),
    "two terms are one": (
        lambda a, b, c: a * np.log(c / b),
        ["x1*log_abs(x2*x3)", "x1*log_abs(x2)"],
    ),
    "the function is another one": (
        lambda a, b, c: b * np.exp(np.sqrt(a)) / c,
        ["x2*square(sqrt_abs(x1))*power[-1](x3)"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_model_lacks_is_found(rng, pose, name):
    """With one per cent noise: what is left where it was not fitted is less than the noise."""
    law, start = CHANGES[name]
    x, fresh = rng.uniform(1, 2.5, (200, 3)), rng.uniform(1, 2.5, (200, 3))
    response, truth = law(*x.T), law(*fresh.T)
    problem = pose(x, response + 0.01 * response.std() * rng.normal(size=200), **WHOLE)
    model = parsed(start, problem)
    better, gain = best_with(problem, model, sweep_edits(problem, model))
    fit = problem.engine.fit(evaluate(better, problem.table)[0])
    table = dict(zip(problem.table.names, fresh.T, strict=True))
    design = np.column_stack([np.ones(200), evaluate(better, table)[0]])
    assert gain > 0.0
    assert np.std(design @ fit.coefficients - truth) < 0.003 * truth.std()
    assert sum(feature.complexity for feature in better) <= 16


def test_there_is_nothing_to_change_beside_noise(rng, pose):
    """A change of a straight line gains by chance in less than one of a hundred tables.

    The price of one is nine nats, and some hundred are tried.
    """
    x = rng.uniform(1, 3, (300, 2))
    problem = pose(x, 2.0 * x[:, 0] + rng.normal(size=300), **WHOLE)
    assert sweep_edits(problem, list(problem.covariates[:1])) == []
    # Nor where there is no model, or no time.
    assert sweep_edits(problem, []) == []
    other = pose(x, np.sqrt(x[:, 0]) * x[:, 1], **WHOLE)
    assert sweep_edits(other, list(other.covariates[:1]))
    assert sweep_edits(other, list(other.covariates[:1]), lambda: True) == []


def test_terms_with_numbers_from_the_rows_stay(rng, pose):
    """What they are multiplied with would be standardised, too; other terms are changed."""
    x = rng.uniform(1, 3, (200, 2))
    response = np.sin(2.0 * x[:, 0]) + np.sqrt(x[:, 1]) * x[:, 0]
    transforms = ["sin[z]", "sqrt_abs", "square", "power[-1]"]
    problem = pose(x, response + 0.01 * rng.normal(size=200), **{**WHOLE, "transforms": transforms})
    standardised, other = (
        modify(problem.grammar.transforms[0], problem.covariates[0]),
        problem.covariates[1],
    )
    assert sweep_edits(problem, [standardised]) == []
    found = sweep_edits(problem, [standardised, other])
    assert "x1*sqrt_abs(x2)" in {feature.text for feature in found}
