"""Tests of `posterior.covariates` and `posterior.interactions`."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.posterior.covariates import _shapley


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = pd.DataFrame(
        {
            "up": rng.normal(10.0, 3.0, 150),
            "down": rng.normal(size=150),
            "noise": rng.normal(size=150),
            "site": rng.choice(["east", "north", "south"], 150),
        }
    )
    mean = 0.8 * X["up"] - 1.2 * X["down"] + 3.0 * (X["site"] == "south")
    return X, pd.Series(mean + 0.5 * rng.normal(size=150), name="y")


@pytest.fixture(scope="module")
def additive(data):
    return dbrm.enumerate_models(*data)


@pytest.fixture(scope="module")
def product():
    """A model of one product: known contributions."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.uniform(0.5, 3.0, 100), "b": rng.uniform(1.0, 1.5, 100)})
    y = 4.0 * X["a"] * X["b"] + 0.001 * rng.normal(size=100)
    options = {"transforms": ["troot"], "n_chains": 1, "n_populations": 3, "random_state": 1}
    return X, dbrm.fit(X, y, **options)


def test_one_row_per_column_of_the_table(additive, data):
    table = additive.covariates
    assert sorted(table["covariate"]) == sorted(data[0].columns)
    assert table.columns.tolist() == ["covariate", "probability", "share", "direction"]
    assert table["share"].sum() == pytest.approx(1.0)
    assert table["share"].is_monotonic_decreasing


def test_a_factor_is_one_covariate_with_the_probability_of_any_level(additive):
    models = additive.models
    takes_part = [any(f.strip("`").startswith("site[") for f in fs) for fs in models["features"]]
    expected = models["probability"][takes_part].sum()
    row = additive.covariates.set_index("covariate").loc["site"]
    assert row["probability"] == pytest.approx(expected, abs=1e-12)
    assert row["direction"] == "by level"


def test_directions(additive):
    direction = additive.covariates.set_index("covariate")["direction"]
    assert direction["up"] == "increasing"
    assert direction["down"] == "decreasing"


def test_shares_of_an_additive_model_are_those_of_its_terms(additive, data):
    """At the averaged coefficients; rows are an even sample of 128."""
    X = data[0]
    rows = np.unique(np.linspace(0, 149, 128).astype(int))
    slopes = additive.coefficients().set_index("term")["estimate"]
    parts = {name: slopes.get(name, 0.0) * X[name] for name in ("up", "down", "noise")}
    levels = [f"site[{level}]" for level in ("east", "north", "south")]
    parts["site"] = sum(
        slopes.get(f"`{name}`", slopes.get(name, 0.0)) * (X["site"] == name[5:-1])
        for name in levels
    )
    variances = {name: np.var(part.to_numpy()[rows]) for name, part in parts.items()}
    found = additive.covariates.set_index("covariate")["share"]
    for name, variance in variances.items():
        assert found[name] == pytest.approx(variance / sum(variances.values()), abs=2e-3)


def test_contributions_to_a_product(product):
    """phi_a of c a b is c (a - mean a)(b + mean b) / 2, up to a constant; likewise phi_b."""
    X, posterior = product
    assert posterior.best_model.features == ("a*b",)
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    together = 0.5 * (a * b - a.mean() * b.mean())
    phi_a = 0.5 * (a - a.mean()) * b.mean() - 0.5 * (b - b.mean()) * a.mean() + together
    phi_b = 0.5 * (b - b.mean()) * a.mean() - 0.5 * (a - a.mean()) * b.mean() + together
    expected = np.var(phi_a) / (np.var(phi_a) + np.var(phi_b))
    table = posterior.covariates.set_index("covariate")
    assert table["share"]["a"] == pytest.approx(expected, abs=1e-4)
    assert table["direction"].tolist() == ["increasing", "increasing"]


def test_pairs_act_together_where_they_are_in_one_feature(product, additive):
    first = product[1].interactions.iloc[0]
    assert (first["first"], first["second"]) == ("a", "b")
    assert first["probability"] > 0.99
    assert additive.interactions.empty


def test_shapley_values_are_averages_over_orders():
    rng = np.random.default_rng(2)
    names = ["a", "b", "c"]
    known = {
        frozenset(n for n, bit in zip(names, f"{code:03b}", strict=True) if bit == "1"): rng.normal(
            size=4
        )
        for code in range(8)
    }
    found = _shapley(frozenset(names), known)
    for name in names:
        gains = []
        for order in permutations(names):
            before = frozenset(order[: order.index(name)])
            gains.append(known[before | {name}] - known[before])
        np.testing.assert_allclose(found[name], np.mean(gains, axis=0), atol=1e-12)


def test_what_is_in_every_model_is_certain(data):
    X, y = data
    posterior = dbrm.enumerate_models(X, y, always=["noise"])
    assert posterior.covariates.set_index("covariate")["probability"]["noise"] == 1.0


def test_a_saved_posterior_has_the_same_table(additive, tmp_path):
    additive.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    pd.testing.assert_frame_equal(loaded.covariates, additive.covariates)
    pd.testing.assert_frame_equal(loaded.interactions, additive.interactions)


def test_a_covariate_that_no_averaged_model_uses_has_no_share():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=40), "z": rng.normal(size=40)})
    posterior = dbrm.enumerate_models(table, 3.0 * table["x"] + rng.normal(size=40), penalty=200.0)
    row = posterior.covariates.set_index("covariate").loc["z"]
    assert row["probability"] < 1e-6
    assert row["share"] < 1e-6
