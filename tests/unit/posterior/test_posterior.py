"""Tests of `dbrm.posterior.posterior` and `model`: what users read off a run."""

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import dbrm
from dbrm.errors import DBRMError, InvalidSettingError


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(7)
    table = pd.DataFrame(draw.uniform(0.5, 3.0, size=(60, 4)), columns=["a", "b", "c", "d"])
    response = 1.0 + 2.0 * table["a"] + 0.4 * table["b"] + 0.5 * draw.normal(size=60)
    return table, response.rename("yield")


@pytest.fixture(scope="module")
def exact(data):
    """All sixteen models of four covariates."""
    return dbrm.enumerate_models(*data)


@pytest.fixture(scope="module")
def evolved(data):
    table, _ = data
    draw = np.random.default_rng(8)
    response = 3.0 * np.sin(table["a"] * table["b"]) + table["c"] + 0.1 * draw.normal(size=60)
    return dbrm.fit(
        table,
        response,
        transforms=["sin", "troot"],
        n_chains=2,
        n_populations=12,
        random_state=3,
    )


# ------------------------------------------------------------------ what it is made from


def test_family_link_and_rows_are_public(exact, rng):
    assert (exact.family.name, exact.link.name, exact.n_rows) == ("gaussian", "identity", 60)
    x = rng.normal(size=(40, 1))
    counts = dbrm.enumerate_models(x, rng.poisson(np.exp(x[:, 0])), family="poisson")
    assert (counts.family.name, counts.link.name, counts.n_rows) == ("poisson", "log", 40)
    assert exact.record.exhaustive


def test_features_are_read_as_they_are_written(evolved):
    for text in evolved.features["feature"]:
        assert str(evolved.parse_feature(text)) == text


def test_a_model_by_its_rank(exact):
    """The same features and probability as in the table, coefficients of least squares."""
    for rank, row in enumerate(exact.models.head(3).itertuples()):
        model = exact.model(rank)
        assert model.features == row.features
        assert model.probability == row.probability
    assert exact.model(0).formula == exact.best_model.formula
    for rank in (-1, exact.n_averaged):
        with pytest.raises(InvalidSettingError, match="rank must be between 0 and"):
            exact.model(rank)


def test_inclusion_by_each_chain(evolved):
    """The table agrees with the diagnostics, feature by feature."""
    table = evolved.chain_inclusion
    assert table.shape == (len(evolved.features), 2)
    assert list(table.index) == evolved.features["feature"].tolist()
    spread = table.max(axis=1) - table.min(axis=1)
    assert set(evolved.disagreements) == set(table.index[spread > 0.2])


def test_coefficients_per_standard_deviation(exact, data):
    plain, scaled = exact.coefficients(), exact.coefficients(standardized=True)
    assert scaled["term"].tolist() == plain["term"].tolist()
    unit = [1.0, *(data[0][name].std(ddof=0) for name in plain["term"][1:])]
    for column in ("estimate", "sd", "lower", "upper"):
        np.testing.assert_allclose(scaled[column], plain[column] * unit)


# ----------------------------------------------------------------------------- tables


def test_tables_have_the_promised_columns_sorted(exact, evolved):
    for posterior in (exact, evolved):
        assert list(posterior.features.columns[:5]) == [
            "feature",
            "inclusion",
            "complexity",
            "depth",
            "width",
        ]
        assert list(posterior.models.columns[:5]) == [
            "features",
            "size",
            "log_evidence",
            "log_prior",
            "probability",
        ]
        assert posterior.features["inclusion"].is_monotonic_decreasing
        assert posterior.models["probability"].is_monotonic_decreasing
        assert posterior.models["probability"].sum() == pytest.approx(1.0)
        assert posterior.features["inclusion"].between(0, 1).all()


