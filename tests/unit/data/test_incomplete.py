"""Rows with a missing value are left out on request."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dbrm
from dbrm.data import drop_incomplete
from dbrm.errors import DBRMWarning, InvalidDataError

QUICK = {"n_chains": 1, "n_populations": 1, "transforms": ["sin"], "sweep": 0, "random_state": 1}


def tables():
    draw = np.random.default_rng(3)
    X = pd.DataFrame(draw.normal(size=(50, 2)), columns=["a", "b"])
    X["site"] = draw.choice(["n", "s"], 50)
    y = X["a"] + 0.5 * draw.normal(size=50)
    gaps = X.copy()
    gaps.loc[3, "a"], gaps.loc[7, "site"], gaps.loc[9, "b"] = np.nan, None, np.nan
    return X, gaps, y


@pytest.mark.parametrize("convert", [lambda X: X, pl.from_pandas, lambda X: X.to_dict("list")])
def test_a_fit_is_that_of_the_complete_rows(convert):
    X, gaps, y = tables()
    y = y.copy()
    y[20] = np.nan
    keep = np.setdiff1d(np.arange(50), [3, 7, 9, 20])
    weights = np.where(np.arange(50) % 2, 1.0, 2.0)
    found = dbrm.fit(
        convert(gaps), y.to_numpy(), sample_weight=weights, offset=0.5, missing="drop", **QUICK
    )
    y = y.to_numpy()
    expected = dbrm.fit(X.iloc[keep], y[keep], sample_weight=weights[keep], offset=0.5, **QUICK)
    assert found.best_model.formula == expected.best_model.formula
    assert found.record.n_rows == 46
    with pytest.raises(InvalidDataError, match="NaN or missing"):
        found.predict(gaps, offset=0.5)


def test_arrays_and_named_responses():
    _, gaps, y = tables()
    numbers = gaps[["a", "b"]]
    found = dbrm.fit(numbers.to_numpy(), y, missing="drop", **QUICK)
    assert found.record.n_rows == 48
    found = dbrm.fit(gaps.assign(y=y), "y", missing="drop", **QUICK)
    assert found.record.n_rows == 47


def test_a_formula_needs_its_own_columns_only():
    _, gaps, y = tables()
    gaps["y"] = y
    assert dbrm.fit("y ~ a + site", data=gaps, missing="drop", **QUICK).record.n_rows == 48
    assert dbrm.fit("y ~ a", data=gaps, missing="drop", **QUICK).record.n_rows == 49
    assert dbrm.fit("y ~ .", data=gaps, missing="drop", **QUICK).record.n_rows == 47


def test_many_rows_are_told_and_all_refused():
    X = {"a": np.r_[np.full(9, np.nan), np.ones(11)]}
    with pytest.warns(DBRMWarning, match=r"leaves out 9 of 20 rows; missing='indicator'"):
        drop_incomplete(X, {})
    with pytest.raises(InvalidDataError, match="leaves no row"):
        drop_incomplete({"a": [np.nan, 1.0], "b": [1.0, np.nan]}, {})


def test_complete_tables_are_left_alone():
    X, _, y = tables()
    assert drop_incomplete(X, {"y": y})[0] is X
