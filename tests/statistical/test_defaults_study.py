"""The study of defaults scores what it should: `benchmarks/defaults*.py` in miniature."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import dbrm

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = ("defaults", "defaults_data", "defaults_page", "defaults_scores", "page")
QUICK = {"n_chains": 1, "n_populations": 2, "sweep": 2, "random_state": 1}


@pytest.fixture
def modules(monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("the benchmarks are not here")
    monkeypatch.syspath_prepend(str(FOLDER))
    yield {name: import_module(name) for name in NAMES}
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def planes():
    """A plane in two of four covariates that no search can miss."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(120, 4)), columns=["x1", "x2", "x3", "x4"])
    return X, (X["x1"] - X["x2"]).to_numpy() + 0.1 * rng.normal(size=120)


def test_the_right_truth_scores_well_and_a_wrong_one_badly(modules, planes):
    scores = modules["defaults_scores"]
    posterior = dbrm.fit(*planes, transforms=["sin"], **QUICK)
    right = scores.score_inclusion(posterior, ("x1", "x2"), list(planes[0]))
    assert (right["power"], right["false"], right["fdr"]) == (1.0, 0, 0.0)
    assert right["brier"] < 0.1
    wrong = scores.score_inclusion(posterior, ("x1", "x3*x4"), list(planes[0]))
    assert (wrong["power"], wrong["false"], wrong["fdr"]) == (0.5, 1, 0.5)
    # A true feature at zero and a false one at one.
    assert wrong["brier"] == pytest.approx(2.0, abs=0.1)
    assert wrong["covariate_log"] > 10 * right["covariate_log"]


def test_a_relative_of_the_truth_makes_a_group_true(modules, planes):
    """A sine for which its covariate stands in: false as a feature, true with its relatives."""
    X = planes[0] / 4.0
    sine = np.sin(X["x1"])
    assert np.corrcoef(sine, X["x1"])[0, 1] > 0.95
    y = sine + 0.3 * np.random.default_rng(6).normal(size=len(X))
    posterior = dbrm.fit(X, y, transforms=["sin"], **QUICK)
    assert posterior.best_model.features == ("x1",)
    scores = modules["defaults_scores"]
    own = scores.score_groups(posterior, ("sin(x1)",), X)
    single = scores.score_inclusion(posterior, ("sin(x1)",), list(X))
    high = len(scores.EDGES) - 2
    assert (own[f"group{high}_n"], own[f"group{high}_true"]) == (1, 1)
    assert sum(single[f"feature{i}_true"] for i in range(2, high + 1)) == 0
    # And what has nothing to do with it stays false.
    assert scores.score_groups(posterior, ("x2",), X)[f"group{high}_true"] == 0


def test_calibration_error_is_the_gap_between_claimed_and_realised(modules):
    scores = modules["defaults_scores"]
    claimed, happened = np.array([0.01, 0.6, 0.6, 0.9]), np.array([0, 1, 0, 1])
    found = pd.DataFrame([scores.reliability("feature", claimed, happened)] * 3)
    # Bins (0.5, 0.75] and (0.75, 0.95] of two and one features; 0.01 is below all bins.
    assert scores.calibration_error(found, "feature") == pytest.approx((0.2 + 0.1) / 3)


def test_log_density_is_that_of_the_predictive_distribution(modules, planes):
    """The derivative of the cumulative distribution, at rows the posterior has not seen."""
    X, y = planes
    posterior = dbrm.fit(X[:80], y[:80], transforms=["sin"], **QUICK)
    new, values = X[80:], y[80:]
    rows, step = posterior.rows(new, values), 1e-5
    slope = posterior.checks.cdf(rows, values + step) - posterior.checks.cdf(rows, values - step)
    density = modules["defaults_scores"].log_density(posterior, new, values)
    np.testing.assert_allclose(density, np.log(slope / (2 * step)), atol=1e-4)
    assert density.mean() > scipy.stats.norm.logpdf(values, scale=y.std()).mean()


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_simulated_truths_can_be_expressed_and_are_the_same_again(modules, family):
    data = modules["defaults_data"]
    numbers = {"nothing": range(1), "few": range(1, 4), "many": range(4, 10)}
    for number in range(6):
        truth, again = (data.simulate(family, number) for _ in range(2))
        pd.testing.assert_frame_equal(truth.X, again.X)
        np.testing.assert_array_equal(truth.y, again.y)
        assert 40 <= len(truth.X) <= 2000
        assert len(truth.y_new) == len(truth.X_new) == data.NEW_ROWS
        assert len(truth.features) in numbers[truth.kind]
        for text in truth.features:
            assert dbrm.parse_feature(text, names=list(truth.X)).complexity <= 3


def test_halves_are_of_about_the_same_size(modules):
    """Each of 800 truths is in either with probability one half: false alarm 5e-5."""
    data = modules["defaults_data"]
    halves = [data.half(family, i) for family in data.FAMILIES for i in range(data.TRUTHS)]
    assert abs(halves.count("choose") - 400) < 4 * np.sqrt(200)


def test_a_run_goes_on_where_it_ended_and_has_a_page(modules, tmp_path, monkeypatch):
    study, page = modules["defaults"], modules["defaults_page"]
    monkeypatch.setattr(study, "FILE", tmp_path / "defaults.csv")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    done = []
    scores = dict.fromkeys(study.SCORES, 1.0) | {"kind": "few"}
    monkeypatch.setattr(study.Task, "run", lambda task: done.append(task) or scores)
    tasks = list(study.plan("choose", ["gaussian", "gamma"], list(study.CHOICES)))[:60]
    study.run(iter(tasks[:5]), deadline=float("inf"))
    study.run(iter(tasks), deadline=float("inf"))
    assert done == tasks
    results = pd.read_csv(study.FILE)
    assert len(results) == len(tasks)
    study.write_page(results)
    text = (tmp_path / "defaults.md").read_text(encoding="utf-8")
    assert "### Gaussian response" in text
    assert "zellner-siow, adaptive" in text
    assert (tmp_path / "defaults.png").stat().st_size > 1000


def test_differences_are_paired(modules):
    page = modules["defaults_page"]
    rows = [(number, choice, number + (choice == "b")) for number in range(4) for choice in "ab"]
    results = pd.DataFrame(rows, columns=["number", "choice", "score"])
    assert page.difference(results, "score", "b", "a") == "+1.000 ± 0.000"
    assert page.difference(results, "score", "a", "a") == ""
    # Truths that only one of them has seen do not count.
    fewer = results.assign(score=results["score"] + 100.0 * (results["number"] == 0)).drop(index=0)
    assert page.difference(fewer, "score", "b", "a") == "+1.000 ± 0.000"
    assert page.difference(results[results["choice"] == "b"], "score", "b", "a") == ""
