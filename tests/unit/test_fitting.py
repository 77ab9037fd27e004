"""Tests of `dbrm.fit`, `dbrm.log_evidence` and `dbrm.enumerate_models`."""

import json
import warnings
from time import sleep

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import DBRMWarning, InvalidDataError
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.evolution import Look

QUICK = {"n_chains": 1, "n_populations": 4, "random_state": 1, "transforms": ["tanh", "troot"]}


@pytest.fixture
def data(rng):
    x = rng.normal(size=(50, 3))
    return x, 1.0 + 2.0 * x[:, 0] + 0.5 * rng.normal(size=50)


def by_features(posterior):
    """Log evidence of each model by the set of its features."""
    return {frozenset(row.features): row.log_evidence for row in posterior.models.itertuples()}


# --------------------------------------------------------------------------- evidence


def test_log_evidence_is_that_of_the_engine(data):
    x, y = data
    assert dbrm.log_evidence(x, y) == GaussianEngine(y, Jeffreys()).log_evidence(x)[0]
    assert dbrm.log_evidence(pd.DataFrame(x), list(y)) == pytest.approx(dbrm.log_evidence(x, y))


def test_log_evidence_takes_options_of_the_prior(data):
    x, y = data
    paper = dbrm.log_evidence(x, y)
    bare = dbrm.log_evidence(x, y, prior="jeffreys", constant="none")
    assert paper - bare == pytest.approx(0.5 * 4 * np.log(2 * np.pi))
    named = dbrm.log_evidence(x, y, prior=Jeffreys(constant="none"))
    assert named == pytest.approx(bare)


