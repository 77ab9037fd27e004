"""Responses of classes from data to predictions: `dbrm.fit`, files, reports, the command line."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import InvalidDataError, InvalidSettingError, UnknownNameError

ORDER = ["low", "middle", "high", "top"]


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(np.random.default_rng(5).normal(size=(260, 3)), columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def grades(table):
    latent = 1.5 * table["a"] - table["b"] + np.random.default_rng(6).logistic(size=len(table))
    texts = np.array(ORDER)[np.digitize(latent, [-2.0, 0.0, 2.0])]
    return pd.Series(pd.Categorical(texts, categories=ORDER, ordered=True), name="grade")


@pytest.fixture(scope="module")
def kinds(table):
    eta = np.column_stack([np.zeros(len(table)), 1.5 * table["a"], -1.5 * table["a"] + table["b"]])
    gumbel = np.random.default_rng(7).gumbel(size=eta.shape)
    return pd.Series(np.array(["oak", "ash", "elm"])[(eta + gumbel).argmax(axis=1)], name="tree")


@pytest.fixture(scope="module")
def ordinal(table, grades):
    return dbrm.enumerate_models(table, grades, family="ordinal")


@pytest.fixture(scope="module")
def multinomial(table, kinds):
    return dbrm.enumerate_models(table, kinds, family="multinomial")


def test_ordered_classes_are_found_and_predicted(ordinal, table, grades):
    assert min(ordinal.inclusion("a"), ordinal.inclusion("b")) > 0.99
    assert ordinal.classes == tuple(ORDER)
    chances = ordinal.predict_proba(table)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(ordinal.predict(table), np.array(ORDER)[chances.argmax(axis=1)])
    interval = ordinal.predict_interval(table, level=0.8)
    numbers = {label: number for number, label in enumerate(ORDER)}
    low, high = np.vectorize(numbers.get)(interval).T
    inside = np.mean((low <= grades.cat.codes) & (grades.cat.codes <= high))
    assert 0.8 <= inside <= 1.0
    median = ordinal.predict_quantiles(table, 0.5)[:, 0]
    cumulative = np.cumsum(chances, axis=1)
    np.testing.assert_array_equal(median, np.array(ORDER)[(cumulative >= 0.5).argmax(axis=1)])
    draws = ordinal.sample_predictive(table[:2], draws=20_000, random_state=1)
    shares = [[np.mean(draws[:, row] == label) for label in ORDER] for row in range(2)]
    np.testing.assert_allclose(shares, chances[:2], atol=0.02)


def test_ranked_probability_score(ordinal, table, grades):
    chances = ordinal.predict_proba(table)
    codes = grades.cat.codes.to_numpy()
    by_hand = 0.0
    for k in range(3):
        by_hand += np.mean((chances[:, : k + 1].sum(axis=1) - (codes <= k)) ** 2)
    assert ordinal.ranked_probability_score(table, grades) == pytest.approx(by_hand)
    assert ordinal.ranked_probability_score(table, grades.astype(str)) == pytest.approx(by_hand)
    with pytest.raises(InvalidDataError, match=r"y holds 'huge'; the classes in training were low"):
        ordinal.ranked_probability_score(table, ["huge"] * len(table))


def test_several_classes_are_found_and_predicted(multinomial, table, kinds):
    assert min(multinomial.inclusion("a"), multinomial.inclusion("b")) > 0.99
    assert multinomial.classes == ("ash", "elm", "oak")
    chances = multinomial.predict_proba(table)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
    assert np.mean(multinomial.predict(table) == kinds) > 0.6
    for call in ("predict_interval", "predict_sd"):
        with pytest.raises(InvalidSettingError, match=r"have no order.*family='ordinal'"):
            getattr(multinomial, call)(table)
    with pytest.raises(InvalidSettingError, match="ordered classes"):
        multinomial.ranked_probability_score(table, kinds)


def test_coefficients_name_thresholds_and_classes(ordinal, multinomial):
    terms = ordinal.best_model.coefficients()
    assert terms["term"].tolist()[:4] == ["low | middle", "middle | high", "high | top", "a"]
    assert np.all(np.diff(terms["estimate"][:3]) > 0)
    several = multinomial.best_model.coefficients()
    assert several["class"].tolist() == ["elm", "oak"] * (len(several) // 2)
    assert several["term"].tolist()[:4] == ["(intercept)", "(intercept)", "a", "a"]
    assert np.all(several["lower"] < several["upper"])
    with pytest.raises(InvalidSettingError, match="predict_proba of the posterior"):
        multinomial.best_model.to_python()
    assert "a" in ordinal.best_model.to_python(scale="link")


@pytest.mark.parametrize("name", ["ordinal", "multinomial"])
def test_files_and_reports(name, request, table, tmp_path):
    posterior = request.getfixturevalue(name)
    posterior.save(tmp_path / "classes.dbrm")
    again = dbrm.load(tmp_path / "classes.dbrm")
    assert again.classes == posterior.classes
    np.testing.assert_array_equal(again.predict_proba(table), posterior.predict_proba(table))
    assert again.summary() == posterior.summary()
    again.report(tmp_path / "page.html")
    assert posterior.record.response in (tmp_path / "page.html").read_text("utf-8")


def test_probit_is_kept_in_files(table, grades, tmp_path):
    posterior = dbrm.enumerate_models(table, grades, family="ordinal", link="probit")
    posterior.save(tmp_path / "probit.dbrm")
    again = dbrm.load(tmp_path / "probit.dbrm")
    assert again.family.link == "probit"
    np.testing.assert_array_equal(again.predict_proba(table), posterior.predict_proba(table))


def test_numbers_and_formulas(table, grades, ordinal):
    numbers = dbrm.enumerate_models(table, grades.cat.codes.to_numpy() + 1, family="ordinal")
    assert numbers.classes == (1, 2, 3, 4)
    np.testing.assert_allclose(numbers.predict_proba(table), ordinal.predict_proba(table))
    data = table.assign(grade=grades)
    formula = dbrm.enumerate_models("grade ~ a + b + c", data=data, family="ordinal")
    np.testing.assert_allclose(formula.predict_proba(data), ordinal.predict_proba(table))


def test_weights_are_repeated_rows(table, kinds):
    weights = np.random.default_rng(1).integers(1, 3, size=len(table))
    weighted = dbrm.enumerate_models(table, kinds, family="multinomial", sample_weight=weights)
    repeated = dbrm.enumerate_models(
        table.loc[table.index.repeat(weights)].reset_index(drop=True),
        kinds.repeat(weights).reset_index(drop=True),
        family="multinomial",
    )
    np.testing.assert_allclose(
        weighted.predict_proba(table), repeated.predict_proba(table), atol=1e-9
    )


def test_binomial_responses_have_probabilities_too(table, kinds):
    posterior = dbrm.enumerate_models(table, kinds == "oak", family="binomial")
    chances = posterior.predict_proba(table)
    np.testing.assert_array_equal(chances[:, 1], posterior.predict(table))
    with pytest.raises(InvalidSettingError, match="predict_proba is for classes"):
        dbrm.enumerate_models(table, table["a"] + 0.1).predict_proba(table)


def test_what_classes_cannot_do_is_said(table, grades, kinds):
    with pytest.raises(UnknownNameError, match=r"'ordnal'.*'ordinal'"):
        dbrm.enumerate_models(table, grades, family="ordnal")
    with pytest.raises(InvalidDataError, match="family='ordinal' needs one"):
        dbrm.enumerate_models(table, kinds, family="ordinal")
    with pytest.raises(InvalidSettingError, match="latent= works with the families"):
        dbrm.enumerate_models(table, kinds, family="multinomial", latent=[dbrm.latent.IID()])
    with pytest.raises(InvalidSettingError, match="device='gpu'"):
        dbrm.enumerate_models(table, kinds, family="multinomial", device="gpu")
    with pytest.raises(InvalidDataError, match="has no trials"):
        dbrm.enumerate_models(table, kinds, family="multinomial", trials=np.ones(len(table)))
    with pytest.raises(InvalidSettingError, match="leave link= out"):
        dbrm.enumerate_models(table, kinds, family="multinomial", link="probit")
    with pytest.raises(InvalidDataError, match="NaN or missing"):
        dbrm.enumerate_models(table, kinds.where(kinds != "oak"), family="multinomial")


@pytest.fixture(scope="module")
def weakly():
    """Three classes that ten covariates tell apart together, each a little."""
    draw = np.random.default_rng(3)
    X = pd.DataFrame(draw.normal(size=(150, 10)), columns=[f"x{j}" for j in range(10)])
    effects = np.column_stack([np.zeros(10), draw.normal(size=(10, 2))]) * 0.7
    y = np.array(["oak", "ash", "elm"])[
        (X.to_numpy() @ effects + draw.gumbel(size=(150, 3))).argmax(axis=1)
    ]
    settings = {"n_chains": 1, "n_populations": 2, "sweep_projections": False, "random_state": 1}
    return X, y, settings, effects


def test_weak_effects_of_many_covariates_are_predicted(weakly, tmp_path):
    X, y, settings, effects = weakly
    posterior = dbrm.fit(X, y, family="multinomial", **settings)
    alone = dbrm.fit(X, y, family="multinomial", remainder=False, **settings)
    assert posterior.remainder > 0.9
    assert alone.remainder == 0.0
    assert posterior.best_model.formula == alone.best_model.formula
    new = pd.DataFrame(np.random.default_rng(4).normal(size=(2_000, 10)), columns=X.columns)
    powers = np.exp(new.to_numpy() @ effects)
    truth = (powers / powers.sum(axis=1, keepdims=True))[:, [1, 2, 0]]  # ash, elm, oak

    def divergence(p):
        return np.mean(np.sum(truth * np.log(truth / p.predict_proba(new)), axis=1))

    assert divergence(posterior) < 0.8 * divergence(alone)
    # The order in which features are listed does not matter.
    models, table = posterior._predictive, posterior._inner_recipe.apply(X)
    last = len(models.features) - 1
    turned = replace(
        models,
        features=models.features[::-1],
        models=[last - members for members in models.models],
    )
    found = [np.vstack([b.probabilities for b in m.blocks(table)]) for m in (models, turned)]
    np.testing.assert_allclose(*found, atol=1e-12)
    posterior.save(tmp_path / "trees.dbrm")
    loaded = dbrm.load(tmp_path / "trees.dbrm")
    np.testing.assert_array_equal(loaded.predict_proba(new[:50]), posterior.predict_proba(new[:50]))
