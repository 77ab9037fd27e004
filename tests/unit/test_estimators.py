"""Tests of `dbrm.DBRMRegressor`: the same as `dbrm.fit`, in scikit-learn's clothes."""

import inspect
import pickle
from dataclasses import MISSING, fields

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import dbrm
from dbrm.errors import InvalidSettingError
from dbrm.settings import Settings

QUICK = {"n_chains": 1, "n_populations": 3, "random_state": 0, "transforms": ["tanh"]}


@pytest.fixture
def data(rng):
    x = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    return x, 2 * x["a"] + 0.3 * rng.normal(size=40)


def test_parameters_are_the_settings_with_their_defaults():
    settings = {field.name: field.default for field in fields(Settings)}
    assert MISSING not in settings.values()
    signature = inspect.signature(dbrm.DBRMRegressor).parameters
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
    pipeline = make_pipeline(StandardScaler(), dbrm.DBRMRegressor(**QUICK))
    assert np.all(cross_val_score(pipeline, x, y, cv=3) > 0.8)
    search = GridSearchCV(dbrm.DBRMRegressor(**QUICK), {"penalty": [1.0, "bic"]}, cv=2)
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


# Of a search with a fixed seed, not of the evidence, which is exact (test_gaussian).
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "weights and repeated rows give every model the same evidence, but the search that "
        "decides which models are visited looks at rows, and takes another path"
    ),
}
CHECKS = list(
    estimator_checks_generator(
        dbrm.DBRMRegressor(n_chains=1, n_populations=3),
        expected_failed_checks=EXPECTED,
        mark="skip",
    )
)


@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKS,
    ids=[getattr(check, "func", check).__name__ for _, check in CHECKS],
)
@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)