def test_the_exact_posterior_is_that_of_the_formula(data, exact):
    """Sixteen models by statsmodels and formula (J)."""
    table, response = data
    n = len(response)
    log_posterior = {}
    for code in range(16):
        names = [name for j, name in enumerate("abcd") if code >> j & 1]
        fitted = sm.OLS(response, sm.add_constant(table[names])).fit()
        value = 0.5 * (len(names) + 1) * np.log(2 * np.pi) - 0.5 * n * np.log(fitted.ssr)
        log_posterior[frozenset(names)] = value
    peak = max(log_posterior.values())
    total = sum(np.exp(value - peak) for value in log_posterior.values())
    for row in exact.models.itertuples():
        expected = np.exp(log_posterior[frozenset(row.features)] - peak) / total
        assert row.probability == pytest.approx(expected, rel=1e-8)
    for name in "abcd":
        expected = sum(np.exp(v - peak) for k, v in log_posterior.items() if name in k) / total
        assert exact.inclusion(name) == pytest.approx(expected, rel=1e-8)


def test_inclusion_adds_up_over_models(evolved):
    for row in evolved.features.head(10).itertuples():
        inside = evolved.models["features"].map(lambda names, f=row.feature: f in names)
        expected = evolved.models.loc[inside, "probability"].sum()
        assert row.inclusion == pytest.approx(expected, abs=1e-12)
        assert evolved.inclusion(row.feature) == pytest.approx(row.inclusion)
        assert dbrm.parse_feature(row.feature).complexity == row.complexity


@pytest.mark.parametrize(
    "spelling",
    ["sin(a*b)", "sin(b*a)", "sin(troot(a*a*a)*b)", "sin(troot(a*b*a*b*a*b))", " sin( a * b ) "],
)
def test_any_equivalent_spelling_has_the_same_inclusion(evolved, spelling):
    assert evolved.inclusion("sin(a*b)") > 0.9
    assert evolved.inclusion(spelling) == evolved.inclusion("sin(a*b)")
    assert evolved.inclusion(dbrm.parse_feature(spelling)) == evolved.inclusion("sin(a*b)")


def test_asking_changes_nothing(evolved):
    before = evolved.features.copy()
    evolved.inclusion("sin(a*b*c*d)")
    evolved.inclusion("troot(a*a*a)")
    pd.testing.assert_frame_equal(evolved.features, before)
    assert evolved.inclusion("sin(a*b*c*d)") == 0.0


def test_an_unknown_column_is_an_error_not_zero(evolved):
    with pytest.raises(DBRMError, match="q"):
        evolved.inclusion("sin(q)")


def test_covariates_that_are_always_in_have_inclusion_one(data):
    posterior = dbrm.enumerate_models(*data, always=["c"])
    assert posterior.inclusion("c") == 1.0
    assert "c" not in set(posterior.features["feature"])
    assert "c" in posterior.best_model.features


def test_a_knot_at_a_quantile_can_be_asked_for(data):
    table, _ = data
    response = (table["a"] > table["a"].median()) + 0.01 * np.sin(np.arange(60))
    posterior = dbrm.fit(
        table, response, transforms=["step[q0.5]"], n_chains=1, n_populations=5, random_state=1
    )
    assert posterior.inclusion("step[q0.5](a)") > 0.5


# ------------------------------------------------------------------------- predictions


def test_predictions_average_over_models(data, exact):
    """By hand: every model's least squares, weighted with its probability."""
    table, response = data
    new = table.iloc[:7] + 0.3
    expected = np.zeros(7)
    for row in exact.models.itertuples():
        names = list(row.features)
        fitted = sm.OLS(response, sm.add_constant(table[names])).fit()
        design = sm.add_constant(new[names], has_constant="add")
        expected += row.probability * np.asarray(fitted.predict(design))
    np.testing.assert_allclose(exact.predict(new), expected, rtol=2e-4)


