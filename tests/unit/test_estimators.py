"""Tests of the estimators: the same as `dbrm.fit`, in scikit-learn's clothes."""

import inspect
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import MISSING, fields

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import dbrm
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.run.settings import Settings

QUICK = {"n_chains": 1, "n_populations": 3, "random_state": 0, "transforms": ["tanh"]}
# Where several are fitted, and what they find is not the question.
QUICKER = QUICK | {"sweep": 0, "n_iter": 50}


@pytest.fixture
def data(rng):
    x = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    return x, 2 * x["a"] + 0.3 * rng.normal(size=40)


def test_parameters_are_the_settings_with_their_defaults():
    settings = {field.name: field.default for field in fields(Settings)}
    assert MISSING not in settings.values()
    signature = inspect.signature(dbrm.DBRMRegressor).parameters
    settings["warm_start"] = False
    assert {name: p.default for name, p in signature.items()} == settings
    assert dbrm.DBRMRegressor().get_params() == settings
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in signature.values())


def test_the_estimator_is_fit(data):
    x, y = data
    model = dbrm.DBRMRegressor(**QUICK)
    assert model.fit(x, y) is model
    posterior = dbrm.fit(x, y, **QUICK)
    pd.testing.assert_frame_equal(model.posterior_.models, posterior.models)
    np.testing.assert_array_equal(model.predict(x), posterior.predict(x))
    np.testing.assert_array_equal(
        model.predict_interval(x, level=0.8), posterior.predict_interval(x, level=0.8)
    )
    np.testing.assert_array_equal(
        model.predict_quantiles(x, [0.1, 0.5]), posterior.predict_quantiles(x, [0.1, 0.5])
    )
    np.testing.assert_array_equal(
        model.sample_predictive(x, 5, 1), posterior.sample_predictive(x, 5, 1)
    )


def test_attributes_are_those_of_scikit_learn(data):
    x, y = data
    model = dbrm.DBRMRegressor(**QUICK).fit(x, y)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    plain = dbrm.DBRMRegressor(**QUICK).fit(x.to_numpy(), y)
    assert not hasattr(plain, "feature_names_in_")
    assert is_regressor(model)


def test_clone_and_params(data):
    model = dbrm.DBRMRegressor(penalty=3.0, **QUICK)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert twin.set_params(n_chains=2).n_chains == 2
    assert model.n_chains == 1


def test_settings_are_checked_in_fit_only(data):
    model = dbrm.DBRMRegressor(n_chains=0)
    with pytest.raises(InvalidSettingError, match="n_chains must be an integer of at least 1"):
        model.fit(*data)


