"""Constraints: monotone effects, signs of coefficients, functions that must not be nested."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.data import Table
from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.evolution.constraints import ConstrainedPopulation, Constraints
from dbrm.features import NestingRule, evaluate, parse_feature
from dbrm.status import Status

QUICK = {"n_chains": 1, "n_populations": 4, "random_state": 1}


def simulate(seed=0, n=150):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0.1, 3.0, size=(n, 3)), columns=["a", "b", "c"])
    y = np.sin(2.0 * X["a"]) + 0.5 * X["b"] - 0.5 * X["c"] + 0.3 * rng.normal(size=n)
    return X, y


@pytest.fixture(scope="module")
def data():
    return simulate()


@pytest.mark.parametrize(
    ("text", "rises", "falls"),
    [
        ("a", True, False),
        ("a*b", True, False),
        ("tanh(a)", True, False),
        ("exp_neg_abs(a)", False, True),
        ("sin(a)", True, True),
        ("cos(b)*a", True, True),
        ("b*c", False, False),
        ("sin(b)", False, False),
    ],
)
def test_steps_of_a_feature(data, text, rises, falls):
    """In a, over 0.1 to 3 beside the other covariates of the training rows."""
    table = Table(("a", "b", "c"), data[0].to_numpy())
    features = [parse_feature(text, table.names)]
    columns = evaluate(features, table)[0]
    steps = Constraints(table, {("a",): 1}).terms(features, columns).steps
    assert (bool((steps > 0).any()), bool((steps < 0).any())) == (rises, falls)
    # The same column upside down and in other units.
    other = Constraints(table, {("a",): 1}).terms(features, 3.0 - 2.0 * columns).steps
    np.testing.assert_allclose(other, -2.0 * steps, atol=1e-12)
    down = Constraints(table, {("a",): -1}).terms(features, columns).steps
    np.testing.assert_allclose(np.sort(down.ravel()), np.sort(-steps.ravel()), atol=1e-12)


@pytest.mark.parametrize(("square", "obeys"), [(-0.4, True), (-0.8, False)])
def test_a_sum_may_rise_although_a_term_falls(square, obeys):
    """A line less a square rises up to its top, which is beyond 1 in the first case only."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 1.0, 200)
    table, y = Table(("x",), x[:, None]), x + square * x**2 + 0.001 * rng.normal(size=200)
    features = [parse_feature(text, table.names) for text in ("x", "x*x")]
    columns = evaluate(features, table)[0]
    engine, nothing = GaussianEngine(y, Jeffreys()), np.empty((200, 0))
    rule = Constraints(table, {("x",): 1})
    terms = rule.terms((), nothing), rule.terms(features, columns)
    held = ConstrainedPopulation(engine.prepare(columns), engine, columns, *terms)
    value, status = held.evaluate(np.array([True, True]))
    assert (status is Status.CONSTRAINED) != obeys
    assert np.isfinite(value) == obeys
    assert held.evaluate(np.array([True, False]))[1] is Status.OK


@pytest.mark.parametrize("family", ["gaussian", "binomial", "gamma"])
@pytest.mark.parametrize("way", ["increasing", "decreasing"])
def test_predictions_are_monotone(data, family, way):
    X, y = data
    response = {"gaussian": y, "binomial": (y > y.median()) * 1.0, "gamma": np.exp(0.3 * y)}[family]
    how = QUICK | {"n_populations": 2, "n_iter": 60, "population_size": 8}
    if family == "gamma":
        how["link"] = "inverse"
    posterior = dbrm.fit(X, response, family=family, monotone={"b": way}, **how)
    grid = pd.DataFrame({"a": 1.0, "b": np.linspace(0.1, 3.0, 40), "c": 1.5})
    steps = np.diff(posterior.predict(grid)) * (1 if way == "increasing" else -1)
    assert (steps >= -1e-9).all()
    # What the data say is found where it is allowed.
    assert (posterior.predict(grid).std() > 0.01) == (way == "increasing")


def test_without_the_constraint_the_data_decide(data):
    """Negative control: the best model falls and rises in a."""
    X, y = data
    free = dbrm.fit(X, y, **QUICK)
    grid = pd.DataFrame({"a": np.linspace(0.1, 3.0, 40), "b": 1.0, "c": 1.5})
    assert np.diff(free.predict(grid)).min() < -0.01
    held = dbrm.fit(X, y, monotone={"a": "decreasing"}, **QUICK)
    assert np.diff(held.predict(grid)).max() < 1e-9


def test_models_left_are_those_of_all_models_that_obey(data):
    """Enumeration with signs equals enumeration without, filtered by the fitted signs."""
    X, y = data[0][:25], data[1][:25]
    signs = {"b": "negative", "c": "negative"}
    free = dbrm.enumerate_models(X, y, penalty=1.0)
    held = dbrm.enumerate_models(X, y, penalty=1.0, signs=signs)
    allowed = []
    for row in free.models.itertuples():
        names = [str(feature) for feature in row.features]
        design = np.column_stack([np.ones(len(X)), *(X[name] for name in names)])
        slopes = np.linalg.lstsq(design, y, rcond=None)[0][1:]
        allowed.append(all(s < 0 for n, s in zip(names, slopes, strict=True) if n in signs))
    expected = free.models[allowed].reset_index(drop=True)
    assert held.models["features"].tolist() == expected["features"].tolist()
    np.testing.assert_allclose(held.models["log_evidence"], expected["log_evidence"])
    probability = expected["probability"] / expected["probability"].sum()
    np.testing.assert_allclose(held.models["probability"], probability)
    assert 0 < len(expected) < len(free.models)


