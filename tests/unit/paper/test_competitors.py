"""Tests of the competitors: rows without a random outcome agree with the paper to the digit."""

import numpy as np
import pytest

from dbrm_paper.classification import Classification
from dbrm_paper.glmnet import last_of_path
from dbrm_paper.published import CLASSIFICATION
from dbrm_paper.runs import Options


def printed_digits(example, method):
    (key,) = Classification(example).plan(Options(runs=1), (method,))
    values = Classification(example).run(key)
    tp, fn, fp, tn = (int(values[name]) for name in ("tp", "fn", "fp", "tn"))
    rates = ((tp + tn) / (tp + fn + fp + tn), fn / (2 * fn + tp), fp / (2 * fp + tn))
    row = CLASSIFICATION[example][method]
    theirs = (row.accuracy.median, row.fnr.median, row.fpr.median)
    return tuple(round(rate, 4) for rate in rates), theirs


@pytest.mark.parametrize("method", ["LASSO", "RIDGE"])
@pytest.mark.parametrize("example", ["asteroids", "breast-cancer", "spam"])
def test_penalised_regression_as_printed(raw, example, method):
    ours, theirs = printed_digits(example, method)
    assert ours == theirs


@pytest.mark.parametrize(
    "example", ["asteroids", "breast-cancer", pytest.param("spam", marks=pytest.mark.slow)]
)
def test_linear_boosting_as_printed(raw, example):
    pytest.importorskip("xgboost")
    ours, theirs = printed_digits(example, "LXGBOOST")
    assert ours == theirs


@pytest.mark.slow
def test_linear_bayesian_model_of_the_asteroids_as_printed(raw):
    """LBRM under `paper_code`, by enumeration."""
    ours, theirs = printed_digits("asteroids", "LBRM")
    assert ours == theirs


@pytest.mark.slow
def test_linear_model_as_the_paper_writes_it_is_another(raw):
    """Negative control: under `paper_text` the digits differ."""
    study = Classification("asteroids")
    (key,) = study.plan(Options(runs=1, presets=("paper_text",)), ("LBRM",))
    values = study.run(key)
    assert round(int(values["fp"]) / (2 * int(values["fp"]) + int(values["tn"])), 4) != 0.0002


@pytest.mark.parametrize("mixing", [0.0, 0.5, 1.0])
def test_the_end_of_the_path_is_a_minimum(rng, mixing):
    """Subgradient conditions of the penalised likelihood, as far as the path converges."""
    n, p = 300, 6
    x = rng.normal(size=(n, p)) * [1, 10, 0.1, 1, 1, 1] + 3
    y = (rng.random(n) < 1 / (1 + np.exp(-(x[:, 0] - 3)))).astype(float)
    found = last_of_path(x, y, mixing=mixing)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    greatest = np.abs(z.T @ (y - y.mean())).max() / n / max(mixing, 1e-3)
    penalty = greatest * 1e-4 ** ((found.n_penalties - 1) / 99)
    slopes = found.slopes * x.std(axis=0)
    residual = y - 1 / (1 + np.exp(-found.linear_predictor(x)))
    pull = z.T @ residual / n - penalty * (1 - mixing) * slopes
    used = slopes != 0
    np.testing.assert_allclose(pull[used], penalty * mixing * np.sign(slopes[used]), atol=2e-4)
    assert np.all(np.abs(pull[~used]) <= penalty * mixing + 2e-4)
    assert abs(residual.mean()) < 1e-4
