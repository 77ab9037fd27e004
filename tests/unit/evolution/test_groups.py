"""Groups of covariates that models contain whole or not at all."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import InvalidSettingError, UnknownNameError

LEVELS = ["site[b]", "site[c]", "site[d]"]
QUOTED = {f"`{level}`" for level in LEVELS}


@pytest.fixture
def data(rng):
    x = pd.DataFrame(rng.normal(size=(150, 3)), columns=["u", "v", "w"])
    # Level a has the most rows: with groups it has no column.
    x["site"] = rng.choice(list("abcd"), 150, p=[0.4, 0.2, 0.2, 0.2])
    shift = x["site"].map({"a": 0.0, "b": 0.9, "c": -0.7, "d": 0.1})
    return x, 0.5 * x["u"] + shift + rng.normal(size=150)


def is_whole(names):
    inside = QUOTED & set(names)
    return not inside or inside == QUOTED


def respond(y, family, rng):
    if family == "gaussian":
        return y
    return pd.Series(rng.poisson(np.exp(0.5 * y)).astype(float))


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_enumeration_is_that_of_the_whole_models(data, rng, family):
    """Against the full enumeration with the broken models left out."""
    x, y = data[0], respond(data[1], family, rng)
    together = dbrm.enumerate_models(x, y, family=family, groups="factors")
    free = dbrm.enumerate_models(x, y, family=family, exclude="`site[a]`").models
    whole = free[free["features"].map(is_whole)]
    expected = whole["probability"] / whole["probability"].sum()
    assert len(together.models) == 2**4
    assert (
        together.models["features"].map(frozenset).tolist()
        == whole["features"].map(frozenset).tolist()
    )
    np.testing.assert_allclose(together.models["probability"], expected, rtol=1e-8)
    shares = [together.inclusion(name) for name in QUOTED]
    np.testing.assert_allclose(shares, shares[0])


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
@pytest.mark.parametrize("algorithm", ["gmjmcmc", "mjmcmc"])
def test_searches_find_the_same_posterior(data, rng, family, algorithm):
    """Also where populations are walked through: 14 columns are too many to enumerate."""
    x, y = data[0], respond(data[1], family, rng)
    options = {"family": family, "groups": "factors", "prior": "jeffreys", "penalty": "uniform"}
    exact = dbrm.enumerate_models(x, y, **options)
    extra = pd.DataFrame(rng.normal(size=(150, 8)), columns=[f"z{j}" for j in range(8)])
    wide = pd.concat([x, extra], axis=1) if algorithm == "mjmcmc" else x
    found = dbrm.fit(
        wide,
        y,
        algorithm=algorithm,
        max_depth=0,
        sweep=0,
        n_chains=2,
        n_populations=6,
        random_state=1,
        **options,
    )
    assert found.models["features"].map(is_whole).all()
    if algorithm == "gmjmcmc":
        first = exact.models.iloc[0]
        assert set(found.models["features"][0]) == set(first["features"])
        assert found.models["probability"][0] == pytest.approx(first["probability"], rel=1e-6)
    assert found.inclusion("`site[b]`") == pytest.approx(found.inclusion("`site[d]`"))
    assert found.inclusion("`site[b]`") > 0.5


def test_engineered_features_are_free_but_groups_stay_whole(data):
    x, y = data
    effort = {"n_chains": 1, "n_populations": 8, "random_state": 2, "penalty": 2.0}
    effort["prior"] = "jeffreys"
    found = dbrm.fit(x, y + x["u"] * x["v"], groups="factors", transforms=["tanh"], **effort)
    assert found.models["features"].map(is_whole).all()
    assert found.inclusion("u*v") > 0.9
    assert found.inclusion("`site[b]`") > 0.5


def test_groups_may_be_named(data):
    x, y = data
    found = dbrm.enumerate_models(x, y, groups=[["u", "w"], LEVELS])
    for names in found.models["features"]:
        assert ("u" in names) == ("w" in names)
        assert is_whole(names)
    # Level a is in no group; with all of the others it adds nothing.
    assert len(found.models) == 2**4 - 2**2


def test_a_group_that_is_always_in_asks_for_nothing(data):
    x, y = data
    found = dbrm.enumerate_models(x, y, groups="factors", always=[f"`{LEVELS[0]}`"])
    rest = {f"`{level}`" for level in LEVELS[1:]}
    assert all(rest <= set(names) or not rest & set(names) for names in found.models["features"])


def test_more_covariates_than_places(rng):
    """The group enters the first population whole or with nothing to say."""
    x = pd.DataFrame(rng.normal(size=(100, 30)), columns=[f"x{j}" for j in range(30)])
    x["site"] = rng.choice(list("abcd"), 100, p=[0.4, 0.2, 0.2, 0.2])
    y = x["x3"] + x["site"].map({"a": 0.0, "b": 2.0, "c": -2.0, "d": 0.1}) + rng.normal(size=100)
    found = dbrm.fit(
        x,
        y,
        groups="factors",
        max_depth=0,
        population_size=8,
        n_chains=2,
        n_populations=10,
        sweep=0,
        random_state=1,
    )
    assert found.models["features"].map(is_whole).all()
    assert found.inclusion("`site[c]`") > 0.9


def test_mistakes_are_named(data):
    x, y = data
    with pytest.raises(InvalidSettingError, match="'factors' or lists of column names"):
        dbrm.enumerate_models(x, y, groups="levels")
    with pytest.raises(InvalidSettingError, match="'factors' or lists of column names"):
        dbrm.enumerate_models(x, y, groups=["u", "v"])
    with pytest.raises(UnknownNameError, match="groups= names 'q'"):
        dbrm.enumerate_models(x, y, groups=[["u", "q"]])
    with pytest.raises(InvalidSettingError, match="in one group only"):
        dbrm.enumerate_models(x, y, groups=[["u", "v"], ["v", "w"]])
    with pytest.raises(InvalidSettingError, match="not for algorithm='rgmjmcmc'"):
        dbrm.fit(x, y, groups="factors", algorithm="rgmjmcmc")
    with pytest.raises(InvalidSettingError, match="does not fit into a population of 2"):
        dbrm.fit(x, y, groups="factors", population_size=2)
