"""Tests of products found on the log scale, and of the terms with numbers that they are made of."""

import numpy as np
import pytest

from dbrm.evolution import best_with
from dbrm.evolution.sweep.factorisations import sweep_factorisations
from dbrm.evolution.sweep.numbered import factor_terms, sum_terms
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.spelling import without_logarithms
from dbrm.features import covariate, evaluate, modify, multiply, project, resolve_transforms

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
TRANSFORMS = resolve_transforms(LAWS)
WHOLE = {"transforms": LAWS, "max_complexity": 20, "max_depth": 8, "penalty": 3.0}

PRODUCTS = {
    "a root of a ratio of sums": lambda a, b: np.sqrt(b * (a + b) / (a + np.pi)),
    "waves": lambda a, b: a * np.sin(a * b / 2) ** 2 / np.sin(b / 2) ** 2,
    "a sum that changes its sign": lambda a, b: (a - 2) / (b**2 * (b + 4)),
}


def left_of(features, table, response):
    """Share of the response's variance that the best of the features leaves."""
    design = np.column_stack([np.ones(response.size), evaluate(features, table)[0]])
    design /= np.abs(design).max(axis=0)
    rest = response - design @ np.linalg.lstsq(design, response, rcond=None)[0]
    return float(rest @ rest) / float(np.sum((response - response.mean()) ** 2))


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_product_is_found(rng, pose, name):
    """Nothing is left where it was not fitted; one of them beside noise."""
    x, fresh = rng.uniform(1, 3, (70, 2)), rng.uniform(0.7, 4, (70, 2))
    law, truth = PRODUCTS[name](*x.T), PRODUCTS[name](*fresh.T)
    noise, limit = (0.01, 1e-3) if name == "waves" else (0.0, 1e-18)
    problem = pose(x, law + noise * law.std() * rng.normal(size=70), **WHOLE)
    model, _ = best_with(problem, [], sweep_factorisations(problem))
    table = dict(zip(problem.table.names, fresh.T, strict=True))
    assert left_of(model, table, truth) < limit


def test_noise_is_no_product(rng, pose):
    """The control: nothing beats a plain covariate by much."""
    x = rng.uniform(1, 3, (50, 2))
    problem = pose(x, rng.normal(size=50), transforms=LAWS, penalty=3.0)
    found = sweep_factorisations(problem)
    assert not found or best_with(problem, [covariate("x1")], found)[1] < 10.0


def test_a_pause_ends_the_search(rng, pose):
    x = rng.uniform(1, 3, (60, 2))
    assert sweep_factorisations(pose(x, x[:, 0], transforms=LAWS), lambda: True) == []


@pytest.mark.parametrize("terms", [factor_terms, sum_terms])
def test_derivatives_of_terms_are_those_of_their_columns(rng, pose, terms):
    """By finite differences; and the feature that a term is spelt as has its column."""
    x = rng.uniform(1, 3, (20, 2))
    problem = pose(x, x[:, 0], **WHOLE)
    bases, powers = [covariate("x1"), covariate("x2")], Powers(TRANSFORMS)
    for term in terms(bases, problem.table, TRANSFORMS)[::29]:
        start, step = term.start + 0.0123, 1e-6
        for j, slope in enumerate(term.slopes(start).T):
            ends = [start.copy(), start.copy()]
            ends[0][j] += step
            ends[1][j] -= step
            difference = (term.value(ends[0]) - term.value(ends[1])) / (2 * step)
            np.testing.assert_allclose(slope, difference, rtol=1e-4, atol=1e-4)
        feature = term.feature(start, powers)
        if feature is not None:
            column = evaluate([feature], problem.table)[0][:, 0]
            np.testing.assert_allclose(column, term.value(start), rtol=1e-9)


def test_logarithms_inside_an_exponential_become_factors(rng, pose):
    """They are equal where these are positive, and beyond a zero only the product goes on."""
    x1, x2 = covariate("x1"), covariate("x2")
    named = {g.name: g for g in TRANSFORMS}
    log = modify(named["log_abs"], modify(named["log_abs"], x1))
    law = project(named["exp"], [log, x2], [1.0, 0.5], weights_in_identity=True)
    found = without_logarithms(multiply(x2, law), Powers(TRANSFORMS))
    assert found.text == "x2*log_abs(x1)*exp{0.5*x2}"
    table = pose(rng.uniform(1.1, 3, (30, 2)), np.arange(30.0), transforms=LAWS).table
    columns = evaluate([found, multiply(x2, law)], table)[0]
    np.testing.assert_allclose(columns[:, 0], columns[:, 1], rtol=1e-12)
    assert without_logarithms(multiply(x1, x2), Powers(TRANSFORMS)) is None
