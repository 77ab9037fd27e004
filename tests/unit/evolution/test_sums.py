"""Tests of `dbrm.evolution.sweep.sums` and `dbrm.evolution.sweep.exhaustive`."""

from itertools import combinations

import numpy as np
import pytest

from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.sums import sweep_sums

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]


@pytest.mark.parametrize(
    ("law", "terms"),
    [
        (lambda a, b: np.sqrt(a) + np.sin(a), {"sqrt_abs(x1)", "sin(x1)"}),
        (lambda a, b: 2 * np.cos(a - b) + a / b, {"cos{1.0*x1 - 1.0*x2}", "x1*power[-1](x2)"}),
        (lambda a, b: a * b - 3 * np.exp(b) + np.log(a), {"x1*x2", "exp(x2)", "log_abs(x1)"}),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_the_terms_of_a_sum_come_first(rng, pose, law, terms, noise):
    x = rng.uniform(1, 3, (120, 2))
    response = law(*x.T) + noise * rng.normal(size=120)
    found = sweep_sums(pose(x, response, transforms=LAWS, penalty=3.0))
    assert {feature.text for feature in found[: len(terms)]} == terms


def test_a_constant_response_has_no_sums(rng, pose):
    assert sweep_sums(pose(rng.uniform(1, 3, (30, 2)), np.ones(30), transforms=LAWS)) == []


def test_the_best_sums_are_weighted_least_squares_beside_a_constant(rng):
    columns, target = rng.normal(size=(30, 5)), rng.normal(size=30)
    weight, prices = rng.uniform(0.5, 2.0, 30), np.array([0.0, 3.0, 1.0, 2.0, 0.5])
    found = best_sums(target, weight, columns, prices, 2, 4, smallest=2)

    def left(chosen):
        design = np.column_stack([np.ones(30), columns[:, chosen]]) * weight[:, None]
        return float(np.linalg.lstsq(design, target * weight, rcond=None)[1][0])

    ranked = sorted(
        combinations(range(5), 2), key=lambda c: 15.0 * np.log(left(c)) + prices[list(c)].sum()
    )
    assert [members for _, members in found] == ranked[:4]
    np.testing.assert_allclose([squares for squares, _ in found], [left(c) for c in ranked[:4]])


def test_what_is_exact_comes_before_what_only_seems_so(rng):
    """Squares cancel to nothing for thousands of approximations: the simplest are listed."""
    x = np.linspace(1, 2, 80)
    columns = np.column_stack([np.sqrt(x), np.sin(x), *(x**k for k in range(1, 9))])
    prices = np.arange(10.0)
    found = best_sums(columns[:, 0] - columns[:, 1], np.ones(80), columns, prices, 3, 30)
    assert min(found)[1][:2] == (0, 1)
    assert min(found)[0] < 1e-25
