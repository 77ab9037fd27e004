"""Tests of `dbrm.posterior.remainder`: predictions where many covariates matter a little."""

import numpy as np
import pandas as pd
import pytest

import dbrm

QUICK = {"n_chains": 1, "n_populations": 3, "random_state": 1}
N_WEAK = 15


def weak(draw, n):
    """Many covariates that matter a little."""
    X = pd.DataFrame(draw.normal(size=(n, N_WEAK)), columns=[f"x{j}" for j in range(N_WEAK)])
    return X, X.sum(axis=1) * 0.3 + draw.normal(size=n) * 1.5


@pytest.fixture(scope="module")
def many():
    draw = np.random.default_rng(4)
    X, y = weak(draw, 90)
    return dbrm.fit(X, y, **QUICK), X, y


def test_many_weak_effects_are_predicted(many):
    """The remainder explains a third of what the formulas leave, in 2,000 new rows."""
    posterior, X, y = many
    alone = dbrm.fit(X, y, remainder=False, **QUICK)
    assert posterior.remainder > 0.9
    assert alone.remainder == 0.0
    new, truth = weak(np.random.default_rng(5), 2_000)
    error, before = (np.mean((truth - p.predict(new)) ** 2) for p in (posterior, alone))
    assert error - 2.25 < 0.67 * (before - 2.25)
    interval = posterior.predict_interval(new)
    covered = np.mean((interval[:, 0] <= truth) & (truth <= interval[:, 1]))
    assert 0.9 < covered < 0.99


def test_formulas_and_inclusion_are_those_without(many):
    posterior, X, y = many
    alone = dbrm.fit(X, y, remainder=False, **QUICK)
    assert posterior.best_model.formula == alone.best_model.formula
    pd.testing.assert_frame_equal(posterior.features, alone.features)


def test_weights_of_both_kinds_of_models_add_up(many):
    posterior, X, _ = many
    models = posterior._predictive
    assert models.probability.sum() == pytest.approx(1.0)
    assert np.all(np.diff(models.probability) <= 0)
    sizes = [1 + own.size for own in models.models]
    assert sizes == [fit.coefficients.size for fit in models.fits]
    assert sum(p for p, s in zip(models.probability, sizes, strict=True) if s > N_WEAK) > 0.9
    effects = posterior.effects.covariates
    assert set(effects) == set(X)


def test_a_few_strong_effects_need_no_remainder():
    draw = np.random.default_rng(2)
    X = pd.DataFrame(draw.normal(size=(150, 8)), columns=list("abcdefgh"))
    y = 3.0 * X["a"] - 2.0 * X["b"] + draw.normal(size=150)
    posterior = dbrm.fit(X, y, **QUICK)
    assert posterior.remainder < 0.2


def test_a_file_predicts_the_same(many, tmp_path):
    posterior, X, _ = many
    posterior.save(tmp_path / "many.dbrm")
    loaded = dbrm.load(tmp_path / "many.dbrm")
    assert loaded.remainder == pytest.approx(posterior.remainder)
    np.testing.assert_array_equal(loaded.predict(X), posterior.predict(X))
    np.testing.assert_array_equal(loaded.predict_interval(X), posterior.predict_interval(X))


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "paper_text"},
        {"always": ["x0"]},
        {"exclude": ["x0"]},
        {"signs": {"x0": "positive"}},
        {"heredity": "weak"},
    ],
)
def test_what_a_remainder_would_not_obey_turns_it_off(many, settings):
    _, X, y = many
    assert dbrm.fit(X, y, **{**QUICK, "n_populations": 1}, **settings).remainder == 0.0


@pytest.fixture(scope="module")
def broods():
    """Eighty groups of three rows, each with a level of its own; and three columns of noise."""
    draw = np.random.default_rng(7)
    group = np.repeat(np.arange(80), 3)
    level = draw.normal(size=80)
    X = pd.DataFrame(draw.normal(size=(240, 3)), columns=list("abc"))
    X["brood"] = [f"b{g}" for g in group]
    y = level[group] + 0.4 * draw.normal(size=240)
    return X, y, level[group]


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_levels_of_few_rows_are_predicted(broods):
    X, y, mean = broods
    posterior = dbrm.fit(X, y, **QUICK)
    assert posterior.remainder > 0.99
    assert np.corrcoef(posterior.predict(X), mean)[0, 1] > 0.9
    # Formulas are not made from them.
    assert not any("brood" in name for name in posterior.features["feature"])
    unknown = X.assign(brood="b999")
    assert np.std(posterior.predict(unknown)) < 0.5 * np.std(mean)
    first = X.assign(brood="b3")
    spread = posterior.predict(first).mean() - posterior.predict(unknown).mean()
    assert spread == pytest.approx(mean[9], abs=0.6)


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_levels_of_few_rows_survive_a_file(broods, tmp_path):
    X, y, _ = broods
    posterior = dbrm.fit(X, y, **QUICK)
    posterior.save(tmp_path / "broods.dbrm")
    loaded = dbrm.load(tmp_path / "broods.dbrm")
    np.testing.assert_array_equal(loaded.predict(X), posterior.predict(X))
