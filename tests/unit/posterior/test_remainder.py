"""Tests of `dbrm.posterior.remainder`: predictions where many covariates matter a little."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.features import evaluate
from dbrm.posterior.remainder import find_remainder
from dbrm.status import Status

QUICK = {"n_chains": 1, "n_populations": 3, "sweep_projections": False, "random_state": 1}
UNIT = {"name": "jeffreys", "constant": "unit_information"}
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
    interval, some = posterior.predict_interval(new[:400]), truth[:400]
    covered = np.mean((interval[:, 0] <= some) & (some <= interval[:, 1]))
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


def visits(draw, groups):
    """One to four rows of each group, with a level of its own, and three columns of noise."""
    level = draw.normal(size=groups)
    group = np.repeat(np.arange(groups), draw.integers(1, 5, size=groups))
    X = pd.DataFrame(draw.normal(size=(group.size, 3)), columns=list("abc"))
    X["site"] = [f"s{g}" for g in group]
    return X, level[group] + 0.3 * draw.normal(size=group.size), group


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_levels_of_one_row_and_new_ones_are_predicted_with_their_uncertainty():
    """Each bound is about four standard errors of a share wide: 60 of 120 levels are new.

    Without the effects of levels, or with new ones for certain, one of the bounds fails.
    """
    X, y, group = visits(np.random.default_rng(17), 120)
    first = np.unique(group, return_index=True)[1]
    known = group < 60
    later = known & ~np.isin(np.arange(group.size), first)
    # Of half of the known levels one row is known.
    train = known & ((group % 2 == 0) | ~later)
    posterior = dbrm.fit(X[train], y[train], **QUICK)
    assert posterior.remainder > 0.9
    single, new = later & ~train, ~known
    error = y[single] - posterior.predict(X[single])
    assert np.mean(error**2) < 0.5 * np.mean((y[single] - y[train].mean()) ** 2)
    for rows, share in ((single, 0.13), (new, 0.11)):
        low, high = posterior.predict_interval(X[rows]).T
        assert np.mean((low <= y[rows]) & (y[rows] <= high)) > 0.95 - share
    widths = [np.diff(posterior.predict_interval(X[rows])).mean() for rows in (single, new)]
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_columns_of_levels_with_one_row_each_are_left_out(many):
    """An identifier has no variance of its own: predictions are those without it."""
    _, X, y = many
    plain = dbrm.fit(X, y, **QUICK)
    named = dbrm.fit(X.assign(name=[f"row {i}" for i in range(len(X))]), y, **QUICK)
    np.testing.assert_array_equal(named.predict(X.assign(name="other")), plain.predict(X))


def curves(draw, n):
    """Ten covariates with weak effects that bend, beside noise."""
    X = pd.DataFrame(draw.uniform(-2, 2, size=(n, 10)), columns=[f"x{j}" for j in range(10)])
    return X, 0.4 * np.abs(X).sum(axis=1).to_numpy(), draw.normal(size=n)


def test_weak_effects_may_bend():
    draw = np.random.default_rng(11)
    X, mean, noise = curves(draw, 200)
    settings = {**QUICK, "transforms": ["exp"]}
    posterior = dbrm.fit(X, mean + noise, **settings)
    assert posterior.remainder > 0.8
    assert any("hinge" in feature.text for feature in posterior._remainder.features)
    new, truth, _ = curves(np.random.default_rng(12), 2_000)
    alone = dbrm.fit(X, mean + noise, remainder=False, **settings)
    error, before = (np.mean((truth - p.predict(new)) ** 2) for p in (posterior, alone))
    assert error < 0.67 * before


def pairs(draw, n):
    """Six covariates of which each two together matter a little."""
    X = pd.DataFrame(draw.normal(size=(n, 6)), columns=list("abcdef"))
    mean = sum(0.25 * X.iloc[:, i] * X.iloc[:, j] for i in range(6) for j in range(i))
    return X + 3.0, mean.to_numpy(), draw.normal(size=n)


def test_weak_effects_of_two_covariates_together(tmp_path):
    X, mean, noise = pairs(np.random.default_rng(31), 150)
    posterior = dbrm.fit(X, mean + noise, **QUICK)
    assert any(f.text == "a*b" for f in posterior._remainder.features)
    new, truth, _ = pairs(np.random.default_rng(32), 1_000)
    alone = dbrm.fit(X, mean + noise, remainder=False, **QUICK)
    error, before = (np.mean((truth - p.predict(new)) ** 2) for p in (posterior, alone))
    assert error < 0.67 * before
    posterior.save(tmp_path / "pairs.dbrm")
    loaded = dbrm.load(tmp_path / "pairs.dbrm")
    np.testing.assert_array_equal(loaded.predict(new), posterior.predict(new))


def test_tables_of_two_covariates_have_formulas_only():
    """All of them can be in the formula, which goes on outside the training range."""
    draw = np.random.default_rng(7)
    X = pd.DataFrame(draw.uniform(0, 7, size=(100, 2)), columns=["x", "z"])
    y = np.abs(X["x"] % 2 - 1) + 0.1 * draw.normal(size=100)
    assert dbrm.fit(X, y, **{**QUICK, "n_populations": 1}).remainder == 0.0


@pytest.fixture(scope="module")
def classes():
    draw = np.random.default_rng(21)
    X, y = weak(draw, 250)
    return X, (y + draw.logistic(size=250) > 0).astype(float)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_classes_and_counts_have_one(classes, family, tmp_path):
    X, y = classes
    posterior = dbrm.fit(X, y, family=family, **QUICK)
    alone = dbrm.fit(X, y, family=family, remainder=False, **QUICK)
    assert posterior.best_model.formula == alone.best_model.formula
    pd.testing.assert_frame_equal(posterior.features, alone.features)
    assert (posterior.remainder > 0.9) == (family == "binomial")
    posterior.save(tmp_path / "classes.dbrm")
    loaded = dbrm.load(tmp_path / "classes.dbrm")
    np.testing.assert_array_equal(loaded.predict(X), posterior.predict(X))


def test_weak_effects_of_classes_are_predicted(classes):
    X, y = classes
    posterior, alone = (
        dbrm.fit(X, y, family="binomial", remainder=remainder, **QUICK)
        for remainder in (None, False)
    )
    draw = np.random.default_rng(22)
    new, latent = weak(draw, 3_000)
    truth = latent + draw.logistic(size=3_000) > 0

    def loss(found):
        p = found.predict(new)
        return -np.mean(np.where(truth, np.log(p), np.log1p(-p)))

    assert loss(posterior) < loss(alone) - 0.02


def test_a_few_strong_effects_of_classes_need_none():
    draw = np.random.default_rng(3)
    X = pd.DataFrame(draw.normal(size=(400, 8)), columns=list("abcdefgh"))
    y = (3.0 * X["a"] - 2.0 * X["b"] + draw.logistic(size=400) > 0).astype(float)
    assert dbrm.fit(X, y, family="binomial", **QUICK).remainder < 0.5


@pytest.fixture(scope="module")
def separable():
    """Sixteen columns tell the classes apart together; a few of them do so by chance."""
    draw = np.random.default_rng(41)

    def rows(n):
        common = draw.normal(size=(n, 1))
        X = pd.DataFrame(common + 0.7 * draw.normal(size=(n, 16))).add_prefix("x")
        return X, (3.0 * X.mean(axis=1) + 0.5 * draw.logistic(size=n) > 0).astype(float)

    (X, y), (new, truth) = rows(70), rows(1_000)
    new = new.clip(X.min(), X.max(), axis=1)

    def loss(**settings):
        """Log loss of new rows, and the posterior."""
        found = dbrm.fit(X, y, family="binomial", **QUICK, **settings)
        p = found.predict(new)
        return -np.mean(np.log(np.where(truth == 1, p, 1 - p))), found

    return loss


def test_formulas_that_separate_classes_do_not_outweigh_a_remainder(separable):
    """Under Jeffreys' rule, which takes the highest likelihood for the evidence."""
    loss, posterior = separable(prior=UNIT)
    assert posterior.remainder > 0.8
    assert loss < separable(prior=UNIT, remainder=False)[0]