def test_dependent_columns_have_no_evidence_and_no_warning(data):
    x, y = data
    for columns in (np.column_stack([x, x[:, 0]]), np.column_stack([x, np.ones(50)])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert dbrm.log_evidence(columns, y) == -np.inf
    assert dbrm.log_evidence(np.column_stack([x, x @ [1.0, 1.0, 0.0]]), y) == -np.inf


def test_the_model_without_columns_has_evidence(data, rng):
    """As exact enumeration finds it, also beside a latent effect."""
    x, y = data[0], rng.normal(size=50)
    null = by_features(dbrm.enumerate_models(x, y))[frozenset()]
    for empty in (None, np.empty((50, 0)), pd.DataFrame(index=range(50))):
        assert dbrm.log_evidence(empty, y) == pytest.approx(null, rel=1e-12)
    effect = dbrm.latent.IID("site")
    sites = pd.DataFrame({"site": np.arange(50) % 5})
    alone = dbrm.log_evidence(sites, y, latent=effect)
    unrelated = sites.assign(x=x[:, 0])
    models = dbrm.enumerate_models(unrelated, y, latent=effect).models
    only_effect = models[(models["size"] == 0) & (models["latent"].str.len() == 1)]
    assert alone == pytest.approx(only_effect["log_evidence"].item(), rel=1e-6)


def test_weights_and_offset_reach_the_evidence(data, rng):
    x, y = data
    weights = rng.integers(1, 4, size=50)
    repeated = np.repeat(np.arange(50), weights)
    assert dbrm.log_evidence(x, y, sample_weight=weights) == pytest.approx(
        dbrm.log_evidence(x[repeated], y[repeated])
    )
    offset = rng.normal(size=50)
    assert dbrm.log_evidence(x, y + offset, offset=offset) == pytest.approx(dbrm.log_evidence(x, y))


# ------------------------------------------------------------------------ enumeration


def test_enumeration_is_the_evidence_of_every_subset(data):
    x, y = data
    posterior = dbrm.enumerate_models(x, y, prior="bic")
    for names, value in by_features(posterior).items():
        columns = x[:, [int(name[1:]) - 1 for name in sorted(names)]]
        expected = GaussianEngine(y, dbrm.evidence.BIC()).log_evidence(columns)[0]
        assert value == pytest.approx(expected, rel=1e-9)
    assert posterior.models["probability"].sum() == pytest.approx(1.0)


def test_dependent_columns_are_all_candidates(rng):
    """x3 = x1 + x2 explains y alone; a basis would have thrown it out."""
    x = rng.normal(size=(60, 3))
    x[:, 2] = x[:, 0] + x[:, 1]
    posterior = dbrm.enumerate_models(x, x[:, 2] + 0.5 * rng.normal(size=60), prior="bic")
    assert posterior.best_model.features == ("x3",)
    assert posterior.inclusion("x3") > 0.5
    order = dbrm.enumerate_models(x[:, [2, 0, 1]], x[:, 2] * 1.0, prior="bic", penalty=1.0)
    assert order.best_model.features == ("x1",)


def test_inclusion_probabilities_of_us_crime(reference):
    """All 2**15 models against the R package blma, to eight digits."""
    crime = pd.read_csv(reference / "uscrime.csv")
    stored = json.loads((reference / "exact_values.json").read_text())["uscrime_blma"]
    columns = crime.drop(columns="y")
    for name in columns.columns:
        if name != "So":
            columns[name] = np.log(columns[name])
    for prior, key in {
        "bic": "BIC",
        "hyper-g": "hyper_g_a3",
        "beta-prime": "beta_prime_ZE",
    }.items():
        posterior = dbrm.enumerate_models(columns, crime["y"], prior=prior)
        found = [posterior.inclusion(f"`{name}`" if "." in name else name) for name in columns]
        np.testing.assert_allclose(found, stored[key], atol=1e-8)


def test_too_many_columns_are_refused(rng):
    with pytest.raises(InvalidDataError, match=r"at most 25.*X has 26"):
        dbrm.enumerate_models(rng.normal(size=(40, 26)), rng.normal(size=40))


# ------------------------------------------------------------------------------- fits


def test_twice_the_weight_is_twice_the_row(data):
    """The evidence of every model, and a search that takes the same decisions."""
    x, y = data
    weighted = dbrm.fit(x, y, sample_weight=np.full(50, 2.0), **QUICK)
    doubled = dbrm.fit(np.tile(x, (2, 1)), np.tile(y, 2), **QUICK)
    first, second = by_features(weighted), by_features(doubled)
    common = first.keys() & second.keys()
    assert len(common) > 10
    for names in common:
        assert first[names] == pytest.approx(second[names], rel=1e-9)


def test_an_offset_is_taken_off(data, rng):
    x, y = data
    offset = 3.0 * rng.normal(size=50)
    shifted = dbrm.fit(x, y + offset, offset=offset, **QUICK)
    plain = dbrm.fit(x, y, **QUICK)
    first, second = by_features(shifted), by_features(plain)
    common = first.keys() & second.keys()
    assert len(common) > 10
    for names in common:
        assert first[names] == pytest.approx(second[names], rel=1e-9)
    assert shifted.best_model.features == plain.best_model.features


def test_always_in_covariates_are_in_every_model(data):
    x, y = data
    posterior = dbrm.fit(x, y, always=["x2"], **QUICK)
    assert posterior.inclusion("x2") == 1.0
    assert "x2" in posterior.best_model.features
    assert dbrm.fit(x, y, always="x2", **QUICK).inclusion("x2") == 1.0


def test_no_model_is_larger_than_allowed(data):
    x, y = data
    posterior = dbrm.fit(x, y, max_model_size=2, **QUICK)
    assert posterior.models["size"].max() <= 2


def test_limits_of_features_hold(data):
    x, _ = data
    posterior = dbrm.fit(x, np.tanh(x[:, 0] * x[:, 1]), max_depth=1, max_complexity=4, **QUICK)
    assert posterior.features["depth"].max() <= 1
    assert posterior.features["complexity"].max() <= 4


def test_names_of_columns_and_response_are_kept(rng):
    frame = pd.DataFrame({"sin": rng.normal(size=40), "x*y": rng.normal(size=40)})
    y = (2 * frame["x*y"] + 0.1 * rng.normal(size=40)).rename("outcome")
    posterior = dbrm.fit(frame, y, **QUICK)
    assert posterior.best_model.formula.startswith("outcome = ")
    assert posterior.best_model.terms[0].covariates == ("x*y",)


def test_the_record_says_what_happened(data):
    posterior = dbrm.fit(*data, **QUICK)
    record = posterior.record
    assert record.n_chains == 1
    assert record.seed == 1
    assert record.n_evaluated >= len(posterior.models)
    assert sum(record.status_counts.values()) == record.n_evaluated
    assert record.seconds > 0


def test_the_sweep_counts_as_time(data, monkeypatch):
    """What the sweep takes is not there for the chains."""

    def slow(problem, max_complexity, pause, unseen):
        sleep(0.05)
        return []

    monkeypatch.setattr("dbrm.run.runner.sweep_features", slow)
    posterior = dbrm.fit(*data, time_budget=2.0, **QUICK)
    assert posterior._problem.budget.stop.seconds <= 1.95


def test_a_time_budget_ends_the_search(data):
    long = QUICK | {"n_populations": 100_000}
    posterior = dbrm.fit(*data, time_budget=1.0, **long)
    assert posterior.record.seconds < 20


LAWS = QUICK | {"transforms": "laws", "sweep": 2, "sweep_projections": True}


@pytest.mark.parametrize("budget", [None, 30.0])
def test_time_that_is_left_goes_into_looking_further(rng, monkeypatch, budget):
    """What a look finds starts new chains; without a time budget nothing looks."""
    x = rng.uniform(1, 3, (80, 3))
    law = dbrm.parse_feature("sin(x1)*power[-1]{1.0*x2 + 1.0*square(x3)}")
    y = law.evaluate({f"x{j + 1}": column for j, column in enumerate(x.T)})
    looks = [
        Look(lambda problem, model, pause: [law]),
        Look(lambda problem, model, pause: pytest.fail("found already")),
    ]
    monkeypatch.setattr("dbrm.run.runner.further_looks", lambda problem, complexity: looks)
    posterior = dbrm.fit(x, y, time_budget=budget, **LAWS)
    assert (posterior.best_model.features == (law.text,)) == (budget is not None)
    assert posterior.record.n_chains == 1


@pytest.mark.parametrize("smooth", [0.5, 0.95])
def test_what_needs_exact_data_is_not_looked_for_beside_noise(rng, monkeypatch, smooth):
    """Noise is what the best model leaves, unless that is surely smooth."""
    x, called = rng.uniform(1, 3, (80, 2)), []
    looks = [Look(lambda problem, model, pause: called.append(model) or [], needs_exact=True)]
    monkeypatch.setattr("dbrm.run.runner.further_looks", lambda problem, complexity: looks)
    monkeypatch.setattr("dbrm.run.runner.smooth_remainder", lambda problem, model: smooth)
    y = np.sin(x[:, 0] + x[:, 1] ** 2) / x[:, 1] + x[:, 0]
    dbrm.fit(x, y, time_budget=30.0, **LAWS)
    assert bool(called) == (smooth > 0.9)


def test_a_law_that_is_found_at_once_leaves_nothing_to_look_for(rng, monkeypatch):
    x = rng.uniform(1, 3, (80, 2))
    looks = [Look(lambda problem, model, pause: pytest.fail("found already"))]
    monkeypatch.setattr("dbrm.run.runner.further_looks", lambda problem, complexity: looks)
    posterior = dbrm.fit(x, 2.0 * x[:, 0] * x[:, 1], time_budget=30.0, **LAWS)
    assert posterior.best_model.features == ("x1*x2",)


def test_what_a_look_finds_is_left_alone_where_it_is_no_better(data, monkeypatch):
    """The first chains stay."""
    other = dbrm.parse_feature("x2*exp(x3)*sin(x2)")
    looks = [Look(lambda problem, model, pause: [other])]
    monkeypatch.setattr("dbrm.run.runner.further_looks", lambda problem, complexity: looks)
    posterior = dbrm.fit(*data, time_budget=30.0, **LAWS)
    assert other not in posterior._problem.pool


@pytest.mark.parametrize("gain", [1.0, -1.0])
def test_a_model_of_a_look_that_is_a_little_better_is_in_the_posterior(rng, monkeypatch, gain):
    """New chains would be too much for it, and the first ones have not seen it."""
    x = rng.uniform(1, 3, (80, 3))
    other, paused = dbrm.parse_feature("x2*exp(x3)*sin(x2)"), []
    look = Look(lambda problem, model, pause: paused.append(pause()) or [other], most_seconds=0.0)
    monkeypatch.setattr("dbrm.run.runner.further_looks", lambda problem, complexity: [look])
    monkeypatch.setattr("dbrm.run.runner._is_found", lambda problem, model: False)
    monkeypatch.setattr(
        "dbrm.run.runner.best_with",
        lambda problem, model, features: ([*model, *features[:1]], gain if model else 0.0),
    )
    posterior = dbrm.fit(x, x[:, 0] + 0.5 * rng.normal(size=80), time_budget=30.0, **LAWS)
    visited = {feature for model in posterior.models["features"] for feature in model}
    assert (other.text in visited) == (gain > 0.0)
    assert other not in posterior._problem.pool
    assert paused == [True]


# --------------------------------------------------------------------- nothing to find


def test_pure_noise_gives_the_null_model(rng):
    """The only leading model has no column at all: this once raised."""
    posterior = dbrm.fit(rng.normal(size=(100, 3)), rng.normal(size=100), **QUICK)
    assert posterior.best_model.features == ()
    assert posterior.models["features"].iloc[0] == ()
    assert "1" in posterior.summary()


@pytest.mark.parametrize("value", [0.0, 0.1, 7.0])
@pytest.mark.parametrize("prior", ["zellner-siow", "jeffreys", "g-prior"])
def test_a_constant_response_is_explained_by_the_intercept(rng, value, prior):
    x = rng.normal(size=(40, 3))
    posterior = dbrm.fit(x, np.full(40, value), prior=prior, **QUICK)
    assert posterior.best_model.features == ()
    np.testing.assert_allclose(posterior.predict(x), value, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_few_rows(rng, n):
    """Fewer rows than columns: no warning, no model without an error to estimate."""
    x, y = rng.normal(size=(n, 5)), rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DBRMWarning)
        posterior = dbrm.fit(x, y, **QUICK)
    assert posterior.models["size"].max() <= max(n - 2, 0)
    assert np.all(np.isfinite(posterior.predict_interval(x)))


def test_one_row_is_refused():
    with (
        pytest.warns(DBRMWarning),
        pytest.raises(InvalidDataError, match="too few rows, n_samples=1"),
    ):
        dbrm.fit([[1.0, 2.0]], [3.0], **QUICK)


def test_always_in_columns_that_leave_no_error_are_refused(rng):
    x = rng.normal(size=(4, 3))
    with pytest.raises(InvalidDataError, match="3 always-in columns leave no room"):
        dbrm.fit(x, rng.normal(size=4), always=["x1", "x2", "x3"], **QUICK)


def test_only_constant_columns_leave_the_intercept(rng):
    with pytest.warns(DBRMWarning, match="No usable column is left|Constant columns"):
        posterior = dbrm.fit(np.ones((20, 2)), rng.normal(size=20), **QUICK)
    assert len(posterior.models) == 1


@pytest.mark.parametrize("transforms", [[], "steps", "fractional-polynomials", "logic", "powers"])
def test_every_kind_of_transform_set_runs_silently(data, transforms):
    x, y = data
    posterior = dbrm.fit(x, y, **QUICK | {"transforms": transforms})
    assert posterior.inclusion("x1") > 0.5


def test_only_operators_that_need_functions_and_no_function(data):
    x, y = data
    operators = {"mutation": 0.0, "crossover": 0.0, "modification": 1.0}
    posterior = dbrm.fit(x, y, **QUICK | {"transforms": [], "operators": operators})
    assert posterior.inclusion("x1") > 0.9


# ------------------------------------------------------------------------------- units


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
def test_units_of_the_columns_do_not_change_which_covariates_count(data, scale):
    """Without functions: those see units. Products scale along."""
    x, y = data
    plain = dbrm.enumerate_models(x, y)
    scaled = dbrm.enumerate_models(x * scale, y)
    for name in ("x1", "x2", "x3"):
        assert scaled.inclusion(name) == pytest.approx(plain.inclusion(name), rel=1e-6)
    np.testing.assert_allclose(scaled.predict(x * scale), plain.predict(x), rtol=1e-6)
    np.testing.assert_allclose(
        scaled.predict_interval(x * scale), plain.predict_interval(x), rtol=1e-6
    )


@pytest.mark.parametrize(("scale", "shift"), [(1e-100, 0.0), (1e100, 0.0), (1.0, 1e6), (-3.0, 7.0)])
def test_units_of_the_response_do_not_change_inclusions(data, scale, shift):
    x, y = data
    plain, moved = dbrm.enumerate_models(x, y), dbrm.enumerate_models(x, scale * y + shift)
    for name in ("x1", "x2", "x3"):
        assert moved.inclusion(name) == pytest.approx(plain.inclusion(name), rel=1e-4)
    np.testing.assert_allclose(moved.predict(x), scale * plain.predict(x) + shift, rtol=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_a_covariate_far_from_zero_is_used_as_it_is(data, offset):
    """It once counted as constant, and a projection of it won."""
    x, y = data
    posterior = dbrm.fit(x + np.array([offset, 0.0, 0.0]), y, **QUICK)
    assert posterior.best_model.features == ("x1",)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_columns_do_not_stop_a_search(data, scale):
    x, y = data
    posterior = dbrm.fit(x * np.array([1.0, scale, 1.0]), y, **QUICK)
    assert posterior.best_model.features == ("x1",)


def test_the_record_says_how_to_repeat_the_run(rng):
    x = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    x = pd.concat([x, x])
    settings = {"transforms": ["sin"], "n_chains": 1, "n_populations": 2, "random_state": 3}
    record = dbrm.fit(x, x["a"], offset=np.zeros(60), **settings).record
    assert record.settings == {name: repr(value) for name, value in settings.items()}
    assert (record.given, record.n_rows, record.version) == (("offset",), 60, dbrm.__version__)


def test_presets_keep_the_paper_s_degrees_of_freedom(rng):
    """The paper's t has n of them; without a preset they are those of the residuals."""
    x = rng.normal(size=(12, 2))
    y = x[:, 0] + rng.normal(size=12)
    options = {"always": ["x1", "x2"], "algorithm": "enumerate", "prior": "jeffreys"}
    paper, own = dbrm.fit(x, y, preset="paper_text", **options), dbrm.fit(x, y, **options)
    assert paper.best_model.fit.degrees_of_freedom == 12
    assert own.best_model.fit.degrees_of_freedom == 9
    assert own.best_model.fit.dispersion == pytest.approx(paper.best_model.fit.dispersion * 12 / 9)
    assert own.best_model.fit.log_evidence == paper.best_model.fit.log_evidence
