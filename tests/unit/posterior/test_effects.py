"""Tests of averaged coefficients, `posterior.effects` and `posterior.checks`."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dbrm
from dbrm.errors import InvalidSettingError, UnknownNameError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = pd.DataFrame(
        {
            "a": rng.normal(10.0, 3.0, 120),
            "b": rng.normal(size=120),
            "noise": rng.normal(size=120),
            "site": rng.choice(["east", "north", "south"], 120),
            "flag": rng.random(120) < 0.5,
        }
    )
    mean = 0.4 * X["a"] - 0.25 * X["b"] + 1.5 * (X["site"] == "south") + 0.8 * X["flag"]
    return X, pd.Series(mean + rng.normal(size=120), name="y")


@pytest.fixture(scope="module", params=[None, "standard"])
def posterior(request, data):
    return dbrm.enumerate_models(*data, scale=request.param)


@pytest.fixture(scope="module")
def counts(data):
    X, y = data
    response = np.random.default_rng(3).poisson(np.exp(0.15 * y))
    return dbrm.enumerate_models(X, response.astype(float), family="poisson"), response


def average_by_hand(posterior, term):
    """Draws of one coefficient from every model in turn, zero where it is absent."""
    rng, draws = np.random.default_rng(0), []
    for row in range(posterior.n_averaged):
        names = posterior.models["features"][row]
        share = posterior.models["probability"][row] / posterior.averaged_share
        size = round(400_000 * share)
        if term not in names:
            draws.append(np.zeros(size))
            continue
        fit = posterior._averaged.fits[row]
        j = 1 + names.index(term)
        spread = np.sqrt(fit.dispersion * fit.covariance[j, j])
        noise = stats.t.rvs(fit.degrees_of_freedom, size=size, random_state=rng)
        draws.append(fit.coefficients[j] + spread * noise)
    return np.concatenate(draws)


@pytest.mark.parametrize("term", ["a", "b", "noise"])
def test_averaged_coefficients_are_those_of_draws(posterior, term):
    """Means and quantiles of 400,000 draws; six standard errors of the mean."""
    draws = average_by_hand(posterior, term)
    row = posterior.coefficients(0.9).set_index("term").loc[term]
    assert abs(draws.mean() - row["estimate"]) < 6 * draws.std() / np.sqrt(draws.size) + 1e-4
    assert draws.std() == pytest.approx(row["sd"], rel=0.02)
    expected = np.quantile(draws, [0.05, 0.95])
    np.testing.assert_allclose(
        [row["lower"], row["upper"]], expected, atol=0.02 * draws.std() + 1e-3
    )


def test_a_doubtful_coefficient_has_zero_in_its_interval(posterior):
    table = posterior.coefficients().set_index("term")
    doubtful = table[table["inclusion"] < 0.9].index
    assert doubtful.size
    assert np.all(table.loc[doubtful, "lower"] <= 0.0)
    assert np.all(table.loc[doubtful, "upper"] >= 0.0)
    certain = table.loc["a"]
    assert certain["lower"] > 0.0


def test_conditional_coefficients_do_not_shrink(posterior):
    plain = posterior.coefficients().set_index("term")
    given = posterior.coefficients(conditional=True).set_index("term")
    np.testing.assert_allclose(plain["estimate"], plain["inclusion"] * given["estimate"])


def test_partial_dependence_is_the_mean_of_predictions(posterior, data):
    X, _ = data
    curve = posterior.effects.partial_dependence("a", grid=[4.0, 10.0, 15.5])
    for row in curve.itertuples():
        expected = posterior.predict(X.assign(a=row.value)).mean()
        assert row.mean == pytest.approx(expected)
        assert row.lower < row.mean < row.upper


def test_partial_dependence_of_factors_and_switches(posterior, data):
    X, _ = data
    sites = posterior.effects.partial_dependence("site")
    assert sites["value"].tolist() == ["east", "north", "south"]
    expected = [posterior.predict(X.assign(site=site)).mean() for site in sites["value"]]
    np.testing.assert_allclose(sites["mean"], expected)
    flags = posterior.effects.partial_dependence("flag")
    assert flags["value"].tolist() == [0.0, 1.0]
    assert flags["mean"][1] == pytest.approx(posterior.predict(X.assign(flag=True)).mean())


def test_bands_cover_what_is_not_known(data):
    """Of a straight line: the t interval of its own value, as least squares has it."""
    X, y = data
    line = dbrm.fit(X[["a"]], y, always=["a"], algorithm="enumerate")
    design = np.column_stack([np.ones(120), X["a"]])
    fit = line.best_model.fit
    at = np.array([1.0, 12.0])
    half = stats.t.ppf(0.975, fit.degrees_of_freedom) * np.sqrt(
        fit.dispersion * at @ np.linalg.inv(design.T @ design) @ at
    )
    curve = line.effects.partial_dependence("a", grid=[12.0], draws=20_000).iloc[0]
    assert 0.5 * (curve["upper"] - curve["lower"]) == pytest.approx(half, rel=0.05)


def test_marginal_effects_are_slopes_and_differences(posterior, data):
    X, _ = data
    found = posterior.effects.marginal_effects().set_index("covariate")
    up, down = (posterior.predict(X.assign(a=X["a"] + step)).mean() for step in (0.5, -0.5))
    assert found.loc["a", "effect"] == pytest.approx(up - down, rel=1e-6)
    south, east = (posterior.predict(X.assign(site=site)).mean() for site in ("south", "east"))
    assert found.loc["site[south]", "effect"] == pytest.approx(south - east)
    on, off = (posterior.predict(X.assign(flag=flag)).mean() for flag in (True, False))
    assert found.loc["flag", "effect"] == pytest.approx(on - off)
    assert np.all((found["lower"] <= found["effect"]) & (found["effect"] <= found["upper"]))


def test_marginal_effects_under_a_link(counts, data):
    """The slope of the mean, not of the linear predictor."""
    posterior, _ = counts
    X, _ = data
    found = posterior.effects.marginal_effects().set_index("covariate").loc["a", "effect"]
    step = 0.005 * X["a"].std()
    up, down = (posterior.predict(X.assign(a=X["a"] + s)).mean() for s in (step, -step))
    assert found == pytest.approx((up - down) / (2 * step), rel=1e-3)


def test_contributions_add_up_to_the_prediction(posterior, data):
    X, _ = data
    table = posterior.effects.contributions(X)
    np.testing.assert_allclose(table.sum(axis=1), posterior.predict(X), rtol=1e-9)
    inner = table.drop(columns="(baseline)")
    np.testing.assert_allclose(inner.mean(), 0.0, atol=1e-9)


def test_pooled_and_ordered_levels_are_what_predictions_are(rng):
    X = pd.DataFrame({"site": rng.choice(["east", "north", "south"], 150)})
    X.loc[3:5, "site"] = ["one", "two", "two"]
    grades = ["low", "mid", "top"]
    X["grade"] = pd.Categorical(rng.choice(grades, 150), grades, ordered=True)
    y = X["grade"].cat.codes + 2.0 * (X["site"] == "east") + rng.normal(size=150)
    posterior = dbrm.enumerate_models(X, y)
    for name, levels, labels in [
        ("site", ["east", "north", "south", "two"], ["east", "north", "south", "2 rare levels"]),
        ("grade", grades, grades),
    ]:
        found = posterior.effects.partial_dependence(name)
        assert found["value"].tolist() == labels
        expected = [posterior.predict(X.assign(**{name: level})).mean() for level in levels]
        np.testing.assert_allclose(found["mean"], expected)
    slopes = posterior.effects.marginal_effects().set_index("covariate")["effect"]
    assert set(slopes.index) >= {"site[2 rare levels]", "grade[mid]", "grade[top]"}
    assert slopes["grade[top]"] == pytest.approx(found["mean"][2] - found["mean"][0])


def test_unknown_names_and_levels_are_refused(posterior):
    with pytest.raises(UnknownNameError, match=r"no covariate 'z'\. Covariates: a, b"):
        posterior.effects.partial_dependence("z")
    with pytest.raises(InvalidSettingError, match="'west' is no level of 'site'"):
        posterior.effects.partial_dependence("site", grid=["west"])
    with pytest.raises(InvalidSettingError, match="level must be strictly between 0 and 1"):
        posterior.effects.marginal_effects(level=1.0)
    with pytest.raises(InvalidSettingError, match="level must be strictly between 0 and 1"):
        posterior.coefficients(level=95)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "binomial", "gamma"])
def test_quantile_residuals_are_standard_normal(family):
    """Kolmogorov's test on new rows, one false alarm per million; a control breaks the law."""
    rng = np.random.default_rng(21)
    x = rng.normal(size=(900, 1))
    eta, trials = 1.0 + 0.4 * x[:, 0], None
    if family == "binomial":
        trials = np.full(900, 12.0)
    y = {
        "gaussian": lambda e: e + rng.normal(size=e.size),
        "poisson": lambda e: rng.poisson(np.exp(e)),
        "binomial": lambda e: rng.binomial(12, 1 / (1 + np.exp(-e))),
        "gamma": lambda e: rng.gamma(2.0, np.exp(e) / 2.0),
    }[family](eta).astype(float)
    part = None if trials is None else trials[:450]
    posterior = dbrm.fit(
        x[:450], y[:450], trials=part, family=family, always=["x1"], algorithm="enumerate"
    )
    residuals = posterior.checks.residuals(x[450:], y[450:], trials=part)
    assert stats.kstest(residuals, "norm").pvalue > 1e-6
    shifted = np.minimum(y[450:] * 1.5 + 1.0, 12.0 if family == "binomial" else np.inf)
    wrong = posterior.checks.residuals(x[450:], shifted, trials=part)
    assert stats.kstest(wrong, "norm").pvalue < 1e-6