def test_a_fitted_estimator_survives_pickling(data):
    x, y = data
    model = dbrm.DBRMRegressor(**QUICK).fit(x, y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 (our own)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_it_works_inside_scikit_learn(data):
    x, y = data
    pipeline = make_pipeline(StandardScaler(), dbrm.DBRMRegressor(**QUICKER))
    assert np.all(cross_val_score(pipeline, x, y, cv=3) > 0.8)
    search = GridSearchCV(dbrm.DBRMRegressor(**QUICKER), {"penalty": [1.0, "bic"]}, cv=2)
    assert search.fit(x, y).best_estimator_.score(x, y) > 0.8


def test_weights_and_offset_are_passed_on(data, rng):
    x, y = data
    weights = rng.integers(1, 3, size=40)
    model = dbrm.DBRMRegressor(**QUICK).fit(x, y, sample_weight=weights)
    posterior = dbrm.fit(x, y, sample_weight=weights, **QUICK)
    pd.testing.assert_frame_equal(model.posterior_.models, posterior.models)
    shifted = dbrm.DBRMRegressor(**QUICK).fit(x, y + 5.0, offset=np.full(40, 5.0))
    np.testing.assert_allclose(
        shifted.predict(x), dbrm.DBRMRegressor(**QUICK).fit(x, y).predict(x), atol=1e-8
    )


def test_not_fitted_yet(data):
    with pytest.raises(NotFittedError):
        dbrm.DBRMRegressor().predict(data[0])


# ------------------------------------------------------------------------- classifier


@pytest.fixture
def classes(rng):
    x = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    noise = rng.logistic(size=80)
    return x, pd.Series(np.where(2 * x["a"] + noise > 0, "yes", "no"), name="answer")


def test_the_classifier_has_the_settings_and_a_threshold():
    settings = {field.name: field.default for field in fields(Settings)} | {"warm_start": False}
    own = {"family": "binomial", "eta": 0.5, "class_weight": None}
    assert dbrm.DBRMClassifier().get_params() == settings | own
    assert dbrm.DBRMFeatures().get_params() == settings | {"threshold": 0.5}
    with pytest.raises(TypeError, match=r"argument 'etta' \(did you mean 'eta'"):
        dbrm.DBRMClassifier(etta=0.3)


def test_two_classes_are_a_binomial_response(classes):
    x, labels = classes
    model = dbrm.DBRMClassifier(**QUICKER).fit(x, labels)
    assert is_classifier(model)
    assert model.classes_.tolist() == ["no", "yes"]
    posterior = dbrm.fit(x, labels == "yes", family="binomial", **QUICKER)
    probability = model.predict_proba(x)
    np.testing.assert_array_equal(probability[:, 1], posterior.predict(x))
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(x) == "yes", probability[:, 1] > 0.5)
    strict = dbrm.DBRMClassifier(eta=0.9, **QUICKER).fit(x, labels)
    np.testing.assert_array_equal(strict.predict(x) == "yes", probability[:, 1] > 0.9)


def test_more_classes_are_a_multinomial_response(rng):
    centres = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 20, axis=0)
    x, labels = centres + 1.5 * rng.normal(size=(60, 2)), np.repeat([3, 1, 2], 20)
    model = dbrm.DBRMClassifier(**QUICKER).fit(x, labels)
    assert model.classes_.tolist() == [1, 2, 3]
    assert model.posterior_.family.name == "multinomial"
    assert model.posterior_.classes == (1, 2, 3)
    probability = model.predict_proba(x)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(x), model.posterior_.predict(x))
    assert model.score(x, labels) > 0.75
    words = dbrm.DBRMClassifier(**QUICKER).fit(x, np.array(["b", "c", "a"])[labels - 1])
    assert words.posterior_.classes == ("a", "b", "c")
    assert set(words.predict(x)) == {"a", "b", "c"}


def test_ordered_classes_keep_their_order(rng):
    x = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    steps = np.digitize(x["a"] + rng.normal(size=80), [-0.7, 0.7])
    order = ["small", "middle", "big"]
    y = pd.Categorical(np.array(order)[steps], categories=order, ordered=True)
    model = dbrm.DBRMClassifier(family="ordinal", **QUICKER).fit(x, pd.Series(y))
    assert model.classes_.tolist() == order
    assert model.predict_proba(x).shape == (80, 3)
    assert set(model.predict(x)) <= set(order)
    with pytest.raises(InvalidDataError, match="ordered category"):
        dbrm.DBRMClassifier(family="ordinal", **QUICKER).fit(x, np.array(order)[steps])


@pytest.mark.parametrize("eta", [0.0, 1.0, -1.0])
def test_an_impossible_threshold_is_refused(classes, eta):
    with pytest.raises(InvalidSettingError, match="eta must be strictly between 0 and 1"):
        dbrm.DBRMClassifier(eta=eta).fit(*classes)


def test_one_class_only_is_refused(data):
    with pytest.raises(InvalidDataError, match="at least two classes"):
        dbrm.DBRMClassifier().fit(data[0], ["yes"] * 40)


# ------------------------------------------------------------------------- features


@pytest.fixture
def product(rng):
    x = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    return x, x["a"] * x["b"] + 0.1 * rng.normal(size=60)