def test_formulas_that_separate_classes_are_not_believed(separable):
    """By the default: its prior is proper, and coefficients of standardised columns small."""
    loss, posterior = separable(remainder=False)
    before, jeffreys = separable(prior=UNIT, remainder=False)
    assert loss < 0.85 * before
    assert len(posterior.best_model.features) < len(jeffreys.best_model.features)
    assert np.abs(posterior.best_model.fit.coefficients).max() < 2.0


def test_classes_that_a_column_separates_are_predicted_by_it():
    draw = np.random.default_rng(5)
    X = pd.DataFrame(draw.normal(size=(200, 5)), columns=list("abcde"))
    y = (X["a"] + 0.5 * X["b"] > 0).astype(float)
    posterior = dbrm.fit(X, y, family="binomial", **QUICK)
    p = posterior.predict(X)
    assert -np.mean(np.log(np.where(y == 1, p, 1 - p))) < 0.1


def test_logarithms_take_the_place_of_long_tailed_columns():
    """Effects on the log scale of columns over four orders of magnitude, for new rows, too."""
    draw = np.random.default_rng(8)
    logs = draw.normal(0.0, 2.5, size=(600, 8))
    X = pd.DataFrame(np.exp(logs), columns=list("abcdefgh"))
    y = 0.25 * logs.sum(axis=1) + draw.logistic(size=600) > 0
    posterior = dbrm.fit(X[:300], y[:300].astype(float), family="binomial", **QUICK)
    found = posterior._remainder
    assert posterior.remainder > 0.9
    plain = [any(found.features[j].text == "a" for j in members) for members in found.models]
    assert found.probability[plain].sum() < 0.1 * found.probability.sum()


