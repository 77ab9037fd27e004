"""Tests of `dbrm.evolution.sweep.projections` and of the functions it undoes."""

import numpy as np
import pytest

import dbrm
from dbrm.evolution import sweep_features, sweep_projections
from dbrm.evolution.sweep.inverses import exponent_of, invertible_functions
from dbrm.evolution.sweep.projections import _groups
from dbrm.evolution.sweep.screening import share_left
from dbrm.features import parse_feature, resolve_transforms
from dbrm.run import runner

TRANSFORMS = ["sin", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
FUNCTIONS = invertible_functions(resolve_transforms(TRANSFORMS))


@pytest.mark.parametrize(
    ("name", "exponent"), [("sqrt_abs", 0.5), ("power[-1]", -1), ("troot", 1 / 3), ("cube", 3)]
)
def test_powers_are_recognised(name, exponent):
    (transform,) = resolve_transforms(name)
    assert exponent_of(transform) == pytest.approx(exponent, abs=1e-11)


@pytest.mark.parametrize("name", ["sin", "exp", "log_abs", "tanh", "step[q0.5]", "not"])
def test_other_functions_are_not_taken_for_powers(name):
    assert np.isnan(exponent_of(resolve_transforms(name)[0]))


def test_each_function_is_there_once():
    """Of 1/x, sqrt and the square: three single ones and three of two, none of them twice."""
    probes = np.array([0.4, 1.7])
    values = {tuple(np.round(f.value(probes), 9)) for f in FUNCTIONS}
    assert len(values) == len(FUNCTIONS) == 7


@pytest.mark.parametrize(
    "function", FUNCTIONS, ids=lambda f: ".".join(g.name for g in f.transforms)
)
def test_the_inverse_undoes_the_function(function):
    argument = np.linspace(0.3, 3.0, 9)
    np.testing.assert_allclose(function.inverse(function.value(argument)), argument, rtol=1e-12)
    difference = (function.value(argument + 1e-6) - function.value(argument - 1e-6)) / 2e-6
    np.testing.assert_allclose(function.slope(argument), difference, rtol=1e-7)


LAWS = {
    "a quotient": lambda a, b, c: 8 / (2 + a**2 + b**2),
    "a product and a root": lambda a, b, c: a / np.sqrt(1 - (b / c) ** 2),
    "an exponential": lambda a, b, c: np.exp(-0.3 * a * b),
}


def data_of(law, rng, noise=0.01):
    x = rng.uniform(1, 3, (200, 3))
    x[:, 2] += 2.2
    y = law(*x.T)
    return x, y + noise * y.std() * rng.normal(size=200)


def wider(rng):
    """Rows of which many lie outside the ranges of `data_of`."""
    x = rng.uniform(1, 3, (200, 3)) * [[1.2, 0.9, 1.2]]
    x[:, 2] += 2.2
    return x


@pytest.mark.parametrize("name", LAWS)
def test_the_first_feature_is_the_law(rng, pose, name):
    """It follows the law also where it was not fitted; no simple feature does."""
    problem = pose(*data_of(LAWS[name], rng), transforms=TRANSFORMS, penalty=5.0)
    x = wider(rng)
    table, truth = dict(zip(problem.table.names, x.T, strict=True)), LAWS[name](*x.T)
    law, *_ = sweep_projections(problem)
    assert "{" in str(law)
    assert 1 - np.corrcoef(law.evaluate(table), truth)[0, 1] < 1e-4
    if name != "an exponential":
        simple = sweep_features(problem, 3)[0]
        assert 1 - np.corrcoef(simple.evaluate(table), truth)[0, 1] > 1e-4


def test_a_law_is_found_beside_other_terms(rng, pose):
    """Without the simple features, the control, it is not."""
    x = rng.uniform(1, 3, (400, 5))
    law = np.exp(0.5 * x[:, 0] + 0.3 * x[:, 1])
    y = 3 * x[:, 2] - x[:, 3] * x[:, 4] + law
    problem = pose(x, y + 0.01 * y.std() * rng.normal(size=400), transforms=TRANSFORMS)
    simple = [parse_feature(text) for text in ("x1*x2", "x1", "x2", "x3", "x4*x5")]
    closest = [
        max(abs(np.corrcoef(f.evaluate(problem.table), law)[0, 1]) for f in laws)
        for laws in (sweep_projections(problem, simple), sweep_projections(problem))
    ]
    assert closest[0] > 1 - 1e-5 > closest[1]


def test_rows_that_cannot_be_inverted_have_no_weight(rng, pose):
    """Near zero, noise of one per cent turns the sign of a square root."""
    x = rng.uniform(0, 1, (300, 3))
    truth = np.sqrt(2 * x[:, 0] + x[:, 1])
    y = truth + 0.01 * truth.std() * rng.normal(size=300)
    y[:9] = -np.abs(y[:9]) * 1e-3
    x[:9, :2] = 1e-7 * rng.uniform(0, 1, (9, 2))
    truth = np.sqrt(2 * x[:, 0] + x[:, 1])
    problem = pose(x, y, transforms=TRANSFORMS)
    law = sweep_projections(problem)[0]
    assert np.corrcoef(law.evaluate(problem.table), truth)[0, 1] > 1 - 1e-4


@pytest.mark.parametrize("function", FUNCTIONS[:3])
def test_screening_leaves_nothing_of_the_law_itself(rng, function):
    """Of the right factor and function; of another factor it leaves something."""
    inputs = rng.uniform(1, 2, (120, 3))
    factors = np.column_stack([inputs[:, 2], inputs[:, 0] ** 3, np.ones(120)])
    y = factors[:, 0] * function.value(0.5 + inputs[:, 0] + 2 * inputs[:, 1])
    left = share_left(function, y, factors, inputs)
    assert left[0] < 1e-10
    assert left[1] > 1e-6
    y[:20] = np.nan
    assert np.all(share_left(function, y, factors, inputs) == np.inf)


def test_groups_share_covariates():
    features = [parse_feature(text) for text in ("a", "b*c", "d", "sin(c)*e", "a*a", "e")]
    assert sorted(sorted(group) for group in _groups(features)) == [[0, 4], [1, 3, 5], [2]]


def test_a_sum_with_a_common_factor_comes_apart(rng, pose):
    problem = pose(*data_of(lambda a, b, c: a * (c - 2 * b) / c, rng), transforms=TRANSFORMS)
    first = [str(feature) for feature in sweep_projections(problem)[:4]]
    assert {"x1", "x1*x2*power[-1](x3)"} <= set(first)


def test_nothing_is_looked_for_without_a_gaussian_response(rng, pose):
    x = rng.normal(size=(60, 2))
    short = {"n_populations": 1, "n_chains": 1, "sweep": 0, "random_state": 1}
    binary = dbrm.fit(x, (x[:, 0] > rng.normal(size=60)) * 1.0, family="binomial", **short)
    assert sweep_projections(binary._problem) == []
    assert sweep_projections(pose(x, np.ones(60), transforms=TRANSFORMS)) == []


@pytest.mark.parametrize(
    ("n_populations", "asked", "looks"), [(4, None, 0), (4, True, 1), (5, None, 1)]
)
def test_a_short_search_looks_for_laws_only_if_asked(rng, monkeypatch, n_populations, asked, looks):
    calls = []
    monkeypatch.setattr(runner, "sweep_projections", lambda *given: calls.append(given) or [])
    x = rng.uniform(1.0, 2.0, size=(40, 2))
    short = {"n_populations": n_populations, "n_chains": 1, "random_state": 1}
    dbrm.fit(x, x[:, 0] / x[:, 1], transforms=TRANSFORMS, sweep_projections=asked, **short)
    assert len(calls) == looks


def test_a_fit_finds_what_it_cannot_find_without(rng):
    """With three populations; without the look beforehand, the control, it does not."""
    law = LAWS["a quotient"]
    x, y = data_of(law, rng)
    new = wider(rng)
    short = {"transforms": TRANSFORMS, "n_populations": 3, "n_chains": 1, "random_state": 1}
    fits = [dbrm.fit(x, y, sweep_projections=on, **short) for on in (True, False)]
    errors = [np.max(np.abs(f.predict(new, extrapolate="follow") - law(*new.T))) for f in fits]
    assert errors[0] < 0.02 < errors[1]