def test_features_above_the_threshold_come_out(product):
    x, y = product
    model = dbrm.DBRMFeatures(**QUICK).fit(x, y)
    table = model.posterior_.features
    names = model.get_feature_names_out().tolist()
    assert names == table["feature"][table["inclusion"] > 0.5].tolist()
    assert "a*b" in names
    np.testing.assert_allclose(model.transform(x)[:, names.index("a*b")], x["a"] * x["b"])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_features_come_in_the_chosen_frame(product, kind):
    model = dbrm.DBRMFeatures(**QUICK).set_output(transform=kind)
    frame = model.fit_transform(*product)
    assert type(frame).__module__.startswith(kind)
    assert list(frame.columns) == model.get_feature_names_out().tolist()


def test_features_serve_another_model(product):
    x, y = product
    pipeline = make_pipeline(dbrm.DBRMFeatures(**QUICK), LinearRegression())
    assert cross_val_score(pipeline, x, y, cv=3).min() > 0.9


def test_some_feature_comes_out_even_if_none_is_probable(rng):
    x, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = dbrm.DBRMFeatures(threshold=0.99, **QUICK).fit(x, y)
    assert model.transform(x).shape == (30, 1)
    kept = dbrm.DBRMFeatures(threshold=0.99, always=["x2"], **QUICK).fit(x, y)
    assert kept.get_feature_names_out().tolist() == ["x2"]
    with pytest.raises(InvalidSettingError, match="threshold must be at least 0 and below 1"):
        dbrm.DBRMFeatures(threshold=1.0).fit(x, y)


# ------------------------------------------------------------------------- all of them


def test_weights_are_repeated_rows(data, rng):
    """The search takes the same path, so that the models are the same as well."""
    x, y = data
    weights = rng.integers(0, 4, size=40)
    order = rng.permutation(40)
    weighted = dbrm.fit(x.iloc[order], y[order], sample_weight=weights[order], **QUICK)
    repeated = dbrm.fit(x.loc[x.index.repeat(weights)], y.repeat(weights), **QUICK)
    pd.testing.assert_frame_equal(weighted.models, repeated.models)
    np.testing.assert_array_equal(weighted.predict(x), repeated.predict(x))


FAST = {"n_chains": 1, "n_populations": 2, "n_iter": 20, "sweep": 0, "transforms": ["tanh"]}
# Skips unless SciPy was loaded for other kinds of arrays: see the test in a process of its own.
ARRAY_API = "check_array_api_input"
CHECKS = [
    (estimator, check)
    for kind in (dbrm.DBRMRegressor, dbrm.DBRMClassifier, dbrm.DBRMFeatures)
    for estimator, check in estimator_checks_generator(kind(population_size=5, **FAST))
    if getattr(check, "func", check).__name__ != ARRAY_API
]


@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKS,
    ids=[f"{type(kind).__name__}-{getattr(c, 'func', c).__name__}" for kind, c in CHECKS],
)
@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


def test_scikit_learn_s_check_of_other_arrays():
    """Its check with arrays of another library, which SciPy must allow before it is loaded."""
    program = f"""
import dbrm
from sklearn.utils.estimator_checks import estimator_checks_generator
for kind in (dbrm.DBRMRegressor, dbrm.DBRMClassifier, dbrm.DBRMFeatures):
    for estimator, check in estimator_checks_generator(kind(population_size=5, **{FAST!r})):
        if getattr(check, "func", check).__name__ == {ARRAY_API!r}:
            check(estimator)
            print("checked", kind.__name__)
"""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split()[1::2] == ["DBRMRegressor", "DBRMClassifier", "DBRMFeatures"], (
        done.stderr
    )


@pytest.fixture
def hidden_law(rng):
    x = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    return x, np.tanh(x["a"] * x["b"]) * x["c"] + 0.02 * rng.normal(size=80)


