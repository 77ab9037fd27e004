"""What was done to the covariates is said in the summary and on the page."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.report.preparation import preparation_facts
from dbrm.report.rerun import data_facts


@pytest.fixture
def table(rng):
    n = 120
    X = pd.DataFrame({"age": rng.normal(40, 9, n).round(), "site": rng.choice(list("ab"), n)})
    X.loc[3:5, "site"] = ["c", "d", "c"]
    X["grade"] = pd.Categorical(rng.choice(["low", "mid", "top"], n), ["low", "mid", "top"], True)
    X.loc[7, "grade"] = None
    X.loc[[1, 2], "age"] = np.nan
    X.loc[9, "site"] = None
    return X, rng.normal(size=n)


def test_filled_values_and_pooled_levels_are_named_and_counted(table):
    X, y = table
    posterior = dbrm.enumerate_models(X, y)
    median = f"{X['age'].median():g}"
    facts = dict(preparation_facts(posterior.recipe))
    assert facts["missing values"].startswith(
        f"age (2 rows, filled with the median, {median}), site (1 row, a level of its own) and "
        "grade (1 row, filled with the median, "
    )
    assert facts["rare levels"] == "site (2 in one column)"
    assert set(facts.items()) <= set(data_facts(posterior))
    words = " ".join(posterior.summary().split())
    assert f"Missing values: {facts['missing values']}." in words
    assert f"Rare levels: {facts['rare levels']}." in words


def test_covariates_on_the_log_scale_are_named(table, rng):
    X, y = table
    X["income"] = rng.lognormal(size=len(X))
    quick = {"n_chains": 1, "n_populations": 1, "sweep": 0, "random_state": 1}
    posterior = dbrm.fit(X[["age", "income"]].fillna(0.0), y, log_covariates=True, **quick)
    assert preparation_facts(posterior.recipe) == [("on the log scale, too", "income")]


def test_nothing_is_said_where_nothing_was_done(table):
    X, y = table
    posterior = dbrm.enumerate_models(X[["age"]].fillna(0.0), y)
    assert preparation_facts(posterior.recipe) == []
    assert "issing values" not in posterior.summary()
