"""Tests of `dbrm.data.skewness`, and of columns on the log scale in recipes."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

from dbrm.data import Recipe, learn_from_batches, learn_recipe, open_batches
from dbrm.data.skewness import LogScale, find_log_scale
from dbrm.errors import DBRMWarning

DRAW = np.random.default_rng(12)
INCOME = DRAW.lognormal(3.0, 0.8, 200)


def test_long_upper_tails_qualify_in_any_unit():
    for unit in (1.0, 1e-200, 1e200):
        assert find_log_scale(INCOME * unit) == LogScale(INCOME.min() * unit)
    assert find_log_scale(DRAW.exponential(size=2_000)) is not None


def test_a_zero_brings_the_smallest_positive_value_as_shift():
    with_zeros = np.where(DRAW.random(200) < 0.6, 0.0, INCOME.round(2) + 0.0123)
    smallest = with_zeros[with_zeros > 0.0].min()
    for unit in (1.0, 1e-3):
        scale = find_log_scale(with_zeros * unit)
        assert scale.floor == 0.0
        assert scale.shift == pytest.approx(smallest * unit, rel=0.05)
    assert find_log_scale(DRAW.geometric(0.1, 300) - 1.0) == LogScale(0.0, 1.0)


@pytest.mark.parametrize(
    "values",
    [
        DRAW.normal(10.0, 1.0, 200),
        -INCOME,
        INCOME.max() + 1.0 - INCOME,
        np.exp(DRAW.integers(0, 5, 200)),
        np.array([]),
    ],
    ids=["normal", "negative", "lower tail", "few values", "nothing"],
)
def test_others_do_not(values):
    assert find_log_scale(values) is None


def table():
    X = pd.DataFrame({"income": INCOME, "age": DRAW.normal(40.0, 9.0, 200)})
    X.loc[3, "income"] = np.nan
    return X


def test_the_column_is_last_and_is_replayed():
    X = table()
    recipe, made = learn_recipe(X, missing="indicator", log_covariates=True, scale="standard")
    assert made.names == ("income", "income_missing", "age", "log(income)")
    back = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    np.testing.assert_array_equal(back.apply(X).values, made.values)
    logs = np.log(X["income"].fillna(X["income"].median()))
    np.testing.assert_allclose(made.column("log(income)"), (logs - logs.mean()) / logs.std())
    floor = X["income"].min()
    new = recipe.apply({"income": [floor, 0.0, -5.0], "age": [1.0, 1.0, 1.0]})
    assert np.ptp(new.column("log(income)")) == 0.0
    assert np.ptp(new.column("income")) > 0.0


def test_a_shift_is_in_the_name_and_is_replayed():
    X = table().dropna()
    X["visits"] = DRAW.geometric(0.1, len(X)) - 1.0
    recipe, made = learn_recipe(X, log_covariates=True)
    assert made.names[-1] == "log(visits + 1)"
    np.testing.assert_array_equal(made.column("log(visits + 1)"), np.log(X["visits"] + 1.0))
    back = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    new = X.head(2).assign(visits=[0.0, -3.0])
    np.testing.assert_array_equal(back.apply(new).column("log(visits + 1)"), 0.0)


def test_logarithms_of_the_users_own_come_first():
    """Nothing is said of a column that the user did not ask for."""
    X = table().dropna().assign(mine=lambda frame: 2.0 - np.log(frame["income"]))
    recipe, made = learn_recipe(X, log_covariates=True)
    assert made.names == ("income", "age", "mine")
    assert recipe.dropped == ()
    X = X.drop(columns="mine").assign(**{"log(income)": 1.0})
    with pytest.warns(DBRMWarning, match=r"Constant.*'log\(income\)'"):
        assert learn_recipe(X, log_covariates=True)[1].names == ("income", "age")


def test_rows_in_blocks_hold_the_smallest_of_all():
    X = table().dropna().assign(y=0.0)
    data = pa.dataset.dataset(pa.Table.from_pandas(X, preserve_index=False))
    recipe, rows = learn_from_batches(open_batches(data, {"response": "y"}), log_covariates=True)
    assert rows.names == ("income", "age", "log(income)")
    assert rows.binary == (False, False, False)
    assert recipe.columns[0].log_scale == LogScale(X["income"].min())
