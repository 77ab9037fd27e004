"""`missing="impute"`: completed tables, averages over them, and new rows."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.data import complete_tables, learn_recipe
from dbrm.data.imputation import Imputer, draw_completed, learn_imputer
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import ModelFit
from dbrm.posterior.pooling import pool_fits
from dbrm.status import Status


def simulate(seed=0, n=160, share=0.3):
    rng = np.random.default_rng(seed)
    a, b = rng.multivariate_normal([2.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], n).T
    X = pd.DataFrame({"a": a, "b": b, "c": rng.normal(size=n)})
    X["site"] = np.where(rng.random(n) < 0.5, "north", "south")
    y = pd.Series(a + 0.5 * b + rng.normal(size=n), name="y")
    whole = X.copy()
    X.loc[rng.random(n) < share, "a"] = np.nan
    X.loc[rng.random(n) < 0.1, "c"] = np.nan
    return X, y, whole


@pytest.fixture(scope="module")
def data():
    return simulate()


@pytest.fixture(scope="module")
def posterior(data):
    X, y, _ = data
    return dbrm.enumerate_models(X, y, missing="impute", penalty=2.0, random_state=1)


def completed_of(X, y, seed=1):
    recipe, _ = learn_recipe(X, missing="impute", unseen="none-of-these")
    return complete_tables(recipe, X, y.to_numpy(), seed)


def test_what_was_observed_stays_and_what_was_missing_differs_between_tables(data):
    X, y, _ = data
    recipe, tables = completed_of(X, y)
    assert len(tables) == 10
    missing = X["a"].isna().to_numpy()
    columns = np.array([table.column("a") for table in tables])
    np.testing.assert_array_equal(columns[:, ~missing], np.tile(X["a"][~missing], (10, 1)))
    assert np.all(columns[:, missing].std(axis=0) > 0.1)
    assert not any(name.endswith("_missing") for name in recipe.names)
    again = completed_of(X, y)[1]
    np.testing.assert_array_equal(again[3].values, tables[3].values)


def test_draws_have_the_distribution_of_what_they_stand_for():
    """Moments of draws in 4,000 rows, four standard errors wide: one false alarm in 4,000."""
    rng = np.random.default_rng(5)
    n = 4_000
    b, y = rng.normal(size=(2, n))
    a = 0.7 * b + 0.5 * y + 0.3 * rng.normal(size=n)
    missing = rng.random(n) < 0.5
    values = np.where(missing, np.nan, a)[:, None]
    drawn = draw_completed(rng, values, b[:, None], y, 1)[0][missing, 0]
    design = np.column_stack([np.ones(missing.sum()), b[missing], y[missing]])
    slopes, squares, *_ = np.linalg.lstsq(design, drawn, rcond=None)
    error = 0.3 * np.sqrt(2.0 / (n / 2))
    np.testing.assert_allclose(slopes, [0.0, 0.7, 0.5], atol=4 * error)
    assert np.sqrt(squares[0] / missing.sum()) == pytest.approx(0.3, abs=4 * error)


def test_new_rows_get_conditional_means_without_the_response():
    rng = np.random.default_rng(6)
    n = 3_000
    b = rng.normal(size=n)
    a, c = 1.0 + 0.8 * b + 0.2 * rng.normal(size=n), -b + 0.2 * rng.normal(size=n)
    values = np.column_stack([a, c])
    values[rng.random((n, 2)) < 0.2] = np.nan
    imputer = learn_imputer(("a", "c"), values, ("b",), b[:, None])
    new = np.array([[np.nan, np.nan], [np.nan, 0.3], [1.5, np.nan], [1.0, 2.0]])
    filled = imputer.complete(np.array([[0.5], [0.5], [0.5], [0.5]]), new)
    np.testing.assert_allclose(filled[0], [1.4, -0.5], atol=0.03)
    np.testing.assert_array_equal(filled[3], [1.0, 2.0])
    np.testing.assert_array_equal(filled[~np.isnan(new)], new[~np.isnan(new)])
    read = Imputer.from_dict(imputer.to_dict())
    np.testing.assert_array_equal(read.complete(np.full((4, 1), 0.5), new), filled)
    broken = imputer.to_dict() | {"coefficients": [[1.0], [2.0]]}
    with pytest.raises(InvalidDataError, match="does not fit together"):
        Imputer.from_dict(broken)


def test_probabilities_are_averages_over_the_completed_tables(posterior, data):
    X, y, _ = data
    _, tables = completed_of(X, y)
    total: dict[frozenset[str], float] = {}
    for table in tables:
        frame = pd.DataFrame(table.values, columns=table.names)
        own = dbrm.enumerate_models(frame, y, penalty=2.0).models
        for row in own.itertuples():
            key = frozenset(map(str, row.features))
            total[key] = total.get(key, 0.0) + row.probability / len(tables)
    for row in posterior.models.head(10).itertuples():
        key = frozenset(str(name).strip("`") for name in row.features)
        expected = [v for k, v in total.items() if {n.strip("`") for n in k} == key]
        assert row.probability == pytest.approx(sum(expected), abs=1e-6)


def test_fits_are_pooled_by_the_rules_of_rubin():
    def fit(slope, variance):
        covariance = np.diag([0.0, variance]) / 2.0
        return ModelFit(0.0, 0.0, np.array([0.0, slope]), covariance, 2.0, np.inf, Status.OK)

    pooled = pool_fits([fit(1.0, 0.3), fit(2.0, 0.1), fit(3.0, 0.2)])
    assert pooled.coefficients[1] == pytest.approx(2.0)
    assert pooled.dispersion * pooled.covariance[1, 1] == pytest.approx(0.2 + 4 / 3 * 1.0)


def test_the_interval_of_the_coefficient_holds_the_truth(posterior):
    table = posterior.coefficients().set_index("term")
    assert table["lower"]["a"] < 1.0 < table["upper"]["a"]
    assert table["upper"]["a"] - table["lower"]["a"] < 0.7
    assert posterior.inclusion("a") > 0.99


def test_new_rows_and_files(posterior, data, tmp_path):
    X, _, whole = data
    missing = X["a"].isna()
    filled, full = posterior.predict(X), posterior.predict(whole)
    np.testing.assert_allclose(filled[~X.isna().any(axis=1)], full[~X.isna().any(axis=1)])
    # Not the median for everybody: a is guessed from b.
    assert np.corrcoef(filled[missing], full[missing])[0, 1] > 0.6
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    np.testing.assert_array_equal(loaded.predict(X), filled)
    one = posterior.predict(X[missing].head(1))
    np.testing.assert_allclose(one, filled[missing][:1])
    posterior.report(tmp_path / "run.html")


def test_a_search_gives_the_same_numbers_again(data):
    X, y, _ = data
    how = {"missing": "impute", "random_state": 4, "n_chains": 1, "n_populations": 2, "sweep": 2}
    first, second = dbrm.fit(X, y, **how), dbrm.fit(X, y, **how)
    pd.testing.assert_frame_equal(first.models, second.models)
    # The column or, in one chain as short as this, a function of it.
    assert first.covariates.set_index("covariate")["probability"]["a"] > 0.99


def test_other_families_and_estimators(data):
    X, y, _ = data
    binary = (y > y.median()) * 1.0
    found = dbrm.enumerate_models(X, binary, family="binomial", missing="impute")
    assert 0.0 < found.predict(X).min() < found.predict(X).max() < 1.0
    how = {"n_chains": 1, "n_populations": 2, "sweep": 2, "random_state": 1}
    model = dbrm.DBRMRegressor(missing="impute", **how).fit(X, y)
    assert model.score(X, y) > 0.4


def test_without_missing_numbers_nothing_changes(data):
    _, y, whole = data
    imputed = dbrm.enumerate_models(whole, y, missing="impute")
    plain = dbrm.enumerate_models(whole, y, missing="error")
    pd.testing.assert_frame_equal(imputed.models, plain.models)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"latent": "RandomIntercept(site)"}, "missing='impute' is not for latent="),
        ({"algorithm": "rgmjmcmc"}, "not for algorithm='rgmjmcmc'"),
        ({"preset": "paper_text"}, "not for preset="),
        ({"signs": {"a": "positive"}}, "not for monotone= and signs="),
        ({"family": "cox"}, "not for family='cox'"),
        ({"checkpoint": "folder"}, "not for checkpoint="),
    ],
)
def test_what_is_not_possible_is_said(data, how, message):
    X, y, _ = data
    with pytest.raises(InvalidSettingError, match=message):
        dbrm.fit(X, y, missing="impute", **how)


def test_formulas_are_refused(data):
    X, y, _ = data
    with pytest.raises(InvalidSettingError, match="not for formulas"):
        dbrm.fit("y ~ a + b", data=X.assign(y=y), missing="impute")
