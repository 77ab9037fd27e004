"""Tests of sums of functions with numbers inside, and of laws beside certain terms."""

import numpy as np
import pytest

from dbrm.evolution import best_with
from dbrm.evolution.sweep.numbered_sums import sweep_numbered_sums
from dbrm.evolution.sweep.ratios import sweep_plain
from dbrm.evolution.sweep.remainders import sweep_remainder
from dbrm.features import evaluate, parse_feature

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
WHOLE = {"transforms": LAWS, "max_complexity": 20, "max_depth": 8, "penalty": 3.0}

SUMS = {
    "a slow exponential beside others": lambda a, b: a - a * np.exp(b) - np.exp(b / 10),
    "a root with an exponential": lambda a, b: np.sqrt(b + np.exp(a / 2)),
}


def left_of(features, names, fresh, law):
    table = dict(zip(names, fresh.T, strict=True))
    design = np.column_stack([np.ones(len(fresh)), evaluate(features, table)[0]])
    design /= np.abs(design).max(axis=0)
    rest = law - design @ np.linalg.lstsq(design, law, rcond=None)[0]
    return float(rest @ rest) / float(np.sum((law - law.mean()) ** 2))


@pytest.mark.parametrize("name", SUMS)
def test_the_sum_is_found(rng, pose, name):
    """Its numbers are those of the law: nothing is left where it was not fitted."""
    x, fresh = rng.uniform(1, 3, (70, 2)), rng.uniform(0.5, 4, (70, 2))
    problem = pose(x, SUMS[name](*x.T), **WHOLE)
    model, _ = best_with(problem, [], sweep_numbered_sums(problem))
    assert left_of(model, problem.table.names, fresh, SUMS[name](*fresh.T)) < 1e-18
    assert sweep_numbered_sums(problem, lambda: True) == []


def test_a_law_is_found_beside_terms_with_simple_coefficients(rng, pose):
    """An approximation of it in their company tells that they are certain."""

    def law(a, b, c):
        return c + np.exp(a) + np.sin(a) / (b + c)

    x, fresh = rng.uniform(1, 3, (90, 3)), rng.uniform(0.5, 4, (90, 3))
    problem = pose(x, law(*x.T), **WHOLE)
    names = problem.table.names
    # Enough terms that the others' coefficients are right to four digits.
    texts = ["x3", "exp(x1)", "sin(x1)", "sin(x1)*power[-1](x2*x3)", "sin(x1)*power[-1](x2)"]
    texts += ["sin(x1)*power[-1](x3)", "sin(x1)*log_abs(x2*x3)", "sin(x1)*x2*x3"]
    texts += ["sin(x1)*square(log_abs(x2))", "sin(x1)*square(log_abs(x3))", "sin(x1)*x2"]
    model = [parse_feature(text, names, transforms=problem.grammar.transforms) for text in texts]
    found = sweep_remainder(problem, model)
    better, gain = best_with(problem, model, found)
    assert gain > 100.0
    assert left_of(better, names, fresh, law(*fresh.T)) < 1e-18
    # All of them are: there is nothing to look for.
    exact = pose(x, 2.0 * x[:, 2] + x[:, 0], **WHOLE)
    assert sweep_remainder(exact, exact.covariates[::2]) == []


def test_a_sum_that_changes_its_sign_has_a_function_as_its_factor(rng, pose):
    """On the log scale it looks like another factor: it is found without one."""

    def law(a, b):
        return (2.7 - a / b) / np.sin(b)

    x, fresh = rng.uniform(1, 3, (90, 2)), rng.uniform(1, 3, (90, 2))
    problem = pose(x, law(*x.T), **WHOLE)
    model, _ = best_with(problem, [], sweep_plain(problem))
    assert left_of(model, problem.table.names, fresh, law(*fresh.T)) < 1e-18