def test_warm_start_goes_on_from_what_was_found(hidden_law):
    """Two populations without a sweep cannot find the law by itself; a control shows it."""
    x, y = hidden_law
    law, short = "tanh(a*b)*c", {"n_populations": 2, "sweep": 0, "n_chains": 1}
    options = {"transforms": ["tanh"], "random_state": 3}
    found = dbrm.DBRMRegressor(warm_start=True, n_populations=20, n_chains=2, **options).fit(x, y)
    assert found.posterior_.inclusion(law) > 0.9
    assert found.set_params(**short).fit(x, y).posterior_.inclusion(law) > 0.9
    assert dbrm.DBRMRegressor(**short, **options).fit(x, y).posterior_.inclusion(law) < 0.1


def test_without_warm_start_a_second_fit_is_the_first_again(data):
    x, y = data
    model = dbrm.DBRMRegressor(**QUICK).fit(x, y)
    first = model.posterior_.models
    pd.testing.assert_frame_equal(model.fit(x, y).posterior_.models, first)
    again = model.set_params(warm_start=True).fit(x, y).posterior_
    assert again.record.seed is None


def test_classifiers_and_transformers_start_warm_too(classes):
    x, labels = classes
    for kind in (dbrm.DBRMClassifier, dbrm.DBRMFeatures):
        y = labels if kind is dbrm.DBRMClassifier else (labels == "yes").astype(float)
        model = kind(warm_start=True, **QUICK).fit(x, y)
        before = model.posterior_.features_above(0.5)
        assert set(before) <= set(model.fit(x, y).posterior_.features_above(0.1))


def test_metadata_reach_the_fit_by_routing(data):
    """Weights of zero for half of the rows, through a pipeline."""
    x, y = data
    weights = np.repeat([1.0, 0.0], 20)
    with config_context(enable_metadata_routing=True):
        step = dbrm.DBRMRegressor(**QUICK).set_fit_request(sample_weight=True)
        pipe = make_pipeline(step).fit(x, y, sample_weight=weights)
        routed = pipe[-1].posterior_.models["log_evidence"]
    for rows, is_same in ((20, True), (40, False)):
        direct = dbrm.fit(x.head(rows), y.head(rows), **QUICK).models["log_evidence"]
        assert np.allclose(routed.head(10), direct.head(10)) == is_same


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def test_the_fit_is_the_same_for_every_kind_of_table(rng):
    """Values that float32 holds exactly; same names, same numbers, same bits."""
    values = rng.integers(-99, 99, size=(40, 3)) / 16.0
    y = values[:, 0] * values[:, 1] + rng.normal(size=40)
    names = ["x1", "x2", "x3"]
    frame = pd.DataFrame(values, columns=names)
    tables = {
        "C-ordered": np.ascontiguousarray(values),
        "F-ordered": np.asfortranarray(values),
        "read-only": read_only(values),
        "strided": np.repeat(values, 2, axis=1)[:, ::2],
        "float32": values.astype(np.float32),
        "pandas": frame,
        "pandas float32": frame.astype(np.float32),
        "polars": pl.DataFrame({name: values[:, j] for j, name in enumerate(names)}),
        "arrow": pa.table({name: values[:, j] for j, name in enumerate(names)}),
    }
    expected = dbrm.fit(values, y, **QUICK)
    for kind, table in tables.items():
        found = dbrm.fit(table, y, **QUICK)
        pd.testing.assert_frame_equal(found.models, expected.models, check_exact=True, obj=kind)
        np.testing.assert_array_equal(found.predict(table), expected.predict(values), err_msg=kind)