def test_the_logarithm_of_a_covariate_is_held_too():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"income": rng.lognormal(0.0, 1.2, 200), "x": rng.normal(size=200)})
    y = -np.log(X["income"]) + 0.3 * rng.normal(size=200)
    free = dbrm.fit(X, y, **QUICK)
    assert free.covariates.set_index("covariate")["probability"]["income"] > 0.99
    held = dbrm.fit(X, y, monotone={"income": "increasing"}, **QUICK)
    assert held.covariates.set_index("covariate")["probability"]["income"] < 0.5


def test_latent_effects_and_constraints(data):
    X, y = data
    X = X.assign(site=np.arange(len(X)) % 6)
    how = {"latent": "(1 | site)", "penalty": 1.0, "signs": {"b": "negative"}}
    posterior = dbrm.enumerate_models(X, y, **how)
    assert posterior.inclusion("b") < 0.2
    assert posterior.inclusion("c") > 0.9


@pytest.mark.parametrize(
    ("names", "text", "allowed"),
    [
        (["sin"], "sin(sin(x))", False),
        (["sin"], "sin(tanh(sin(x)))", False),
        (["sin"], "sin(x)*sin(z)", True),
        (["sin"], "cos(sin(x))", True),
        (["sin", "cos"], "cos(x*sin(z))", False),
        (["step"], "step[1.5](x)", True),
        (["sin"], "sin{1.5 + 2*sin(x)}", False),
    ],
)
def test_nested_functions(names, text, allowed):
    feature = parse_feature(text, ("x", "z"))
    assert NestingRule.of(names).allows(feature) is allowed
    assert NestingRule(None).allows(parse_feature("sin(x)*z", ("x", "z")))
    assert not NestingRule(None).allows(parse_feature("sin(tanh(x))", ("x", "z")))


def test_a_run_has_no_nested_functions(data):
    X, y = data
    how = {"transforms": ["sin", "tanh"], "sweep": 0, "penalty": "aic", **QUICK}
    free = dbrm.fit(X, y, **how)
    held = dbrm.fit(X, y, forbid_nested="all", **how)
    rule = NestingRule(None)
    nested = [
        [not rule.allows(parse_feature(str(f), X)) for f in p.features["feature"]]
        for p in (free, held)
    ]
    assert any(nested[0])
    assert not any(nested[1])


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"monotone": {"a": "up"}}, InvalidSettingError, "'increasing' or 'decreasing'.*got 'up'"),
        ({"monotone": "a"}, InvalidSettingError, "monotone maps names to"),
        ({"monotone": {"z": "increasing"}}, UnknownNameError, "monotone names 'z'"),
        ({"signs": {"a": 1}}, InvalidSettingError, "'positive' or 'negative'"),
        ({"signs": {"z": "positive"}}, dbrm.errors.DBRMError, "signs names 'z'"),
        (
            {"signs": {"b": "positive"}, "algorithm": "rgmjmcmc"},
            InvalidSettingError,
            "signs= is not for algorithm='rgmjmcmc'; choose 'enumerate' or 'gmjmcmc'",
        ),
        (
            {"signs": {"b": "negative"}, "always": ["b"]},
            InvalidSettingError,
            "The model of the terms in always= alone does not obey",
        ),
        ({"forbid_nested": ["exp"]}, InvalidSettingError, "not among the functions of this run"),
        ({"forbid_nested": ["sinus"]}, UnknownNameError, "sin"),
    ],
)
def test_what_is_not_possible_is_said(data, how, error, message):
    X, y = data
    with pytest.raises(error, match=message):
        dbrm.fit(X, y, **QUICK, **how)


def test_several_coefficients_of_one_feature_have_no_sign(data):
    X, y = data
    classes = pd.cut(y, 3, labels=["low", "middle", "high"]).astype(str)
    with pytest.raises(InvalidSettingError, match="family='ordinal' has one"):
        dbrm.fit(X, classes, family="multinomial", signs={"a": "positive"}, **QUICK)


def test_survival_times_may_have_signs(data):
    """The hazard of a Cox model must not fall in c, though it does."""
    X = data[0]
    time = np.exp(X["c"] + 0.3 * np.random.default_rng(1).normal(size=len(X)))
    how = {"family": "cox", "event": np.ones(len(X)), "penalty": 1.0}
    free = dbrm.enumerate_models(X, time, **how)
    held = dbrm.enumerate_models(X, time, monotone={"c": "increasing"}, **how)
    assert free.inclusion("c") > 0.99
    assert held.inclusion("c") == 0.0


def test_a_category_without_order_is_not_monotone(data):
    X, y = data
    X = X.assign(site=np.array(["n", "s", "w"])[np.arange(len(X)) % 3])
    with pytest.raises(InvalidSettingError, match="levels have no order"):
        dbrm.fit(X, y, monotone={"site": "increasing"}, **QUICK)
