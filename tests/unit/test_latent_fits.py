"""`dbrm.fit` with latent effects: selection, tables, predictions, files, bad input."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import dbrm
from dbrm.errors import InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.latent import AR1, IID, OU, RW1, RandomIntercept
from dbrm.posterior import diagnose

QUICK = {"n_chains": 1, "n_populations": 2, "n_iter": 40, "population_size": 5, "sweep": 0}


def simulate(seed=1, n=120):
    rng = np.random.default_rng(seed)
    t = np.arange(n) + 0.0
    walk = np.cumsum(0.3 * rng.normal(size=n))
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    X["t"] = t
    X["site"] = np.array(["n", "s", "w"])[rng.integers(0, 3, n)]
    y = rng.poisson(np.exp(1.0 + 0.6 * X["a"] + walk - walk.mean()))
    return X, pd.Series(y, name="falls")


@pytest.fixture(scope="module")
def data():
    return simulate()


@pytest.fixture(scope="module")
def posterior(data):
    X, y = data
    effects = [RW1("t"), IID("t"), RandomIntercept("site")]
    return dbrm.enumerate_models(X, y, family="poisson", penalty=3.0, latent=effects, max_latent=2)


def test_effects_are_selected_with_features(posterior):
    assert posterior.inclusion("RW1(t)") > 0.9
    assert posterior.inclusion("a") > 0.9
    assert posterior.inclusion("RandomIntercept(site)") < 0.5
    table = posterior.latent
    assert table["effect"][0] == "RW1(t)"
    assert table["inclusion"].is_monotonic_decreasing
    assert table["hyperparameters"][0]["precision"] > 0
    assert posterior.best_model.formula.endswith("+ RW1(t)")
    assert posterior.median_probability_model.latent == ("RW1(t)",)


def test_every_model_is_there_once(posterior):
    """Four subsets of two columns, seven of three effects with at most two."""
    models = posterior.models
    assert len(models) <= 4 * 7
    assert not models.duplicated(["features", "latent"]).any()
    assert models["latent"].map(len).max() == 2
    assert models["probability"].sum() == pytest.approx(1.0)
    penalty = models["features"].map(len) + models["latent"].map(len)
    np.testing.assert_allclose(models["log_prior"], -3.0 * penalty)


@pytest.mark.parametrize(("charge", "units"), [("hyperparameter", [1, 2]), ("effect", [1, 1])])
def test_an_effect_costs_its_hyperparameters_or_as_much_as_any_other(data, charge, units):
    """RW1 has one hyperparameter, AR1 two."""
    X, y = data
    X, y = X[["a", "t"]][:40], y[:40]
    options = {"family": "poisson", "penalty": 3.0, "latent": [RW1("t"), AR1("t")]}
    found = dbrm.enumerate_models(X, y, latent_charge=charge, max_latent=1, **options)
    alone = found.models[found.models["features"].map(len) == 0].set_index("latent")["log_prior"]
    assert [alone[("RW1(t)",)], alone[("AR1(t)",)]] == [-3.0 * unit for unit in units]


def test_positions_and_groups_are_no_covariates(posterior):
    assert set(posterior.features["feature"]) <= {"a", "b"}


def test_the_summary_tells_of_effects(posterior):
    text = posterior.summary()
    assert "Latent effects" in text
    assert "RW1(t)" in text


def test_the_curve_follows_the_walk(posterior, data):
    y = data[1]
    curve = posterior.latent_effect("RW1(t)")
    smooth = np.log1p(y).rolling(15, center=True, min_periods=1).mean()
    assert np.corrcoef(curve["mean"], smooth)[0, 1] > 0.8
    assert (curve["lower"] < curve["upper"]).all()
    assert abs(curve["mean"].mean()) < 1e-8


def test_pictures_of_effects(posterior, tmp_path):
    axes = posterior.plot.latent()
    assert axes.get_xlabel() == "t"
    groups = posterior.plot.latent("RandomIntercept(site)")
    assert {label.get_text() for label in groups.get_xticklabels()} == {"n", "s", "w"}
    posterior.report(tmp_path / "run.html")
    assert "Latent effect RW1(t)" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_there_is_no_picture_without_effects(data):
    X, y = data
    plain = dbrm.enumerate_models(X[["a", "b"]], y, family="poisson")
    assert plain.latent.empty
    with pytest.raises(InvalidSettingError, match="No latent effects were offered"):
        plain.plot.latent()


def test_predictions_know_positions_and_groups(posterior, data):
    X, y = data
    mean = posterior.predict(X)
    flat = np.exp(np.log(y.mean()))
    assert np.mean((mean - y) ** 2) < 0.5 * np.mean((flat - y) ** 2)
    new = pd.DataFrame(
        {"a": 0.0, "b": 0.0, "t": [50.0, 50.5, 400.0], "site": ["n", "never seen", "s"]}
    )
    # Far beyond the data everything is possible.
    spread = posterior.predict_sd(new) / posterior.predict(new)
    assert spread[2] > 1.5 * spread[0]


def test_rows_in_any_order_give_the_same_posterior(posterior, data, rng):
    X, y = data
    order = rng.permutation(len(y))
    effects = [RW1("t"), IID("t"), RandomIntercept("site")]
    again = dbrm.enumerate_models(
        X.iloc[order], y.iloc[order], family="poisson", penalty=3.0, latent=effects, max_latent=2
    )
    np.testing.assert_allclose(
        again.models["log_evidence"], posterior.models["log_evidence"], atol=1e-5
    )


def test_a_saved_posterior_predicts_the_same(posterior, data, tmp_path):
    X, _ = data
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    new = X.head(5).assign(t=[3.0, 3.5, 500.0, -4.0, 7.0])
    np.testing.assert_array_equal(loaded.predict(new), posterior.predict(new))
    pd.testing.assert_frame_equal(loaded.latent, posterior.latent)
    pd.testing.assert_frame_equal(loaded.latent_effect("RW1(t)"), posterior.latent_effect("RW1(t)"))
    assert loaded.best_model.formula == posterior.best_model.formula


@pytest.mark.parametrize(
    "algorithm",
    ["gmjmcmc", "mjmcmc", "rgmjmcmc", pytest.param("pool-gibbs", marks=pytest.mark.slow)],
)
def test_every_algorithm_selects_effects(algorithm):
    X, y = simulate(2, 80)
    options = QUICK | {"n_final": 150 if algorithm == "mjmcmc" else 10}
    posterior = dbrm.fit(
        X,
        y,
        family="poisson",
        prior="jeffreys",
        penalty=3.0,
        algorithm=algorithm,
        latent=[RW1("t"), IID("t")],
        random_state=1,
        **options,
    )
    assert posterior.inclusion("RW1(t)") > 0.5
    assert posterior.models["latent"].map(len).max() <= 2
    exact = dbrm.enumerate_models(X, y, family="poisson", penalty=3.0, latent=[RW1("t"), IID("t")])
    known = {(row.features, row.latent): row.log_evidence for row in exact.models.itertuples()}
    shared = [
        (row.log_evidence, known[row.features, row.latent])
        for row in posterior.models.itertuples()
        if (row.features, row.latent) in known
    ]
    assert len(shared) >= 2
    np.testing.assert_allclose(*np.array(shared).T, atol=0.02)


def test_same_seed_same_result():
    X, y = simulate(3, 80)
    runs = [
        dbrm.fit(X, y, family="poisson", latent=[OU("t")], random_state=4, n_jobs=jobs, **QUICK)
        for jobs in (1, 1)
    ]
    pd.testing.assert_frame_equal(runs[0].models, runs[1].models)


def test_a_formula_may_name_the_position_as_a_covariate(data):
    X, y = data
    table = X.assign(falls=y)
    options = {"family": "poisson", "penalty": 3.0, "latent": RW1("t"), "algorithm": "enumerate"}
    plain = dbrm.fit("falls ~ a", data=table, **options)
    both = dbrm.fit("falls ~ a + t", data=table, **options)
    assert set(plain.features["feature"]) <= {"a"}
    assert "t" in set(both.features["feature"])
    assert plain.predict(table).shape == (len(y),)
    kept = dbrm.fit(X[["a", "t"]], y, always="t", **options)
    assert kept.inclusion("t") == 1.0


def test_arrays_have_numbered_columns(data):
    X, y = data
    array = X[["a", "t"]].to_numpy()
    posterior = dbrm.enumerate_models(array, y, family="poisson", penalty=3.0, latent=RW1("x2"))
    assert posterior.latent["effect"].tolist() == ["RW1(x2)"]
    assert posterior.predict(array[:4]).shape == (4,)


def test_one_effect_in_every_row_takes_up_overdispersion(rng):
    X = pd.DataFrame({"a": rng.normal(size=150)})
    y = rng.negative_binomial(1.0, 1.0 / (1.0 + np.exp(1.0 + 0.5 * X["a"])))
    posterior = dbrm.enumerate_models(X, y, family="poisson", penalty=3.0, latent=IID())
    assert posterior.inclusion("IID()") > 0.9
    assert posterior.predict_interval(X.head(3)).shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"latent": [AR1("time")]}, InvalidDataError, "'time'"),
        ({"latent": [AR1("site")]}, InvalidDataError, "numbers as positions"),
        ({"latent": ["AR1"]}, InvalidSettingError, "latent must hold latent effects"),
        ({"latent": [AR1("t"), AR1("t")]}, InvalidSettingError, "more than once"),
        ({"latent": [AR1("t")], "max_latent": -1}, InvalidSettingError, "max_latent"),
        (
            {"latent": [AR1("t")], "evidence": lambda X, y: 0.0},
            InvalidSettingError,
            "cannot be combined",
        ),
    ],
)
def test_bad_settings_are_named(data, options, error, message):
    X, y = data
    with pytest.raises(error, match=message):
        dbrm.fit(X, y, family="poisson", **QUICK | options)


def test_bad_columns_are_named(data):
    X, y = data
    options = QUICK | {"family": "poisson"}
    with pytest.raises(InvalidDataError, match="no value in row 3"):
        dbrm.fit(X.assign(t=X["t"].where(X.index != 3)), y, latent=RW1("t"), **options)
    with pytest.raises(InvalidDataError, match="at least 2 different groups"):
        dbrm.fit(X.assign(site="n"), y, latent=RandomIntercept("site"), **options)
    with pytest.raises(InvalidDataError, match="same in every row"):
        dbrm.fit(X, np.full(len(y), 3), latent=RW1("t"), **options)
    with pytest.raises(InvalidDataError, match="add a covariate"):
        dbrm.fit(X[["t"]], y, latent=RW1("t"), **options)


def test_new_rows_need_their_positions(posterior, data):
    X, _ = data
    with pytest.raises(InvalidDataError, match="'t'"):
        posterior.predict(X.drop(columns="t"))
    with pytest.raises(UnknownNameError, match="no latent effect"):
        posterior.latent_effect("OU(t)")


def test_log_evidence_of_one_model(posterior, data):
    """The same number as in the table of all models."""
    X, y = data
    rows = posterior.models
    chosen = rows[(rows["features"] == ("a",)) & (rows["latent"] == ("RW1(t)",))].iloc[0]
    value = dbrm.log_evidence(X[["a", "t"]], y, family="poisson", latent=RW1("t"))
    assert value == pytest.approx(chosen.log_evidence, abs=0.01)
    plain = dbrm.log_evidence(X[["a"]], y, family="poisson")
    assert value > plain + 10


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path):
    """Values do not depend on what was evaluated before."""
    X, y = simulate(5, 60)
    effects = [RW1("t"), IID("t")]
    options = QUICK | {"family": "poisson", "latent": effects, "random_state": 3, "n_chains": 2}
    whole = dbrm.fit(X, y, **options)
    dbrm.fit(X, y, checkpoint=tmp_path / "run", **options)
    again = dbrm.resume(tmp_path / "run", latent=effects)
    pd.testing.assert_frame_equal(whole.models, again.models)
    new = X.head(3)
    np.testing.assert_array_equal(whole.predict(new), again.predict(new))


def test_estimators_take_effects(data):
    X, y = data
    model = dbrm.DBRMRegressor(
        family="poisson", latent=[RW1("t")], algorithm="enumerate", penalty=3.0
    )
    frame = X[["a", "b", "t"]]
    fitted = clone(model).fit(frame, y)
    assert fitted.posterior_.inclusion("RW1(t)") > 0.9
    np.testing.assert_array_equal(fitted.predict(frame), fitted.posterior_.predict(frame))


def test_chains_that_disagree_on_an_effect_say_so(posterior):
    """Two chains, made up: one saw only models with the walk, the other only those without."""
    merged = posterior._merged
    has = (merged.models.latent & np.uint64(1)) > 0
    torn = replace(merged, visited=[np.flatnonzero(has), np.flatnonzero(~has)])
    assert diagnose(torn, [None, None]).latent_disagreements[0] == 0
    same = replace(merged, visited=[np.arange(len(has)), np.arange(len(has))])
    assert diagnose(same, [None, None]).latent_disagreements == []


@dataclass(frozen=True)
class Drift(dbrm.Latent):
    """An effect of one's own: a random walk under another name, without a bridge."""

    column: str
    hyperparameters = ("log_precision",)
    start = (1.0,)
    nullity = 1

    def precision(self, psi, positions):
        return RW1("t").precision(psi, positions)

    def log_determinant(self, psi, positions):
        return RW1("t").log_determinant(psi, positions)

    def log_hyperprior(self, psi):
        return RW1("t").log_hyperprior(psi)


def test_effects_of_ones_own(data, tmp_path):
    """They fit, predict and, passed again, load as the built-in effect they imitate."""
    X, y = data
    frame = X[["a", "t"]]
    options = {"family": "poisson", "penalty": 3.0}
    own = dbrm.enumerate_models(frame, y, latent=Drift("t"), **options)
    known = dbrm.enumerate_models(frame, y, latent=RW1("t"), **options)
    np.testing.assert_allclose(own.models["log_evidence"], known.models["log_evidence"])
    new = frame.head(4).assign(t=[2.0, 2.25, -3.0, 200.0])
    np.testing.assert_allclose(own.predict(new), known.predict(new), rtol=1e-6)
    own.save(tmp_path / "own.dbrm")
    with pytest.raises(InvalidSettingError, match="latent effect of your own"):
        dbrm.load(tmp_path / "own.dbrm")
    loaded = dbrm.load(tmp_path / "own.dbrm", latent=[Drift("t")])
    np.testing.assert_array_equal(loaded.predict(new), own.predict(new))
