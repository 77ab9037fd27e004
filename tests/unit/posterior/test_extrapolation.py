"""Tests of `dbrm.posterior.extrapolation`: what is said about rows far from the data."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import DBRMWarning, InvalidSettingError


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(3)
    return pd.DataFrame(draw.uniform(0.5, 3.0, size=(80, 2)), columns=["a", "b"])


def fitted(x, y, **options):
    quick = {"n_chains": 1, "n_populations": 4, "random_state": 1, "penalty": 1.0}
    return dbrm.fit(x, y, **quick | {"extrapolate": "follow"} | options)


@pytest.fixture(scope="module")
def growth(data):
    """An exponential law, sure of itself."""
    noise = np.random.default_rng(4).normal(size=80)
    return fitted(data, np.exp(data["a"]) + 0.01 * noise, transforms=["exp"], penalty="bic")


@pytest.fixture(scope="module")
def unsure(data):
    """Little signal: models with and without the logarithm share the mass."""
    noise = np.random.default_rng(5).normal(size=80)
    return fitted(data, np.log(data["a"]) + noise, transforms=["log_abs"])


def by_definition(posterior, rows):
    """Dropped and outside mass, model by model, from the public table of models."""
    models = posterior.models[: posterior.n_averaged]
    dropped, outside = np.zeros(len(rows)), np.zeros(len(rows))
    training = posterior._source.table
    for texts, probability in zip(models["features"], models["probability"], strict=True):
        features = [dbrm.parse_feature(text, training.names) for text in texts]
        with np.errstate(all="ignore"):
            new = [feature.evaluate(rows) for feature in features]
        old = [feature.evaluate(training) for feature in features]
        gone = [~np.isfinite(values) for values in new]
        out = [~((v >= o.min()) & (v <= o.max())) for v, o in zip(new, old, strict=True)]
        dropped += probability * np.any([np.zeros(len(rows), bool), *gone], axis=0)
        outside += probability * np.any([np.zeros(len(rows), bool), *out], axis=0)
    total = models["probability"].sum()
    return dropped / total, outside / total


def test_training_rows_are_inside(data, growth, unsure):
    for posterior in (growth, unsure):
        report = posterior.extrapolation(data)
        assert list(report.columns) == ["dropped_mass", "outside_mass", "features"]
        assert (report["dropped_mass"] == 0).all()
        assert (report["outside_mass"] == 0).all()
        assert all(names == () for names in report["features"])


def test_leaving_the_range_is_reported_with_the_feature(growth):
    report = growth.extrapolation(pd.DataFrame({"a": [2.0, 5.0], "b": [1.0, 1.0]}))
    assert report["outside_mass"].tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
    assert report["features"][0] == ()
    assert report["features"][1][0] == "exp(a)"
    assert (report["dropped_mass"] == 0).all()


def test_overflow_drops_the_models_and_their_prediction(growth):
    rows = pd.DataFrame({"a": [1000.0], "b": [1.0]})
    report = growth.extrapolation(rows)
    assert report["dropped_mass"][0] == pytest.approx(1.0)
    assert report["outside_mass"][0] == pytest.approx(1.0)


def test_shares_are_those_of_the_models_one_by_one(unsure):
    rows = pd.DataFrame({"a": [0.0, 1.0, 9.0, 0.0], "b": [1.0, 0.0, 1.0, -7.0]})
    report = unsure.extrapolation(rows)
    dropped, outside = by_definition(unsure, rows)
    np.testing.assert_allclose(report["dropped_mass"], dropped, atol=1e-12)
    np.testing.assert_allclose(report["outside_mass"], outside, atol=1e-12)
    assert 0 < report["dropped_mass"][0] < report["outside_mass"][0] <= 1
    assert np.isfinite(unsure.predict(rows, extrapolate="follow")).all()


def test_features_of_every_model_are_guarded_too(data):
    noise = np.random.default_rng(6).normal(size=80)
    posterior = fitted(data, noise, transforms=["log_abs"], always=["log_abs(b)"])
    report = posterior.extrapolation(pd.DataFrame({"a": [1.5, 1.5], "b": [0.0, 2.0]}))
    assert report["dropped_mass"].tolist() == [1.0, 0.0]
    assert report["features"][0][0] == "log_abs(b)"


@pytest.mark.parametrize("penalty", ["multiplicity", 1.0])
def test_a_model_whose_variances_overflow_leaves_the_others_their_intervals(penalty):
    """Columns near 1e-100: the variance of a product's coefficient is beyond floating point."""
    draw = np.random.default_rng(6)
    rows = pd.DataFrame(draw.uniform(1e-120, 1e-100, size=(60, 2)), columns=["a", "b"])
    y = 1e100 * rows["a"] + 0.4 * draw.normal(size=60)
    posterior = fitted(rows, y, penalty=penalty, transforms=["exp"])
    dropped = posterior.extrapolation(rows)["dropped_mass"]
    assert np.all((dropped > 0) & (dropped < 1))
    interval = posterior.predict_interval(rows)
    assert np.all(np.isfinite(interval))
    assert np.isfinite(posterior.predict_sd(rows)).all()
    assert np.mean((y >= interval[:, 0]) & (y <= interval[:, 1])) > 0.8


@pytest.fixture(scope="module")
def curved():
    """A response that levels off, found by bounded functions, and a column without effect."""
    draw = np.random.default_rng(3)
    rows = pd.DataFrame(draw.uniform(-2.0, 2.0, size=(150, 2)), columns=["x", "z"])
    y = 3.0 * np.tanh(1.5 * rows["x"]) + 0.1 * draw.normal(size=150)
    options = {"n_chains": 1, "n_populations": 3, "random_state": 1, "max_complexity": 2}
    return dbrm.fit(rows, y, transforms=["tanh", "sin"], exclude=["x", "x*x"], **options), rows