def test_calibration_of_probabilities():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 1))
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(float)
    posterior = dbrm.fit(x, y, family="binomial", always=["x1"], algorithm="enumerate")
    table = posterior.checks.calibration(bins=8)
    assert table["count"].sum() == 400
    assert table["predicted"].is_monotonic_increasing
    assert (table["observed"] * table["count"]).sum() == pytest.approx(y.sum())
    inside = (table["lower"] <= table["predicted"]) & (table["predicted"] <= table["upper"])
    assert inside.sum() >= 6
    turned = posterior.checks.calibration(x, 1.0 - y, bins=8)
    assert (
        (turned["lower"] <= turned["predicted"]) & (turned["predicted"] <= turned["upper"])
    ).sum() < 4


def test_calibration_of_intervals(posterior):
    table = posterior.checks.calibration(bins=9)
    np.testing.assert_allclose(table["predicted"], np.arange(1, 10) / 10)
    assert np.all(np.diff(table["observed"]) >= 0)
    with pytest.raises(InvalidSettingError, match="bins must be at least 1"):
        posterior.checks.calibration(bins=0)


def test_predictive_checks_see_what_a_family_misses(data):
    """Overdispersed counts: a Poisson law has too small a standard deviation, and a gamma
    mixture of it has not.
    """
    rng = np.random.default_rng(8)
    x = rng.normal(size=(200, 1))
    y = rng.negative_binomial(0.8, 0.8 / (0.8 + np.exp(1.0 + 0.3 * x[:, 0]))).astype(float)
    chance = {}
    for family in ("poisson", "negative_binomial"):
        posterior = dbrm.fit(x, y, family=family, always=["x1"], algorithm="enumerate")
        table = posterior.checks.predictive(draws=300).set_index("statistic")
        chance[family] = table.loc["standard deviation", "probability"]
        assert (
            table.loc["mean", "lower"] < table.loc["mean", "observed"] < table.loc["mean", "upper"]
        )
    assert chance["poisson"] < 0.01
    assert 0.02 < chance["negative_binomial"] < 0.98
