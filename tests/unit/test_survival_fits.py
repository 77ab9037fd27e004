"""Survival times through the public functions: intake, predictions, files, messages."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import FormulaError, InvalidDataError, InvalidSettingError
from dbrm.posterior.concordance import concordance_index

FAMILIES = ("cox", "weibull")


def simulate(rng, n=80, *, shape=1.5):
    """A table whose hazard depends on ``a``; about two thirds of the times are events."""
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    time = rng.weibull(shape, n) * np.exp(-0.9 * table["a"] / shape) * 10.0
    censored = rng.exponential(20.0, n)
    table["time"] = np.minimum(time, censored)
    table["status"] = (time <= censored).astype(int)
    return table


def structured(table):
    out = np.empty(len(table), dtype=[("event", bool), ("time", float)])
    out["event"], out["time"] = table["status"] == 1, table["time"]
    return out


@pytest.fixture
def table(rng):
    return simulate(rng)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_ways_to_give_the_times_agree(family, table):
    options = {"family": family}
    covariates = table[["a", "b"]]
    found = [
        dbrm.enumerate_models(covariates, table["time"], event=table["status"], **options),
        dbrm.enumerate_models(table, "time", event="status", **options),
        dbrm.enumerate_models(covariates, structured(table), **options),
        dbrm.enumerate_models("Surv(time, status) ~ a + b", data=table, **options),
        dbrm.enumerate_models("Surv(time, status) ~ .", data=table, **options),
        dbrm.enumerate_models("Surv(0*time, time, status == 1) ~ a + b", data=table, **options),
    ]
    first = found[0].models["log_evidence"].to_numpy()
    for other in found[1:]:
        np.testing.assert_allclose(other.models["log_evidence"], first, rtol=1e-12)
    value = dbrm.log_evidence(covariates, table["time"], event=table["status"], family=family)
    assert value == pytest.approx(first[found[0].models["size"] == 2][0])
    assert found[0].inclusion("a") > 0.99


def test_strata_and_entries_as_columns_of_a_formula_or_a_table(rng, table):
    table["site"] = rng.choice(["north", "south"], len(table))
    table["start"] = 0.5 * table["time"] * rng.random(len(table))
    text = "Surv(start, time, status) ~ a + b + strata(site)"
    one = dbrm.enumerate_models(text, data=table, family="cox")
    two = dbrm.enumerate_models(
        table, "time", event="status", entry="start", strata="site", family="cox"
    )
    np.testing.assert_allclose(one.models["log_evidence"], two.models["log_evidence"])
    assert one.record.strata == ("north", "south")
    new = table[:5]
    curves = two.predict_survival(new, [2.0, 5.0], strata=new["site"])
    other = two.predict_survival(new, [2.0, 5.0], strata=["north"] * 5)
    same = (new["site"] == "north").to_numpy()
    assert np.array_equal(curves.survival[same], other.survival[same])
    assert not np.any(curves.survival[~same] == other.survival[~same])
    with pytest.raises(InvalidSettingError, match="pass strata="):
        two.predict_survival(new, [2.0])
    with pytest.raises(InvalidDataError, match="'east'; the strata in training were north, south"):
        two.predict_interval(new, strata=["east"] * 5)


def breslow(table, beta, x, times):
    """Survival without ties, by the definition of the baseline hazard."""
    eta = table["a"].to_numpy() * beta
    out = []
    for time in times:
        dead = (table["status"] == 1) & (table["time"] <= time)
        jumps = [1 / np.exp(eta[table["time"] >= t]).sum() for t in table.loc[dead, "time"]]
        out.append(np.exp(-np.sum(jumps) * np.exp(beta * x)))
    return np.array(out)


def test_cox_curves_are_those_of_the_baseline_hazard(table):
    """Plug-in predictions against the definition, and bands against differences."""
    options = {"event": table["status"], "family": "cox", "always": ["a"]}
    covariates, times = table[["a"]], [0.0, 2.0, 5.0, 12.0]
    posterior = dbrm.enumerate_models(covariates, table["time"], uncertainty="plugin", **options)
    fit = posterior.best_model.fit
    beta, variance = fit.coefficients[1], fit.covariance[1, 1]
    new = pd.DataFrame({"a": [0.4, -1.2]})
    curves = posterior.predict_survival(new, times)
    for row, x in enumerate(new["a"]):
        np.testing.assert_allclose(curves.survival[row], breslow(table, beta, x, times), rtol=1e-9)
    integrated = dbrm.enumerate_models(covariates, table["time"], **options)
    bands = integrated.predict_survival(new, times[1:], level=0.9)

    def log_hazard(b):
        return np.log(-np.log(breslow(table, b, 0.4, times[1:])))

    slope = (log_hazard(beta + 1e-5) - log_hazard(beta - 1e-5)) / 2e-5
    eta = table["a"].to_numpy() * beta
    noise = []
    for time in times[1:]:
        dead = table.loc[(table["status"] == 1) & (table["time"] <= time), "time"]
        totals = np.array([np.exp(eta[table["time"] >= t]).sum() for t in dead])
        noise.append(np.sum(totals**-2.0) / np.sum(1 / totals) ** 2)
    half = 1.6448536 * np.sqrt(slope**2 * variance + np.array(noise))
    centre = log_hazard(beta)
    np.testing.assert_allclose(bands.lower[0], np.exp(-np.exp(centre + half)), rtol=1e-5)
    np.testing.assert_allclose(bands.upper[0], np.exp(-np.exp(centre - half)), rtol=1e-5)


def test_weibull_curves_agree_with_draws_of_the_parameters(rng, table):
    posterior = dbrm.enumerate_models(
        table[["a"]], table["time"], event=table["status"], family="weibull", always=["a"]
    )
    joint = posterior.best_model.fit.joint
    mode = np.concatenate([joint.ancillary, joint.coefficients.ravel()])
    draws = rng.multivariate_normal(mode, joint.covariance, size=200_000)
    times = np.array([1.0, 6.0, 25.0])
    curves = posterior.predict_survival(pd.DataFrame({"a": [0.7]}), times, level=0.9)
    for place, time in enumerate(times):
        u = (np.log(time) - draws[:, 0] - 0.7 * draws[:, 2]) * np.exp(-draws[:, 1])
        survival = np.exp(-np.exp(u))
        # Normal in log hazard, while the draws are exact: second order in the uncertainty.
        assert curves.survival[0, place] == pytest.approx(survival.mean(), abs=0.01)
        assert curves.lower[0, place] == pytest.approx(np.quantile(survival, 0.05), abs=0.02)
        assert curves.upper[0, place] == pytest.approx(np.quantile(survival, 0.95), abs=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_quantiles_invert_the_survival_curve(family, table):
    posterior = dbrm.enumerate_models(table, "time", event="status", family=family)
    new = table[:6]
    quantiles = posterior.predict_quantiles(new, [0.25, 0.5])
    for row, (early, median) in enumerate(quantiles):
        survival = posterior.predict_survival(new[row : row + 1], [early, median]).survival[0]
        if family == "weibull":
            np.testing.assert_allclose(survival, [0.75, 0.5], atol=1e-8)
        else:
            before = posterior.predict_survival(new[row : row + 1], [0.999999 * early]).survival
            assert survival[0] <= 0.75 < before[0, 0]
    draws = posterior.sample_predictive(new, draws=4000, random_state=1)
    # Six rows, 4000 draws: one false alarm in a million at 5.2 standard errors.
    share = np.mean(draws <= quantiles[:, 1], axis=0)
    chance = 1 - np.array(
        [
            posterior.predict_survival(new[r : r + 1], q).survival[0, 0]
            for r, q in enumerate(quantiles[:, 1])
        ]
    )
    assert np.all(np.abs(share - chance) < 5.2 * np.sqrt(0.25 / 4000))


def test_cox_quantiles_beyond_the_data_are_infinite(table):
    posterior = dbrm.enumerate_models(table, "time", event="status", family="cox")
    healthy = pd.DataFrame({"a": [-2.5], "b": [0.0]})
    assert np.isinf(posterior.predict_quantiles(healthy, 0.999)[0, 0])
    assert np.isfinite(posterior.predict(healthy)[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_posterior_predicts_the_same_bits(family, table, tmp_path):
    posterior = dbrm.enumerate_models(table, "time", event="status", family=family)
    posterior.save(tmp_path / "times.dbrm")
    loaded = dbrm.load(tmp_path / "times.dbrm")
    one, two = (p.predict_survival(table[:9], [1.0, 4.0, 40.0]) for p in (posterior, loaded))
    for name in ("survival", "lower", "upper"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert np.array_equal(posterior.predict(table[:9]), loaded.predict(table[:9]))
    assert posterior.summary() == loaded.summary()
    loaded.report(tmp_path / "times.html")
    assert "survival response" in (tmp_path / "times.html").read_text(encoding="utf-8")


def test_cox_has_no_intercept(table):
    posterior = dbrm.enumerate_models(table, "time", event="status", family="cox")
    best = posterior.best_model
    assert best.formula.startswith("log hazard ratio of time = ")
    assert "0 +" not in best.formula
    assert best.coefficients()["term"].tolist() == list(best.features)
    assert "(intercept)" not in posterior.coefficients()["term"].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_the_rows_does_not_matter(family, rng, table):
    moved = table.iloc[rng.permutation(len(table))]
    one, two = (
        dbrm.enumerate_models(rows, "time", event="status", family=family)
        for rows in (table, moved)
    )
    np.testing.assert_allclose(one.models["log_evidence"], two.models["log_evidence"], rtol=1e-12)
    new = table[:4]
    np.testing.assert_allclose(
        one.predict_survival(new, [3.0]).lower, two.predict_survival(new, [3.0]).lower, rtol=1e-8
    )


def test_concordance_agrees_with_its_definition(rng):
    time, event = np.ceil(8 * rng.random(40)), rng.random(40) < 0.6
    risk = np.round(rng.normal(size=40), 1)
    good, pairs = 0.0, 0
    for i in range(40):
        for j in range(40):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                pairs += 1
                good += 1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j])
    assert concordance_index(time, event, risk) == pytest.approx(good / pairs)


@pytest.mark.parametrize("family", FAMILIES)
def test_estimator_follows_scikit_survival(family, table):
    from sklearn.base import clone

    model = clone(dbrm.DBRMSurvival(family=family, algorithm="enumerate"))
    y = structured(table)
    model.fit(table[["a", "b"]], y)
    risk = model.predict(table[["a", "b"]])
    assert np.corrcoef(risk, table["a"])[0, 1] > 0.9
    assert model.score(table[["a", "b"]], y) > 0.6
    matrix = model.predict_survival_function(table[:3][["a", "b"]], return_array=True)
    assert matrix.shape == (3, model.unique_times_.size)
    assert np.all(np.diff(matrix, axis=1) <= 0)
    curve = model.predict_survival_function(table[:3][["a", "b"]])[1]
    assert curve(0.0) == 1.0
    assert np.array_equal(curve(model.unique_times_), matrix[1])
    hazard = model.predict_cumulative_hazard_function(table[:3][["a", "b"]])[1]
    np.testing.assert_allclose(hazard.y, -np.log(matrix[1]))
    assert hazard(0.0) == 0.0


def test_estimator_refuses_other_responses(table):
    with pytest.raises(InvalidDataError, match="structured array with a boolean field"):
        dbrm.DBRMSurvival().fit(table[["a"]], table["time"])
    with pytest.raises(InvalidSettingError, match="needs family='cox' or 'weibull'"):
        dbrm.DBRMSurvival(family="poisson").fit(table[["a"]], structured(table))
    wrong = np.zeros(3, dtype=[("time", float), ("other", float)])
    with pytest.raises(InvalidDataError, match="got the fields time"):
        dbrm.DBRMSurvival().fit(table[["a"]][:3], wrong)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"family": "coxx"}, Exception, "Did you mean 'cox'"),
        ({"family": "weibul"}, Exception, "Did you mean 'weibull'"),
        ({"family": "gaussian"}, InvalidSettingError, "event= belongs to survival times"),
        ({"event": "nothing"}, InvalidDataError, "event='nothing' is not a column"),
        ({"family": "weibull", "strata": "b"}, InvalidSettingError, "belongs to family='cox'"),
        ({"device": "gpu"}, InvalidSettingError, "family='cox' works, on the CPU"),
        ({"link": "log"}, InvalidSettingError, "has no other link function"),
        (
            {"latent": dbrm.latent.RandomIntercept("b")},
            InvalidSettingError,
            "works with the families binomial, .* got family='cox'",
        ),
        ({"exposure": np.ones(80)}, InvalidDataError, "has no exposure"),
    ],
)
def test_what_does_not_go_together_says_what_does(change, error, message, table):
    options = {"event": "status", "family": "cox", **change}
    with pytest.raises(error, match=message):
        dbrm.enumerate_models(table, "time", **options)


def test_formula_with_other_times_is_refused(table):
    with pytest.raises(FormulaError, match=r"Surv\(time, event\)"):
        dbrm.fit("Surv(time) ~ a", data=table, family="cox")
    with pytest.raises(InvalidDataError, match="names event already"):
        dbrm.fit("Surv(time, status) ~ a", data=table, event="status", family="cox")


def test_predictions_for_other_families_are_refused(table):
    posterior = dbrm.enumerate_models(table[["a", "b"]], table["time"], family="gamma")
    with pytest.raises(InvalidSettingError, match="family='cox' or 'weibull'"):
        posterior.predict_survival(table[["a", "b"]], [1.0])


@pytest.mark.parametrize("family", FAMILIES)
def test_search_finds_a_nonlinear_hazard(family, rng):
    """Features are built as for any other family."""
    n = 250
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    time = rng.weibull(1.5, n) * np.exp(-(0.8 * table["a"] + 0.9 * table["b"] ** 2) / 1.5)
    table["time"], table["status"] = np.minimum(time, 1.5), (time <= 1.5).astype(int)
    posterior = dbrm.fit(
        table, "time", event="status", family=family, random_state=1, n_chains=1, n_populations=3
    )
    assert posterior.inclusion("a") > 0.9
    assert any("b" in f and f != "b" for f in posterior.features["feature"][:4])
    assert posterior.concordance(table, table["time"], table["status"]) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_what_they_claim(family, rng):
    """Bands of the survival probability at the median time, and intervals of new times.

    With 300 curves and 300 new times coverage of 95 % has a standard error of 1.3 %.
    """
    inside, held = [], []
    for _ in range(60):
        table, new = simulate(rng, 120), simulate(rng, 5)
        posterior = dbrm.enumerate_models(table, "time", event="status", family=family)
        curves = posterior.predict_survival(new, [6.0])
        truth = np.exp(-((6.0 / 10.0) ** 1.5) * np.exp(0.9 * new["a"]))
        inside += list((curves.lower[:, 0] <= truth) & (truth <= curves.upper[:, 0]))
        lower, upper = posterior.predict_interval(new).T
        drawn = rng.weibull(1.5, 5) * np.exp(-0.9 * new["a"] / 1.5) * 10.0
        held += list((lower <= drawn) & (drawn <= upper))
    assert 0.90 <= np.mean(inside) <= 0.99
    assert 0.90 <= np.mean(held) <= 0.99


def test_a_run_can_be_resumed(table, tmp_path):
    """The folder keeps events and strata."""
    table["site"] = np.where(table["b"] > 0, "up", "down")
    options = {"event": "status", "strata": "site", "family": "cox", "random_state": 1}
    effort = {"n_chains": 1, "n_populations": 2, "checkpoint": str(tmp_path / "run")}
    posterior = dbrm.fit(table, "time", **options, **effort)
    again = dbrm.resume(tmp_path / "run")
    assert again.models.equals(posterior.models)
    assert again.record.strata == ("down", "up")


def test_equal_rows_are_merged_into_weights(table):
    """But not a death with a censored time."""
    twice = pd.concat([table, table, table.assign(status=0)])
    weights = np.concatenate([2.0 * np.ones(len(table)), np.ones(len(table))])
    once = pd.concat([table, table.assign(status=0)])
    one = dbrm.enumerate_models(twice, "time", event="status", family="cox")
    two = dbrm.enumerate_models(once, "time", event="status", sample_weight=weights, family="cox")
    np.testing.assert_allclose(one.models["log_evidence"], two.models["log_evidence"])


def test_rows_out_of_core_are_refused(rng, tmp_path):
    simulate(rng, 1001).to_parquet(tmp_path / "times.parquet")
    options = {"event": "status", "family": "cox", "subsample": 1000}
    with pytest.raises(InvalidSettingError, match="family='cox' needs all rows in memory; these"):
        dbrm.fit(tmp_path / "times.parquet", "time", **options)


def test_checks_against_responses_are_refused(table):
    posterior = dbrm.enumerate_models(table, "time", event="status", family="cox")
    with pytest.raises(InvalidSettingError, match=r"posterior\.checks\.scores"):
        posterior.checks.residuals()


@pytest.mark.parametrize("family", FAMILIES)
def test_plot_of_survival_curves(family, table):
    """Curves begin at one and fall; those at high risk lie below."""
    posterior = dbrm.enumerate_models(table, "time", event="status", family=family)
    low, _, high = posterior.plot.survival().lines
    for line in (low, high):
        assert line.get_ydata()[0] == 1.0
        assert np.all(np.diff(line.get_ydata()) <= 1e-12)
    assert np.all(high.get_ydata()[1:] <= low.get_ydata()[1:])
    assert len(posterior.plot.survival(table[:2]).lines) == 2
    other = dbrm.enumerate_models(table[["a"]], table["time"], family="gamma")
    with pytest.raises(InvalidSettingError, match="family='cox' or 'weibull'"):
        other.plot.survival()


def test_a_stratum_without_events_has_no_quantiles(table):
    table["site"] = np.where(np.arange(len(table)) < 5, "empty", "full")
    table.loc[:4, "status"] = 0
    posterior = dbrm.enumerate_models(table, "time", event="status", strata="site", family="cox")
    new = table[:2]
    assert np.all(np.isinf(posterior.predict_interval(new, strata=["empty"] * 2)))
    assert np.all(posterior.predict_survival(new, [5.0], strata=["empty"] * 2).survival == 1.0)
    assert np.all(np.isfinite(posterior.predict_quantiles(new, 0.1, strata=["full"] * 2)))