def beyond(rows, *places):
    top = rows["x"].max()
    return pd.DataFrame({"x": [top, *places], "z": 0.0})


def test_bounded_functions_hold_the_edge_of_what_they_saw(curved):
    posterior, rows = curved
    assert any("sin" in str(feature) for feature in posterior.features["feature"])
    new = beyond(rows, 2.5, 2.9)
    held = posterior.predict(new)
    np.testing.assert_allclose(held, held[0], rtol=1e-12)
    followed = posterior.predict(new, extrapolate="follow")
    assert np.ptp(followed) > 1e-3


@pytest.mark.parametrize("feature", ["square(x1)", "x1*x2", "exp(x1)"])
def test_made_features_hold_the_edge_and_follow_on_request(rng, feature):
    X = rng.uniform(1.0, 2.0, size=(80, 2))
    law = {"square(x1)": X[:, 0] ** 2, "x1*x2": X[:, 0] * X[:, 1], "exp(x1)": np.exp(X[:, 0])}
    y = 2.0 * law[feature] + 1e-3 * rng.normal(size=80)
    options = {"transforms": ["square", "exp"], "n_chains": 1, "n_populations": 2}
    options |= {"prior": "jeffreys", "penalty": "bic"}
    posterior = dbrm.fit(X, y, **options, random_state=1)
    assert posterior.inclusion(feature) > 0.9
    edge = np.array([[X[:, 0].max(), 1.5]])
    with pytest.warns(DBRMWarning, match="far outside the training range of 'x1'"):
        held = posterior.predict([[10.0, 1.5]])
    np.testing.assert_allclose(held, posterior.predict(edge), rtol=1e-3)
    followed = posterior.predict([[10.0, 1.5]], extrapolate="follow")[0]
    right = {"square(x1)": 200.0, "x1*x2": 30.0, "exp(x1)": 2.0 * np.exp(10.0)}
    assert followed == pytest.approx(right[feature], rel=0.05)


def test_a_linear_model_goes_on_linearly(rng):
    X = rng.uniform(1.0, 2.0, size=(80, 2))
    y = 3.0 * X[:, 0] + 1e-2 * rng.normal(size=80)
    posterior = dbrm.fit(X, y, n_chains=1, n_populations=2, random_state=1)
    best, share = posterior.models["features"][0], posterior.models["probability"][0]
    assert best == ("x1",)
    assert 0.5 < share < 1.0
    outside = [[2.4, 1.5]]
    assert posterior.predict(outside)[0] == pytest.approx(7.2, rel=2e-2)
    assert posterior.predict(outside)[0] > posterior.predict([[X[:, 0].max(), 1.5]])[0] + 0.5
    draws = posterior.sample_predictive(outside, 400, random_state=1)
    assert draws.mean() == pytest.approx(posterior.predict(outside)[0], rel=2e-2)


def test_terms_that_cancel_in_training_cancel_outside(rng):
    """A line and a nearly straight curve of it, with large coefficients of opposite signs."""
    x = rng.uniform(0.0, 1.0, size=(60, 1))
    y = 1e4 * (np.sin(0.02 * x[:, 0]) - 0.02 * x[:, 0]) + 1e-6 * rng.normal(size=60)
    options = {"always": ["x1", "sin_slow(x1)"], "n_chains": 1, "n_populations": 2}
    slow = dbrm.Transform("sin_slow", lambda x: np.sin(0.02 * x))
    posterior = dbrm.fit(x, y, transforms=[slow], random_state=1, **options)
    with pytest.warns(DBRMWarning, match="far outside"):
        held = posterior.predict([[3.0]])[0]
    assert y.min() - np.ptp(y) < held < y.max() + np.ptp(y)


def test_one_warning_names_the_columns_that_matter(curved):
    posterior, rows = curved
    far = beyond(rows, 50.0, -50.0).assign(z=1e6)
    with pytest.warns(DBRMWarning, match=r"2 of 3 rows .* range of 'x', ") as found:
        posterior.predict_interval(far)
    assert len(found) == 1


def test_rows_a_little_outside_are_no_reason_to_warn(curved):
    posterior, rows = curved
    posterior.predict(beyond(rows, rows["x"].max() + 0.4 * np.ptp(rows["x"])))


def test_presets_follow_as_the_paper_does(curved):
    _, rows = curved
    options = {"n_chains": 1, "n_populations": 2, "random_state": 1, "preset": "paper_text"}
    posterior = dbrm.fit(rows, np.tanh(rows["x"]), **options)
    far = beyond(rows, 20.0)
    explicit = posterior.predict(far, extrapolate="follow")
    np.testing.assert_array_equal(posterior.predict(far), explicit)


def test_a_posterior_from_a_file_holds_the_same_edges(curved, tmp_path):
    posterior, rows = curved
    posterior.save(tmp_path / "run.dbrm")
    new = beyond(rows, 2.5, 3.5)
    again = dbrm.load(tmp_path / "run.dbrm")
    np.testing.assert_array_equal(again.predict(new), posterior.predict(new))


def test_what_else_to_do_outside_is_refused(curved):
    posterior, rows = curved
    with pytest.raises(InvalidSettingError, match="'hold' or 'follow'; got extrapolate='clip'"):
        posterior.predict(rows, extrapolate="clip")
