"""`dbrm.fit` with priors of single coefficients, and without an intercept."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dbrm
from dbrm.cli.app import app
from dbrm.errors import InvalidSettingError

QUICK = {"n_chains": 1, "n_populations": 2, "n_iter": 40, "population_size": 5, "sweep": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(80, 3)) + 1.0, columns=["dose", "age", "noise"])
    return X, pd.Series(1.5 * X["dose"] - X["age"] + 0.5 * rng.normal(size=80), name="y")


def test_no_intercept_by_setting_formula_and_file(data, tmp_path):
    X, y = data
    setting = dbrm.enumerate_models(X, y, intercept=False, penalty=2.0)
    formula = dbrm.enumerate_models("y ~ 0 + dose + age + noise", data=X.assign(y=y), penalty=2.0)
    pd.testing.assert_frame_equal(setting.models, formula.models)
    table = setting.best_model.coefficients()
    assert table["term"].tolist() == ["dose", "age"]
    np.testing.assert_allclose(table["estimate"], [1.5, -1.0], atol=0.2)
    nothing = pd.DataFrame({"dose": [0.0], "age": [0.0], "noise": [0.0]})
    assert setting.predict(nothing)[0] == pytest.approx(0.0, abs=1e-9)
    setting.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    np.testing.assert_allclose(loaded.predict(X), setting.predict(X))
    np.testing.assert_allclose(loaded.predict_interval(X), setting.predict_interval(X))
    setting.report(tmp_path / "run.html")


def test_priors_pull_coefficients(data):
    """A prior far from the data, with a deviation like its error, ends halfway."""
    X, y = data
    free = dbrm.enumerate_models(X, y, always=["dose"], penalty=2.0)
    pulled = dbrm.enumerate_models(X, y, always={"dose": (1.0, 0.05), "age": None}, penalty=2.0)
    assert pulled.always == (dbrm.parse_feature("dose", X), dbrm.parse_feature("age", X))
    own = pulled.best_model.coefficients().set_index("term")["estimate"]["dose"]
    assert 1.05 < own < free.best_model.coefficients().set_index("term")["estimate"]["dose"] - 0.05


def test_a_search_with_both_gives_the_same_numbers_again(data):
    X, y = data
    how = {"intercept": False, "always": {"dose": (1.0, 0.5)}, "random_state": 3, **QUICK}
    first, second = dbrm.fit(X, y, **how), dbrm.fit(X, y, **how)
    pd.testing.assert_frame_equal(first.models, second.models)
    assert first.inclusion("age") > 0.9


def test_a_run_with_priors_is_resumed(data, tmp_path):
    X, y = data
    how = {"always": {"dose": (1.0, 0.5)}, "random_state": 3, **QUICK}
    first = dbrm.fit(X, y, checkpoint=tmp_path / "run", **how)
    again = dbrm.resume(tmp_path / "run")
    pd.testing.assert_frame_equal(first.models, again.models)


def test_intervals_hold_what_they_say():
    """Of 95 % intervals of new rows, over 40 tables; false alarms below one in a thousand."""
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
        slope = rng.normal(1.0, 0.5)
        y = slope * X["a"] + rng.normal(size=60)
        how = {"intercept": False, "always": {"a": (1.0, 0.5)}, "penalty": 2.0}
        how["extrapolate"] = "follow"
        posterior = dbrm.enumerate_models(X[:30], y[:30], **how)
        low, high = posterior.predict_interval(X[30:]).T
        inside.append(((low <= y[30:]) & (y[30:] <= high)).mean())
    assert 0.92 < np.mean(inside) < 0.98


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"always": {"dose": 1.0}}, r"mean and the positive standard deviation.*got 1.0"),
        ({"always": {"dose": (0, -1)}}, "positive standard deviation"),
        ({"intercept": False, "preset": "paper_text"}, "intercept=False is not in the paper"),
        ({"intercept": False, "evidence": lambda X, y: 0.0}, "cannot be combined with evidence"),
        ({"intercept": False, "device": "gpu"}, "intercept=False fits, on the CPU"),
        (
            {"always": {"dose": (0, 1)}, "family": "weibull"},
            "always= with priors works with the families binomial",
        ),
    ],
)
def test_what_is_not_possible_is_said(data, how, message):
    X, y = data
    with pytest.raises(InvalidSettingError, match=message):
        dbrm.fit(X, y.abs() + 1.0, **QUICK, **how)


def test_columns_that_depend_on_each_other_are_refused(data):
    X, y = data
    twice = X.assign(twin=2.0 * X["dose"] + X["age"])
    priors = {"dose": (0, 1), "age": (0, 1), "twin": (0, 1)}
    with pytest.raises(InvalidSettingError, match="depend on each other"):
        dbrm.enumerate_models(twice, y, always=priors)


def test_the_command_line_knows_no_intercept(data, tmp_path):
    X, y = data
    X.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    options = ["--response", "y", "--algorithm", "enumerate", "--no-intercept", "--json"]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "data.csv"), *options])
    assert result.exit_code == 0, result.output
    assert re.search(r'"y = [-\d.]+\*(dose|age)', result.stdout)
