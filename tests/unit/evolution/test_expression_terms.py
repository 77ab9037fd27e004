"""Tests of sums of expressions of few nodes beside noise."""

import numpy as np
import pytest

from dbrm.evolution import best_with
from dbrm.evolution.sweep.expression_terms import ExpressionTerms
from dbrm.evolution.sweep.ratios import sweep_expression_sums
from dbrm.features import covariate, evaluate, resolve_transforms

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
WHOLE = {"transforms": LAWS, "max_complexity": 20, "max_depth": 8, "penalty": 3.0}

SUMS = {
    "one expression": lambda a, b: np.cos(a * (a + b)),
    "two of them": lambda a, b: np.sin(a + a**2) + 2 * np.sin(1 + b**2),
    "inside a function": lambda a, b: 1 / (np.exp(a / b) + np.exp(-a / b)),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_sum_is_found_beside_noise(rng, pose, name):
    """Hardly anything is left of the law where it was not fitted."""
    x, fresh = rng.uniform(1, 3, (200, 2)), rng.uniform(1, 3, (200, 2))
    law, truth = SUMS[name](*x.T), SUMS[name](*fresh.T)
    problem = pose(x, law + 0.01 * law.std() * rng.normal(size=200), **WHOLE)
    model, _ = best_with(problem, [], sweep_expression_sums(problem))
    columns = evaluate(model, dict(zip(problem.table.names, fresh.T, strict=True)))[0]
    design = np.column_stack([np.ones(200), columns])
    rest = truth - design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    assert rest @ rest < 1e-5 * np.sum((truth - truth.mean()) ** 2)


def test_noise_is_no_sum(rng, pose):
    """The control: nothing beats a plain covariate by much."""
    x = rng.uniform(1, 3, (60, 2))
    problem = pose(x, rng.normal(size=60), **WHOLE)
    found = sweep_expression_sums(problem)
    assert not found or best_with(problem, [covariate("x1")], found)[1] < 10.0


def test_the_best_expression_comes_first(rng, pose):
    x = rng.uniform(1, 3, (100, 2))
    problem = pose(x, x[:, 0], transforms=LAWS)
    bases = [covariate(name) for name in problem.table.names]
    made = ExpressionTerms(bases, problem.table, resolve_transforms(LAWS))
    found = made.best(5.0 - np.cos(x[:, 0] * x[:, 1]), np.ones(100), 3.0)
    assert found[0].text == "cos(x1*x2)"


def test_a_pause_ends_the_search(rng, pose):
    x = rng.uniform(1, 3, (60, 2))
    assert sweep_expression_sums(pose(x, x[:, 0], transforms=LAWS), lambda: True) == []
