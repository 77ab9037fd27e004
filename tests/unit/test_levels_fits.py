"""Fits of tables with categories: any level can be in a model, whatever it is called."""

import numpy as np
import pandas as pd
import pytest

import dbrm

QUICK = {"n_chains": 2, "n_populations": 5, "random_state": 4, "n_jobs": 1}
FUELS = ["diesel", "electric", "gas", "hybrid", "lpg", "petrol"]


def cars(n=300, seed=5):
    """Only the first of six levels matters."""
    draw = np.random.default_rng(seed)
    X = pd.DataFrame({"weight": draw.normal(1.4, 0.3, n), "power": draw.gamma(4.0, 25.0, n)})
    X["fuel"] = draw.choice(FUELS, n, p=[0.2, 0.1, 0.1, 0.15, 0.05, 0.4])
    X["body"] = draw.choice(["estate", "saloon"], n)
    y = 40 - 10 * X["weight"] - 0.05 * X["power"] + 6 * (X["fuel"] == "diesel")
    return X, y + 1.5 * draw.normal(size=n)


def terms(posterior):
    return {str(feature) for feature in posterior.best_model.features}


def test_the_first_level_can_be_the_one_that_matters():
    X, y = cars()
    posterior = dbrm.fit(X, y, **QUICK)
    assert terms(posterior) == {"weight", "power", "`fuel[diesel]`"}


@pytest.mark.parametrize(
    "renamed", [{"diesel": "zz"}, dict(zip(FUELS, FUELS[::-1], strict=True)), {"estate": "wagon"}]
)
def test_results_do_not_depend_on_names_of_levels(renamed):
    X, y = cars()
    y = y + 2 * (X["body"] == "estate") * X["weight"]
    other = X.assign(fuel=X["fuel"].replace(renamed), body=X["body"].replace(renamed))
    ordered = other["fuel"].astype(pd.CategoricalDtype(other["fuel"].unique()[::-1]))
    here, there = dbrm.fit(X, y, **QUICK), dbrm.fit(other.assign(fuel=ordered), y, **QUICK)
    spelled = {
        f"{column}[{level}]": f"{column}[{renamed.get(level, level)}]"
        for column in ("fuel", "body")
        for level in X[column].unique()
    }

    def translate(text):
        for old, new in spelled.items():
            text = text.replace(old, f"<{new}>")
        return frozenset(text.replace("<", "").replace(">", "").replace("`", "").split("*"))

    translated = {translate(text) for text in terms(here)}
    assert translated == {frozenset(text.replace("`", "").split("*")) for text in terms(there)}
    best_here, best_there = here.models.iloc[0], there.models.iloc[0]
    for what in ("log_evidence", "log_prior", "probability"):
        assert best_here[what] == pytest.approx(best_there[what], rel=1e-6)
    np.testing.assert_allclose(
        here.predict(X), there.predict(other.assign(fuel=ordered)), rtol=1e-6
    )


def respond(y, family):
    """A response that is so noisy that every model counts."""
    y = y + 20 * np.random.default_rng(1).normal(size=len(y))
    if family == "gaussian":
        return y
    if family == "binomial":
        return (y > y.median()).astype(float)
    mean = np.exp(0.05 * (y - y.mean()))
    return mean if family == "gamma" else mean.round()


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_all_levels_with_the_intercept_are_refused(family):
    """Of the subsets of three levels only the whole set is dependent."""
    X, y = cars(150)
    X["fuel"] = X["fuel"].map(lambda fuel: fuel if fuel in ("diesel", "petrol") else "other")
    posterior = dbrm.enumerate_models(X[["fuel", "weight"]], respond(y, family), family=family)
    found = posterior.models
    assert len(found) == 2 * (2**3 - 1)
    full = found[found["features"].map(lambda names: len(set(names) - {"weight"}) == 2)]
    spellings = full.groupby("size")["log_evidence"]
    assert spellings.size().tolist() == [3, 3]
    np.testing.assert_allclose(spellings.max(), spellings.min(), rtol=1e-7)


@pytest.mark.parametrize("algorithm", ["gmjmcmc", "mjmcmc", "pool-gibbs", "rgmjmcmc"])
def test_populations_that_hold_all_levels(algorithm):
    X, y = cars()
    steps = {"n_final": 200} if algorithm in ("pool-gibbs", "rgmjmcmc") else {}
    posterior = dbrm.fit(
        X,
        y,
        algorithm=algorithm,
        keep=[f"fuel[{fuel}]" for fuel in FUELS] if algorithm == "gmjmcmc" else (),
        start=[f"`fuel[{fuel}]`" for fuel in FUELS] if algorithm == "pool-gibbs" else (),
        transforms=["tanh"],
        **(QUICK | steps),
    )
    levels = {f"`fuel[{fuel}]`" for fuel in FUELS}
    assert not posterior.models["features"].map(lambda names: levels <= set(names)).any()
    assert posterior.inclusion("`fuel[diesel]`") > 0.9


