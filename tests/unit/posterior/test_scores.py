"""Tests of `posterior.checks.scores`, `posterior.simplify` and `posterior.portable`."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss, r2_score, roc_auc_score, roc_curve

import dbrm
from dbrm.errors import ExportError, InvalidDataError, InvalidSettingError
from dbrm.posterior import confusion_table
from dbrm.posterior import roc_curve as own_curve
from dbrm.posterior.concordance import concordance_index, concordance_interval


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
    return X, pd.Series(X["a"] + 0.3 * X["b"] + rng.normal(size=90), name="y")


@pytest.fixture(scope="module")
def numbers(data):
    return dbrm.enumerate_models(*data)


@pytest.fixture(scope="module")
def classes(data):
    X, y = data
    return dbrm.enumerate_models(X, (y > 0).astype(float), family="binomial")


def values(table):
    return table.set_index("measure")["value"]


def test_scores_of_numbers(numbers, data):
    X, y = data
    found = values(numbers.checks.scores(X, y))
    predicted = numbers.predict(X)
    assert found["R²"] == pytest.approx(r2_score(y, predicted))
    assert found["root mean squared error"] == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)))
    low, high = numbers.predict_interval(X).T
    assert found["inside 95 % interval"] == pytest.approx(np.mean((y >= low) & (y <= high)))


def test_scores_of_classes(classes, data):
    X, truth = data[0], (data[1] > 0).astype(float)
    found = values(classes.checks.scores(X, truth))
    predicted = classes.predict(X)
    assert found["AUC"] == pytest.approx(roc_auc_score(truth, predicted))
    assert found["Brier score"] == pytest.approx(brier_score_loss(truth, predicted))
    assert found["log score"] == pytest.approx(log_loss(truth, predicted))
    assert found["right at 1/2"] == pytest.approx(np.mean((predicted > 0.5) == (truth == 1)))


def test_intervals_surround_the_value_and_are_the_same_every_time(numbers):
    first, again = numbers.checks.scores(), numbers.checks.scores()
    pd.testing.assert_frame_equal(first, again)
    assert np.all(first["lower"] <= first["value"])
    assert np.all(first["value"] <= first["upper"])
    assert np.all(first["lower"] < first["upper"])


def test_the_roc_curve_and_the_confusion_table(rng):
    truth = (rng.random(60) < 0.4).astype(float)
    predicted = np.round(np.clip(0.3 * truth + 0.7 * rng.random(60), 0, 1), 1)
    wrong, right = own_curve(predicted, truth)
    expected = roc_curve(truth, predicted, drop_intermediate=False)
    np.testing.assert_allclose(wrong, expected[0])
    np.testing.assert_allclose(right, expected[1])
    counts = confusion_table((predicted > 0.5).astype(int), truth.astype(int))
    assert counts.to_numpy().sum() == 60
    assert counts.loc["observed 1", "predicted 1"] == np.sum((truth == 1) & (predicted > 0.5))


def test_simplify_goes_along_the_path(numbers):
    path = numbers.path
    best = path["r2"][path["probability"].argmax()]
    for tolerance in (0.0, 0.05, 0.5):
        found = numbers.simplify(tolerance)
        enough = path[path["r2"] >= best - tolerance].iloc[0]
        assert found.features == enough["features"]
    assert len(numbers.simplify(0.99).features) == 0


@pytest.mark.parametrize("tolerance", [-0.1, 1.0])
def test_a_tolerance_is_a_share(numbers, tolerance):
    with pytest.raises(InvalidSettingError, match="share of the variation that may be lost"):
        numbers.simplify(tolerance)


def test_simplify_after_saving(numbers, tmp_path):
    numbers.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    assert loaded.simplify(0.2).features == numbers.simplify(0.2).features


def test_portable_data_are_plain(numbers):
    found = json.loads(json.dumps(numbers.portable(), allow_nan=False))
    assert [i["name"] for i in found["inputs"]] == ["a", "b", "c"]
    assert found["n_models"] == numbers.n_averaged
    assert found["share"] == 1.0


def test_few_bytes_carry_the_most_probable_models(numbers):
    found = numbers.portable(most_bytes=600)
    count = found["n_models"]
    assert 1 <= count < numbers.n_averaged
    expected = numbers.models["probability"][:count].sum() / numbers.averaged_share
    assert found["share"] == pytest.approx(expected)


def test_a_function_without_an_expression_cannot_travel(rng):
    bend = dbrm.Transform("bend", lambda x: x / (1.0 + np.abs(x)))
    x = rng.normal(size=(60, 1))
    y = bend.function(x[:, 0]) + 0.01 * rng.normal(size=60)
    posterior = dbrm.fit(x, y, transforms=[bend], n_chains=1, n_populations=2, random_state=1)
    with pytest.raises(ExportError, match="'bend' has no expression"):
        posterior.portable()


def test_a_test_set_has_two_or_three_parts(numbers, tmp_path):
    with pytest.raises(InvalidDataError, match=r"test must be \(X, y\)"):
        numbers.report(tmp_path / "run.html", test=(1,))


@pytest.fixture(scope="module")
def kinds(data):
    """Ordered and unordered classes of the same rows."""
    X, y = data
    numbers = pd.Series(np.digitize(y, [-0.5, 0.8]), name="kind")
    labels = pd.Series(np.array(["ash", "elm", "oak"])[numbers], name="kind")
    return {
        "ordinal": (dbrm.enumerate_models(X, numbers, family="ordinal"), numbers),
        "multinomial": (dbrm.enumerate_models(X, labels, family="multinomial"), labels),
    }


@pytest.mark.parametrize("family", ["ordinal", "multinomial"])
def test_scores_of_several_classes(kinds, data, family):
    posterior, truth = kinds[family]
    found = values(posterior.checks.scores(data[0], truth))
    chances = posterior.predict_proba(data[0])
    assert found["log score"] == pytest.approx(log_loss(truth, chances))
    assert found["right class"] == pytest.approx(np.mean(posterior.predict(data[0]) == truth))
    seen = np.asarray(truth)[:, None] == np.array(posterior.classes)
    assert found["Brier score"] == pytest.approx(np.mean(np.sum((chances - seen) ** 2, axis=1)))
    if family == "ordinal":
        expected = posterior.ranked_probability_score(data[0], truth)
        assert found["ranked probability score"] == pytest.approx(expected)
    else:
        assert "ranked probability score" not in found


@pytest.fixture(scope="module", params=["cox", "weibull"])
def lives(request, data):
    rng = np.random.default_rng(9)
    time = pd.Series(rng.exponential(np.exp(-data[1])), name="time")
    event = (rng.random(90) < 0.7).astype(float)
    posterior = dbrm.enumerate_models(data[0], time, event=event, family=request.param)
    return posterior, time, event


def test_scores_of_survival_times(lives, data):
    posterior, time, event = lives
    found = posterior.checks.scores(data[0], time, event=event)
    assert found["measure"].tolist() == ["concordance"]
    assert found["value"][0] == pytest.approx(posterior.concordance(data[0], time, event))
    pd.testing.assert_frame_equal(found, posterior.checks.scores())
    with pytest.raises(InvalidSettingError, match=r"may be censored\. Use posterior\.checks"):
        posterior.checks.residuals()


def test_the_interval_of_a_concordance_is_that_of_resampled_rows(rng):
    """Its width within a fifth of that of 2,000 resamples, whose own error is about 2 %."""
    risk = rng.normal(size=150)
    time, event = rng.exponential(np.exp(-risk)), rng.random(150) < 0.7
    value, lower, upper = concordance_interval(time, event, risk)
    assert value == concordance_index(time, event, risk)
    draws = rng.integers(0, 150, size=(2000, 150))
    resampled = [concordance_index(time[rows], event[rows], risk[rows]) for rows in draws]
    width = np.subtract(*np.quantile(resampled, [0.975, 0.025]))
    assert upper - lower == pytest.approx(width, rel=0.2)