def test_the_estimator_is_ready_to_predict_after_fit(many):
    _, X, y = many
    model = dbrm.DBRMRegressor(**QUICK).fit(X, y)
    assert "_predictive" in vars(model.posterior_)


def test_models_that_cannot_be_fitted_leave_their_probability_to_others(classes, monkeypatch):
    X, y = classes
    whole = dbrm.fit(X, y, family="binomial", **QUICK).remainder
    fit, calls = GlmRemainder.fit, []

    def some(self, columns, ratio):
        calls.append(ratio)
        found = fit(self, columns, ratio)
        status = Status.NOT_CONVERGED if len(calls) < fails else Status.OK
        return replace(found, fit=replace(found.fit, status=status))

    monkeypatch.setattr(GlmRemainder, "fit", some)
    fails = 2
    assert dbrm.fit(X, y, family="binomial", **QUICK).remainder == pytest.approx(whole)
    fails = 1_000
    assert dbrm.fit(X, y, family="binomial", **QUICK).remainder == 0.0


def test_digits_of_coefficients_do_not_speak_against_a_remainder():
    """A formula with a remainder may have them, too: both are compared without."""
    draw = np.random.default_rng(6)
    X, y = weak(draw, 90)
    posterior = dbrm.fit(X, y + 9.7 * X["x0"], transforms="laws", **QUICK)
    problem, merged = posterior._source.problem, posterior._merged
    own = [merged.features[j] for j in merged.models.features_of(0)]
    columns = evaluate(own, problem.table)[0]
    plain = replace(problem.engine, short_coefficients=None)
    digits = problem.engine.log_evidence(columns)[0] - plain.log_evidence(columns)[0]
    assert abs(digits) > 0.3
    shifted = merged.models.log_evidence - digits
    others = replace(merged, models=replace(merged.models, log_evidence=shifted))
    arguments = posterior._inclusion, posterior._inner_recipe
    found = find_remainder(problem, merged, *arguments)
    again = find_remainder(replace(problem, engine=plain), others, *arguments)
    assert 0.0 < found.probability.sum() < 1.0
    assert found.probability.sum() == pytest.approx(again.probability.sum(), rel=1e-6)