def test_levels_that_are_always_in():
    X, y = cars()
    always = [f"`fuel[{fuel}]`" for fuel in FUELS[:-1]]
    posterior = dbrm.enumerate_models(X, y, always=always)
    assert not posterior.models["features"].map(lambda names: "`fuel[petrol]`" in names).any()


def test_the_evidence_of_a_factor_is_that_of_all_its_levels_but_one():
    X, y = cars()
    one = dbrm.log_evidence(X[["fuel", "weight"]], y)
    for left_out in ("diesel", "lpg"):
        dummies = pd.get_dummies(X["fuel"]).drop(columns=left_out).astype(float)
        by_hand = dbrm.log_evidence(dummies.assign(weight=X["weight"]), y)
        assert one == pytest.approx(by_hand, rel=1e-10)


def test_latent_effects_beside_all_levels():
    X, y = cars(60)
    X["fuel"] = X["fuel"].map(lambda fuel: fuel if fuel in ("diesel", "petrol") else "other")
    X["site"] = np.arange(60) % 6
    latent = dbrm.latent.RandomIntercept("site")
    found = dbrm.enumerate_models(X[["fuel", "site"]], respond(y, "gaussian"), latent=latent)
    assert len(found.models) == 2 * (2**3 - 1)


def test_rows_in_blocks(tmp_path):
    X, y = cars(2_000)
    X["fuel"] = X["fuel"].where(np.arange(len(X)) % 50 > 0)
    path = tmp_path / "cars.parquet"
    X.assign(y=y).to_parquet(path)
    options = {"subsample": 1_000, "penalty": "uniform", "random_state": 1, "max_depth": 0}
    blocks = dbrm.fit(path, "y", **options, prior="jeffreys", sweep=0, n_chains=1)
    memory = dbrm.enumerate_models(X, y, prior="jeffreys")
    assert blocks.recipe.names == memory.recipe.names
    assert "fuel_missing" in blocks.recipe.names
    # Under these priors models of all levels but one are best, and which is left out is a tie.
    assert len([term for term in terms(blocks) if term.startswith("`fuel[")]) >= 4
    evidence = {frozenset(m.features): m.log_evidence for m in memory.models.itertuples()}
    best = blocks.models.iloc[0]
    assert best["log_evidence"] == pytest.approx(evidence[frozenset(best["features"])], rel=1e-6)
    new = X.head(3).assign(fuel="steam")
    with pytest.warns(dbrm.errors.DBRMWarning, match="'steam'"):
        assert np.isfinite(blocks.predict(new)).all()


def incomes(n=200):
    draw = np.random.default_rng(9)
    X = pd.DataFrame({"income": draw.lognormal(3.0, 0.9, n), "age": draw.normal(40, 9, n)})
    return X, 3 * np.log(X["income"]) + 0.1 * X["age"] + draw.normal(size=n)


def test_skewed_covariates_are_offered_on_the_log_scale():
    X, y = incomes()
    posterior = dbrm.fit(X, y, log_covariates=True, **QUICK)
    assert terms(posterior) == {"`log(income)`", "age"}
    curve = posterior.effects.partial_dependence("income", grid=[5.0, 50.0])
    expected = [posterior.predict(X.assign(income=value)).mean() for value in (5.0, 50.0)]
    np.testing.assert_allclose(curve["mean"], expected)
    slope = posterior.effects.marginal_effects().set_index("covariate")["effect"]["income"]
    assert slope == pytest.approx(np.mean(3 / X["income"]), rel=0.1)
    model = posterior.best_model
    scope = {}
    exec(model.to_python(), scope)
    row = {"income": 0.0, "age": 30.0}
    assert scope["predict"](row) == pytest.approx(model.predict(pd.DataFrame([row]))[0])
    assert {str(s) for s in model.to_sympy().free_symbols} == {"income", "age"}


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({"log_covariates": True}, True),
        ({"log_covariates": True, "transforms": ["tanh"]}, True),
        ({"transforms": ["tanh"]}, False),
        ({"log_covariates": False}, False),
        ({"units": {"income": "kg"}}, False),
        ({"preset": "paper_text"}, False),
        ({"max_depth": 0, "log_covariates": True}, False),
        ({"algorithm": "enumerate", "log_covariates": True}, False),
    ],
)
def test_logarithms_join_beside_the_default_functions(options, offered):
    X, y = incomes(60)
    quick = {"n_chains": 1, "n_populations": 1, "sweep": 0, "random_state": 1}
    posterior = dbrm.fit(X, y, **(quick | options))
    assert ("log(income)" in posterior.recipe.names) == offered