def test_quantiles_of_a_single_model_are_those_of_the_t(data):
    """One column that must be in: t with n - 2 degrees of freedom, as in any textbook."""
    table, response = data
    posterior = dbrm.enumerate_models(table[["a"]], response, always=["a"])
    fitted = sm.OLS(response, sm.add_constant(table[["a"]])).fit()
    new = table[["a"]].iloc[:5] + 0.3
    design = np.asarray(sm.add_constant(new, has_constant="add"))
    inverse = np.asarray(fitted.normalized_cov_params)
    leverage = np.einsum("ni,ij,nj->n", design, inverse, design)
    scale = np.sqrt(fitted.ssr / 58 * (1 + leverage))
    for level in (0.05, 0.5, 0.99):
        expected = stats.t.ppf(level, 58, fitted.predict(design), scale)
        np.testing.assert_allclose(posterior.predict_quantiles(new, level)[:, 0], expected)
    interval = posterior.predict_interval(new, level=0.9)
    np.testing.assert_allclose(interval, posterior.predict_quantiles(new, [0.05, 0.95]))
    scale = np.sqrt(fitted.ssr / 58 * leverage)
    expected = stats.t.ppf([[0.05], [0.95]], 58, fitted.predict(design), scale).T
    np.testing.assert_allclose(posterior.predict_interval(new, level=0.9, of="mean"), expected)


def test_an_interval_is_of_the_response_or_of_its_mean(data, exact):
    with pytest.raises(InvalidSettingError, match=r"of must be 'response' or 'mean'; got of='y'"):
        exact.predict_interval(data[0], of="y")


def test_draws_have_the_moments_of_the_prediction(data, exact):
    """One false alarm per million runs: five standard errors of mean and quantiles."""
    new = data[0].iloc[:4]
    draws = exact.sample_predictive(new, draws=4000, random_state=5)
    assert draws.shape == (4000, 4)
    error = 5 * draws.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(draws.mean(axis=0) - exact.predict(new)) < error)
    below = (draws < exact.predict_quantiles(new, 0.2)[:, 0]).mean(axis=0)
    assert np.all(np.abs(below - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 4000))
    again = exact.sample_predictive(new, draws=4000, random_state=5)
    np.testing.assert_array_equal(draws, again)


def distances(rng, runs):
    """Of one new response per data set from the middle of its 90 % interval, in half widths."""
    found = np.empty(runs)
    for run in range(runs):
        x = rng.normal(size=(41, 2))
        y = 1.0 + x[:, 0] + rng.normal(size=41)
        posterior = dbrm.enumerate_models(x[:40], y[:40])
        low, high = posterior.predict_interval(x[40:], level=0.9)[0]
        found[run] = abs(2.0 * y[40] - low - high) / (high - low)
    return found


