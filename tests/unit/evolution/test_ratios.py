"""Tests of `dbrm.evolution.sweep.ratios`, of its terms, and of the further looks."""

import numpy as np
import pytest

from dbrm.evolution import best_with, further_looks
from dbrm.evolution.operators import Grammar
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.evolution.sweep.law_targets import law_targets
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.ratios import sweep_ratios
from dbrm.evolution.sweep.terms import Terms, wide_terms
from dbrm.features import covariate, evaluate, parse_feature, resolve_transforms

LAWS = ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
TRANSFORMS = resolve_transforms(LAWS)

RATIOS = {
    "a mean with weights": lambda a, b, c: (a * b + b * c) / (a + 2 * c),
    "a root of a ratio": lambda a, b, c: b * np.sqrt((a + c) / (4 + c)),
    "a distance": lambda a, b, c: np.sqrt((a - b) ** 2 + c**2),
}


def left_of(features, table, response):
    """Share of the response's variance that features leave."""
    design = np.column_stack([np.ones(response.size), evaluate(features, table)[0]])
    design /= np.abs(design).max(axis=0)
    rest = response - design @ np.linalg.lstsq(design, response, rcond=None)[0]
    return float(rest @ rest) / float(np.sum((response - response.mean()) ** 2))


@pytest.mark.parametrize("name", RATIOS)
def test_the_law_is_found(rng, pose, name):
    """Without a rest where it was not fitted, too."""
    x = rng.uniform(1, 3, (120, 3))
    problem = pose(
        x, RATIOS[name](*x.T), transforms=LAWS, max_complexity=20, max_depth=8, penalty=3.0
    )
    features = sweep_ratios(problem)
    fresh = rng.uniform(0.5, 4, (120, 3))
    table = dict(zip(problem.table.names, fresh.T, strict=True))
    assert len(features) <= 16
    assert left_of(features, table, RATIOS[name](*fresh.T)) < 1e-15


def test_what_is_no_ratio_is_not_taken_for_one(rng, pose):
    """The control: noise has no law."""
    x = rng.uniform(1, 3, (80, 2))
    problem = pose(x, rng.normal(size=80), transforms=LAWS, penalty=3.0)
    model = [covariate("x1")]
    assert best_with(problem, model, sweep_ratios(problem))[1] < 10.0


def test_a_factor_of_all_covariates_leaves_no_sum(rng, pose):
    """A response that is a product of powers, beside noise: nothing is left for a ratio of sums."""
    x = rng.uniform(1, 3, (120, 2))
    response = x[:, 0] ** 2 / x[:, 1] + 0.01 * rng.normal(size=120)
    problem = pose(x, response, transforms=LAWS, penalty=3.0)
    assert {len(target.bases) for target in law_targets(problem, 4)} <= {1, 2}
    assert left_of(sweep_ratios(problem), problem.table, response) < 1e-3


def test_a_ratio_with_nothing_above_has_no_logarithm(rng, pose):
    """Nor an exponential: they would be functions of nothing."""
    x = rng.uniform(1, 3, (150, 3))
    response = np.log(3.0 / (1 + x[:, 0] * x[:, 1] / x[:, 2])) + 0.01 * rng.normal(size=150)
    problem = pose(x, response, transforms=LAWS, max_complexity=20, max_depth=8, penalty=3.0)
    assert left_of(sweep_ratios(problem), problem.table, response) < 1e-2


def test_a_pause_ends_the_search(rng, pose):
    x = rng.uniform(1, 3, (60, 3))
    problem = pose(x, x[:, 0] / (x[:, 1] + x[:, 2]), transforms=LAWS)
    assert sweep_ratios(problem, lambda: True) == []


def test_terms_have_sums_of_two_and_products_of_three(pose, rng):
    x = rng.uniform(1, 3, (50, 3))
    problem = pose(x, x[:, 0], transforms=LAWS)
    bases = [covariate(name) for name in problem.table.names]
    grammar = Grammar(TRANSFORMS, 5, 10, 4, OptimizeThenTransform())
    terms = Terms.of(wide_terms(bases, TRANSFORMS), grammar.admits, problem.table, 500)
    texts = {feature.text for feature in terms.features}
    assert {"square{1.0*x1 - 1.0*x2}", "x1*power[-1](x2*x3)", "x1*x2*cos(x3)"} <= texts
    assert len(texts) == len(terms.features)
    np.testing.assert_allclose(np.max(np.abs(terms.columns), axis=0), 1.0)


@pytest.mark.parametrize("exponent", [-1.0, 2.0, 0.5, -0.5, -2.0])
def test_a_sum_to_a_power(rng, exponent):
    x = rng.uniform(1, 3, (30, 2))
    parts = [covariate("x1"), covariate("x2")]
    feature = Powers(TRANSFORMS).of_sum(parts, [1.0, 2.0], 0.5, exponent)
    value = feature.evaluate({"x1": x[:, 0], "x2": x[:, 1]})
    np.testing.assert_allclose(value, (0.5 + x[:, 0] + 2.0 * x[:, 1]) ** exponent)


def test_looks_are_for_the_functions_of_laws(rng, pose):
    x = rng.uniform(1, 3, (50, 2))
    assert further_looks(pose(x, x[:, 0], transforms=LAWS), 4)
    assert not further_looks(pose(x, x[:, 0], transforms=["sin", "tanh"]), 4)


def test_features_that_help_gain(rng, pose):
    x = rng.uniform(1, 3, (80, 2))
    problem = pose(x, x[:, 0] / x[:, 1] + 0.01 * rng.normal(size=80), transforms=LAWS)
    law, other = parse_feature("x1*power[-1](x2)"), parse_feature("sin(x1)")
    model, gain = best_with(problem, [other], [law])
    assert (model, gain > 50.0) == ([law], True)
    model, gain = best_with(problem, [law], [other])
    assert (model, gain < 3.0) == ([law], True)