@pytest.mark.parametrize("estimator", [dbrm.DBRMRegressor, dbrm.DBRMClassifier, dbrm.DBRMFeatures])
def test_missing_values_are_allowed_unless_they_are_refused(data, estimator):
    x, y = data
    x, y = x.assign(b=x["b"].where(x["c"] > 0)), (y > 0).astype(float)
    for settings, allowed in [
        ({}, True),
        ({"missing": "error"}, False),
        ({"preset": "paper_text"}, False),
        ({"preset": "paper_text", "missing": "indicator"}, True),
    ]:
        model = estimator(**QUICKER, **settings)
        assert model.__sklearn_tags__().input_tags.allow_nan == allowed
        if allowed:
            assert "b_missing" in model.fit(x, y).posterior_.recipe.names
        else:
            with pytest.raises(InvalidDataError, match=r"'b' has \d+, .*missing='indicator'"):
                model.fit(x, y)


def test_importances_are_shares_of_the_columns(data):
    x, y = data
    x = x.assign(site=["n", "s"] * 20)
    model = dbrm.DBRMRegressor(**QUICKER)
    assert not hasattr(model, "feature_importances_")
    model.fit(x, y)
    shares = model.posterior_.covariates.set_index("covariate")["share"]
    found = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    assert found.keys() == set(x.columns)
    assert found["a"] == shares["a"] == max(found.values())
    assert sum(found.values()) == pytest.approx(1.0)
    selected = SelectFromModel(model, prefit=True, threshold=0.5).get_support()
    assert selected.tolist() == [True, False, False, False]


def test_importances_of_several_classes(data):
    x, y = data
    model = dbrm.DBRMClassifier(**QUICKER).fit(x, np.digitize(y, [-1.0, 1.0]))
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.argmax() == 0


def test_the_standard_deviation_comes_beside_the_mean(data):
    x, y = data
    model = dbrm.DBRMRegressor(**QUICKER).fit(x, y)
    mean, sd = model.predict(x, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(x))
    np.testing.assert_array_equal(sd, model.posterior_.predict_sd(x))


def test_weights_of_classes(data):
    x, y = data
    labels = np.where(y > 1.5, "high", "low")
    weight = {"high": 3.0, "low": 1.0}
    model = dbrm.DBRMClassifier(class_weight=weight, **QUICKER).fit(x, labels)
    rows = np.where(labels == "high", 3.0, 1.0)
    expected = dbrm.DBRMClassifier(**QUICKER).fit(x, labels, sample_weight=rows)
    np.testing.assert_array_equal(model.predict_proba(x), expected.predict_proba(x))
    both = dbrm.DBRMClassifier(class_weight=weight, **QUICKER)
    both.fit(x, labels, sample_weight=np.where(labels == "high", 1 / 3, 1.0))
    plain = dbrm.DBRMClassifier(**QUICKER).fit(x, labels)
    np.testing.assert_allclose(both.predict_proba(x), plain.predict_proba(x), rtol=1e-6)
    balanced = dbrm.DBRMClassifier(class_weight="balanced", **QUICKER).fit(x, labels)
    high = labels == "high"
    each = np.where(high, 0.5 / high.mean(), 0.5 / (1.0 - high.mean()))
    expected = dbrm.DBRMClassifier(**QUICKER).fit(x, labels, sample_weight=each)
    np.testing.assert_allclose(balanced.predict_proba(x), expected.predict_proba(x), rtol=1e-6)


def test_cross_validation_with_a_rare_level(data):
    """A level that is in one fold only is none of the levels known to the others."""
    x, y = data
    x["site"] = ["only"] + ["n", "s", "w"] * 13
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        scores = cross_val_score(dbrm.DBRMRegressor(**QUICKER), x, y, cv=4, error_score="raise")
    assert np.isfinite(scores).all()
    assert any("did not occur in training: 'only'" in str(w.message) for w in told)


def test_sparse_input_is_refused_with_advice(data):
    x, y = data
    for model in (dbrm.DBRMRegressor(**QUICKER), dbrm.DBRMClassifier(**QUICKER)):
        with pytest.raises(InvalidDataError, match=r"Try X.toarray\(\).*SelectKBest"):
            model.fit(scipy.sparse.csr_array(x.to_numpy()), y > 0)