# Of thousands of new rows a few are far outside, and are covered or not like others.
@pytest.mark.filterwarnings("ignore:.*far outside the training range:dbrm.errors.DBRMWarning")
@pytest.mark.parametrize("runs", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_intervals_cover_as_often_as_they_say(rng, runs):
    """Binomial band of 4.9 standard errors: one false alarm per million runs.

    Negative control: intervals that are a third shorter miss it.
    """
    distance, band = distances(rng, runs), 4.9 * np.sqrt(0.9 * 0.1 / runs)
    assert abs(np.mean(distance <= 1.0) - 0.9) < band
    assert abs(np.mean(distance <= 0.66) - 0.9) > band


def test_rows_where_a_feature_is_undefined_use_the_other_models(rng):
    x = rng.uniform(1.0, 3.0, size=(50, 2))
    y = np.log(x[:, 0]) + 0.3 * rng.normal(size=50)
    posterior = dbrm.fit(
        x,
        y,
        transforms=["log_abs"],
        prior="jeffreys",
        penalty=0.1,
        max_complexity=2,
        n_chains=1,
        n_populations=4,
        random_state=1,
    )
    share = posterior.inclusion("log_abs(x1)")
    assert 0.05 < share < 0.999
    new = np.array([[2.0, 2.0], [0.0, 2.0]])
    predicted = posterior.predict(new, extrapolate="follow")
    assert np.all(np.isfinite(predicted))
    assert np.all(np.isfinite(posterior.predict_interval(new, extrapolate="follow")))
    # The same by hand, from the models that do not take the logarithm of x1.
    total = mean = 0.0
    for row in posterior.models.itertuples():
        features = [dbrm.parse_feature(text) for text in row.features]
        if any("log_abs(x1)" in text for text in row.features):
            continue
        columns = np.column_stack(
            [np.ones(50), *(f.evaluate({"x1": x[:, 0], "x2": x[:, 1]}) for f in features)]
        )
        beta = np.linalg.lstsq(columns, y)[0]
        at = [1.0, *(f.evaluate({"x1": [0.0], "x2": [2.0]})[0] for f in features)]
        mean += row.probability * (beta @ at)
        total += row.probability
    # Predictions leave out the last ten-thousandth of the mass, which weighs more here.
    assert predicted[1] == pytest.approx(mean / total, rel=5e-3)


def test_a_row_where_no_model_is_defined_is_not_a_number(rng):
    x = rng.uniform(1.0, 3.0, size=(60, 1))
    y = 5 * np.log(x[:, 0]) + 1e-6 * rng.normal(size=60)
    posterior = dbrm.fit(
        x, y, transforms=["log_abs"], max_complexity=2, n_chains=1, n_populations=3, random_state=1
    )
    assert posterior.inclusion("log_abs(x1)") == pytest.approx(1.0)
    new = np.array([[0.0], [2.0]])
    follow = {"extrapolate": "follow"}
    interval = posterior.predict_interval(new, **follow)
    for found in (posterior.predict(new, **follow), interval[:, 0]):
        assert np.isnan(found[0])
        assert np.isfinite(found[1])
    assert np.isnan(posterior.sample_predictive(new, 3, 1, **follow)[:, 0]).all()


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, [0.5, 2.0], [[0.5]], np.nan])
def test_levels_outside_the_unit_interval_are_refused(data, exact, q):
    with pytest.raises(InvalidSettingError, match="q must hold levels strictly between 0 and 1"):
        exact.predict_quantiles(data[0], q)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_an_impossible_level_is_refused(data, exact, level):
    with pytest.raises(InvalidSettingError, match="level must be strictly between 0 and 1"):
        exact.predict_interval(data[0], level=level)


def test_an_offset_is_added_to_predictions(data, rng):
    table, response = data
    shift = rng.normal(size=60)
    posterior = dbrm.enumerate_models(table, response + shift, offset=shift)
    plain = dbrm.enumerate_models(table, response)
    np.testing.assert_allclose(posterior.predict(table), plain.predict(table), rtol=1e-6)
    np.testing.assert_allclose(
        posterior.predict(table, offset=shift), plain.predict(table) + shift, rtol=1e-6
    )


def test_blocks_do_not_matter(data, exact, monkeypatch):
    from dbrm.posterior import prediction as module

    whole = exact.predict_interval(data[0])
    monkeypatch.setattr(module, "_STUDENT_BLOCK", 40)
    np.testing.assert_array_equal(exact.predict_interval(data[0]), whole)


# ------------------------------------------------------------------------- single models


def test_the_best_model_predicts_alike_in_every_form(data, evolved):
    table, _ = data
    best = evolved.best_model
    by_hand = best.fit.coefficients[0] + sum(
        slope * dbrm.parse_feature(text).evaluate(table)
        for slope, text in zip(best.fit.coefficients[1:], best.features, strict=True)
    )
    np.testing.assert_allclose(best.to_callable()(table), by_hand, rtol=1e-10)
    sympy = pytest.importorskip("sympy")
    expression = best.to_sympy()
    symbols = sorted(expression.free_symbols, key=str)
    function = sympy.lambdify(symbols, expression, "numpy")
    values = function(*(table[str(symbol)].to_numpy() for symbol in symbols))
    np.testing.assert_allclose(values, by_hand, rtol=1e-10)
    assert r"\sin" in best.to_latex()
    assert best.probability == evolved.models["probability"].iloc[0]
    assert set(best.features) == set(evolved.models["features"].iloc[0])


