"""`dbrm.fit` with random slopes and curves, and latent effects in formulas."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import FormulaError, InvalidDataError
from dbrm.formula_latent import take_latent_terms
from dbrm.latent import RandomIntercept, RandomSlope, Smooth


def simulate(seed=1, n_sites=12, n_each=10):
    rng = np.random.default_rng(seed)
    site = np.repeat([f"s{j}" for j in range(n_sites)], n_each)
    dose = rng.gamma(4.0, 25.0, site.size)
    a, b = rng.normal(size=(2, n_sites)) * [[0.7], [0.012]]
    number = np.repeat(np.arange(n_sites), n_each)
    mean = 2.0 + 0.02 * dose + a[number] + b[number] * (dose - 100.0)
    table = pd.DataFrame({"dose": dose, "noise": rng.normal(size=site.size), "site": site})
    return table, pd.Series(mean + 0.4 * rng.normal(size=site.size), name="y"), b


@pytest.fixture(scope="module")
def data():
    return simulate()


@pytest.fixture(scope="module")
def posterior(data):
    X, y, _ = data
    effects = [RandomIntercept("site"), RandomSlope("site", "dose")]
    return dbrm.enumerate_models(X, y, penalty=2.0, latent=effects, max_latent=1)


def test_slopes_are_selected_like_other_effects(posterior):
    assert posterior.inclusion("RandomSlope(site, dose)") > 0.99
    assert posterior.inclusion("dose") > 0.5
    assert posterior.inclusion("noise") < 0.5
    values = posterior.latent.iloc[0]["hyperparameters"]
    assert 0.3 < values["slope_precision"] ** -0.5 / 0.012 < 3.0
    assert 0.3 < values["precision"] ** -0.5 / 0.7 < 3.0
    assert "RandomSlope(site, dose)" in posterior.summary()


def test_slopes_of_groups_are_in_units_of_the_covariate(posterior, data):
    b = data[2]
    table = posterior.latent_effect("RandomSlope(site, dose)")
    assert table.columns[:2].tolist() == ["site", "term"]
    slopes = table[table["term"] == "dose"].set_index("site")["mean"]
    found = slopes[[f"s{j}" for j in range(12)]].to_numpy()
    assert np.corrcoef(found, b)[0, 1] > 0.9
    assert np.polyfit(b, found, 1)[0] == pytest.approx(1.0, abs=0.4)


def test_predictions_for_known_and_new_groups(posterior, data):
    X, y, _ = data
    assert np.mean((posterior.predict(X) - y) ** 2) < 0.2
    new = pd.DataFrame({"dose": [100.0, 400.0] * 2, "noise": 0.0, "site": ["s1"] * 2 + ["x"] * 2})
    known, far, unseen, unseen_far = posterior.predict_sd(new)
    assert unseen > known
    # A slope that nobody knows matters more the further from the mean dose.
    assert unseen_far - unseen > far - known > 0


def test_a_saved_posterior_predicts_the_same(posterior, data, tmp_path):
    new = data[0].head(6).assign(site=["s1", "s2", "new", "s3", "s0", "s1"])
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    np.testing.assert_allclose(loaded.predict(new), posterior.predict(new), rtol=1e-12)
    np.testing.assert_allclose(loaded.predict_sd(new), posterior.predict_sd(new), rtol=1e-12)
    name = "RandomSlope(site, dose)"
    pd.testing.assert_frame_equal(loaded.latent_effect(name), posterior.latent_effect(name))


def test_the_report_shows_slopes(posterior, tmp_path):
    axes = posterior.plot.latent("RandomSlope(site, dose)")
    assert {label.get_text() for label in axes.get_xticklabels()} == {f"s{j}" for j in range(12)}
    posterior.report(tmp_path / "run.html")
    assert "RandomSlope(site, dose)" in (tmp_path / "run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("formula", "rest", "names"),
    [
        ("y ~ x + (1 | g)", "y ~ x", ["RandomIntercept(g)"]),
        ("y ~ (x | g) + x", "y ~ x", ["RandomSlope(g, x)"]),
        ("y ~ x+(x || g)", "y ~ x", ["RandomIntercept(g)", "RandomSlope(g, 0 + x)"]),
        ("y ~ (1 | g)", "y ~ 1", ["RandomIntercept(g)"]),
        ("y ~ (1|g) + (1|h) + x", "y ~ x", ["RandomIntercept(g)", "RandomIntercept(h)"]),
        ("y ~ s(age) + x", "y ~ age + x", ["Smooth(age)"]),
        ("y ~ I(a | b) + x", "y ~ I(a | b) + x", []),
        ("y ~ (a + b):c", "y ~ (a + b):c", []),
    ],
)
def test_latent_terms_of_formulas(formula, rest, names):
    assert take_latent_terms(formula) == (rest, names)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ x * (1 | g)", "must be a term of its own"),
        ("y ~ x - (1 | g)", "must be a term of its own"),
        ("y ~ x + (1 | g):x", "must be a term of its own"),
        ("y ~ x + (a + b | g)", "one by one"),
    ],
)
def test_latent_terms_that_cannot_be_read(formula, message):
    with pytest.raises(FormulaError, match=message):
        take_latent_terms(formula)


def test_a_formula_offers_the_same_effects_as_the_setting(data):
    X, y, _ = data
    table = X.assign(y=y)
    how = {"penalty": 2.0}
    formula = dbrm.enumerate_models("y ~ dose + (dose || site)", data=table, **how)
    effects = ["RandomIntercept(site)", "RandomSlope(site, 0 + dose)"]
    given = dbrm.enumerate_models(X[["dose", "site"]], y, latent=effects, **how)
    pd.testing.assert_frame_equal(formula.models, given.models)
    new = X.head(3).assign(site=["s1", "new", "s2"])
    np.testing.assert_allclose(formula.predict(new), given.predict(new))
    # The report repeats the call without the bars, and with the effects.
    assert formula.record.formula == "y ~ dose"


def test_a_dot_leaves_groups_out(data):
    X, y, _ = data
    dotted = dbrm.enumerate_models("y ~ . + (1 | site)", data=X.assign(y=y), penalty=2.0)
    assert set(dotted.features["feature"]) <= {"dose", "noise"}


def test_a_column_of_an_effect_that_is_not_there(data):
    X, y, _ = data
    with pytest.raises(InvalidDataError, match=r"lacks the column 'sit' .did you mean 'site'"):
        dbrm.enumerate_models("y ~ dose + (1 | sit)", data=X.assign(y=y))


def test_a_curve_is_found_and_extrapolates_with_growing_uncertainty():
    rng = np.random.default_rng(2)
    age = rng.uniform(20.0, 80.0, 200)
    table = pd.DataFrame({"age": age, "x": rng.normal(size=200)})
    table["y"] = 3.0 + table["x"] + np.sin(age / 7.0) + 0.3 * rng.normal(size=200)
    posterior = dbrm.enumerate_models("y ~ x + s(age)", data=table, penalty=2.0)
    assert posterior.inclusion("Smooth(age)") > 0.99
    truth = 3.0 + np.sin(table["age"] / 7.0) + table["x"]
    assert np.std(posterior.predict(table) - truth) < 0.12
    new = pd.DataFrame({"age": [50.0, 95.0], "x": 0.0})
    inside, outside = posterior.predict_sd(new)
    assert outside > 2 * inside
    assert Smooth("age").name == "Smooth(age)"
