"""Tests of `dbrm.posterior.remainder_columns`: columns, their groups, and how they are spelt."""

import numpy as np
import pandas as pd
import pytest

from dbrm.data import learn_recipe
from dbrm.features import evaluate
from dbrm.posterior.remainder_columns import Covariates


@pytest.fixture
def covariates(rng):
    X = pd.DataFrame(
        {
            "a": rng.normal(5.0, 1.0, size=80),
            "long": np.exp(rng.normal(size=80) * 2.0),
            "c": rng.choice(list("uvw"), size=80),
        }
    )
    recipe, table = learn_recipe(X, log_covariates=True)
    return Covariates.of(table, recipe)


@pytest.mark.parametrize("logs", [True, False])
def test_columns_are_sums_of_features(covariates, logs):
    columns = covariates.columns(bends=True, logs=logs, pairs=[(0, 1), (0, 2)])
    features = evaluate(list(columns.features), covariates.table)[0]
    np.testing.assert_allclose(
        features @ columns.change + columns.constants, columns.values, atol=1e-9
    )
    assert ("long" in [f.text for f in columns.features]) != logs
    products = columns.values[:, columns.owner == -1]
    assert products.shape[1] == 4
    table = covariates.table
    a, log_long = (table.column(name) for name in ("a", "log(long)"))
    wanted = (a - a.mean()) * (log_long - log_long.mean())
    np.testing.assert_allclose(products[:, 0], wanted, atol=1e-9)


def test_each_group_has_a_variance_of_one(covariates):
    columns = covariates.columns(bends=True, logs=False, pairs=[(0, 1), (1, 2)])
    variances = (columns.values / columns.units).var(axis=0)
    np.testing.assert_allclose(np.bincount(columns.groups, variances), 1.0)
    # Levels are alike as they are.
    levels = np.flatnonzero(columns.owner == 2)
    assert np.ptp(columns.units[levels]) == pytest.approx(0.0)


def test_variances_of_groups_become_units(covariates):
    columns = covariates.columns(bends=False, logs=True)
    moved = columns.with_variances(np.array([0.0, 2.0, -2.0]))
    variances = (moved.values / moved.units).var(axis=0)
    np.testing.assert_allclose(np.bincount(columns.groups, variances), np.exp([0.0, 2.0, -2.0]))


def test_strong_covariates_are_paired_first(covariates):
    strength = np.array([3.0, 2.0, 1.0])
    assert covariates.strongest_pairs(strength, 100) == [(0, 1), (0, 2), (1, 2)]
    assert covariates.strongest_pairs(strength, 3) == [(0, 1)]
    assert covariates.strongest_pairs(strength, 4) == [(0, 1), (0, 2)]


@pytest.mark.parametrize("outlier", [False, True])
def test_products_that_vary_in_a_few_rows_are_left_out(rng, outlier):
    X = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    if outlier:
        X.iloc[0] = 15.0
    recipe, table = learn_recipe(X)
    columns = Covariates.of(table, recipe).columns(bends=False, logs=False, pairs=[(0, 1)])
    assert np.any(columns.owner == -1) != outlier