def test_the_posterior_s_prediction_is_close_to_a_sure_best_model(data, evolved):
    table, _ = data
    if evolved.best_model.probability > 0.9:
        gap = evolved.predict(table) - evolved.best_model.to_callable()(table)
        assert np.abs(gap).max() < 0.1


def test_coefficients_come_with_intervals(data):
    table, response = data
    model = dbrm.enumerate_models(table, response, always=list("abcd")).best_model
    fitted = sm.OLS(response, sm.add_constant(table)).fit()
    frame = model.coefficients(level=0.9)
    assert list(frame["term"]) == ["(intercept)", "a", "b", "c", "d"]
    np.testing.assert_allclose(frame["estimate"], fitted.params, rtol=1e-8)
    half = stats.t.ppf(0.95, fitted.df_resid) * fitted.bse
    np.testing.assert_allclose(frame["upper"] - frame["estimate"], half, rtol=1e-8)
    assert model.formula.startswith("yield = ")


def test_the_median_probability_model_has_all_features_above_one_half(exact, evolved):
    for posterior in (exact, evolved):
        chosen = posterior.features.query("inclusion > 0.5")["feature"]
        assert set(posterior.median_probability_model.features) == set(chosen)


def test_a_median_probability_model_that_was_never_visited_is_fitted(data, exact):
    """Three features of inclusion 0.6 whose triple is in no model."""
    table, response = data
    merged = exact._merged
    rows = [row for row in range(len(merged.models)) if merged.models.sizes[row] < 3]
    other = copy(exact)
    other.__dict__.pop("median_probability_model", None)
    other._inclusion = np.array([0.6, 0.6, 0.6, 0.1])
    other._merged = replace(
        merged, models=merged.models.take(np.array(rows)), probability=merged.probability[rows]
    )
    model = other.median_probability_model
    assert model.probability == 0.0
    assert len(model.features) == 3
    design = sm.add_constant(table[list(model.features)])
    np.testing.assert_allclose(model.fit.coefficients, sm.OLS(response, design).fit().params)


def test_the_null_model_can_be_exported(rng):
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    posterior = dbrm.enumerate_models(x, y, penalty=30.0)
    best = posterior.best_model
    assert best.features == ()
    assert best.formula == f"y = {y.mean():.6g}"
    np.testing.assert_allclose(
        best.to_callable()({"x1": x[:, 0], "x2": x[:, 1]}), np.full(50, y.mean())
    )
    assert float(best.to_sympy()) == pytest.approx(y.mean())
    np.testing.assert_allclose(posterior.predict(x), y.mean(), atol=1e-6)


def test_a_posterior_survives_pickling(data, evolved):
    again = pickle.loads(pickle.dumps(evolved))  # noqa: S301 (our own)
    np.testing.assert_array_equal(again.predict(data[0]), evolved.predict(data[0]))
    pd.testing.assert_frame_equal(again.models, evolved.models)


def test_text_for_people(evolved):
    assert "sin(a*b)" in evolved.summary()
    assert repr(evolved).startswith("<Posterior")
    assert 0.0 <= evolved.lost_mass < 0.01


# ------------------------------------------------------------------------- averaging


@pytest.fixture(scope="module")
def flat():
    """A posterior spread over more than two thousand models."""
    draw = np.random.default_rng(4)
    x = draw.normal(size=(30, 14))
    return x, dbrm.enumerate_models(x, draw.normal(size=30), prior="g-prior")


def test_averaging_stops_at_the_cap_and_says_so(flat):
    _, posterior = flat
    assert posterior.n_averaged == 2000
    assert posterior.averaged_share == pytest.approx(posterior.models.probability[:2000].sum())
    assert posterior.averaged_share < 0.95
    assert "They average over the 2,000 most probable models" in posterior.summary()


def test_more_models_are_averaged_where_that_is_asked_for(flat, rng):
    x, _ = flat
    y = rng.normal(size=30)
    usual = dbrm.enumerate_models(x, y, prior="g-prior")
    more = dbrm.enumerate_models(x, y, prior="g-prior", max_averaged=3_000)
    assert (usual.n_averaged, more.n_averaged) == (2_000, 3_000)
    assert more.averaged_share == pytest.approx(more.models.probability[:3_000].sum())
    assert np.abs(more.predict(x) - usual.predict(x)).max() > 1e-6
    with pytest.raises(InvalidSettingError, match="max_averaged must be an integer of at least 1"):
        dbrm.enumerate_models(x, y, max_averaged=0)


def test_latent_effects_are_kept_for_few_models_unless_more_are_asked_for(rng, monkeypatch):
    monkeypatch.setattr("dbrm.posterior.source.LATENT_NUMBERS", 1)
    table = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd"))
    table["group"] = np.repeat(np.arange(6.0), 5)
    options = {"latent": dbrm.latent.IID("group"), "algorithm": "enumerate", "penalty": 0.1}
    y = rng.normal(size=30)
    assert dbrm.fit(table, y, **options).n_averaged == 10
    assert dbrm.fit(table, y, **options, max_averaged=14).n_averaged == 14


def test_peaked_posteriors_are_averaged_in_full(exact):
    assert exact.averaged_share >= 0.9999
    assert "Predictions leave models out" not in exact.summary()


def test_the_number_averaged_follows_share_and_work():
    from dbrm.posterior.source import count_averaged

    flat = np.full(5000, 1 / 5000)
    sizes = np.full(5000, 9)
    assert count_averaged(np.array([0.9, 0.099, 1e-3]), sizes[:3], 100) == 3
    assert count_averaged(np.array([0.9, 0.09995, 5e-5]), sizes[:3], 100) == 2
    assert count_averaged(flat, sizes, 100) == 2000
    assert count_averaged(flat, sizes, 20_000) == 1000
    assert count_averaged(flat, sizes, 10_000_000) == 300
    assert count_averaged(flat, sizes, 10_000_000, 4_000) == 4_000
    assert count_averaged(flat, sizes, 100, 6_000) == 5_000


@pytest.mark.parametrize(
    ("family", "left"), [("binomial", "logit(E[y])"), ("poisson", "log(E[y])"), ("gaussian", "y")]
)
def test_the_formula_says_on_which_scale_it_is(rng, family, left):
    """The linear predictor of a logistic model is no value of the response."""
    table = pd.DataFrame({"a": rng.normal(size=60)})
    response = (table["a"] + rng.normal(size=60) > 0).astype(float).rename("y")
    model = dbrm.enumerate_models(table, response, family=family).best_model
    assert model.formula.startswith(f"{left} = ")


def test_means_under_the_inverse_link_stay_positive_and_finite(rng):
    """One over a normal linear predictor has no mean, and is negative for some rows."""
    x = rng.uniform(0.0, 1.0, size=15)
    y = rng.gamma(2.0, 0.5 / (0.5 + x))
    options = {"family": "gamma", "link": "inverse", "always": ["x1"], "algorithm": "enumerate"}
    posterior = dbrm.fit(x[:, None], y, **options)
    rows = np.array([[0.2], [0.5], [1.0], [-5.0]])
    follow = {"extrapolate": "follow"}
    mean = posterior.predict(rows, **follow)
    low, high = posterior.predict_interval(rows, **follow).T
    assert np.all((low[:3] > 0) & (low[:3] < mean[:3]) & (mean[:3] < high[:3]))
    assert np.all(mean[:3] < 10)
    # Far to the left the linear predictor is negative: no model has a mean there.
    assert np.isnan(mean[3])
    assert posterior.extrapolation(rows)["dropped_mass"].tolist() == [0.0, 0.0, 0.0, 1.0]
