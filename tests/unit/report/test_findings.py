"""Tests of what is said about a run: doubts come first."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import dbrm
from dbrm.report.findings import find, headline
from dbrm.report.wording import format_share, listed


def titles(posterior, level=None):
    return [f.title for f in find(posterior) if level in (None, f.level)]


def test_a_clear_run_has_nothing_to_complain_about(kepler):
    assert titles(kepler, "bad") == titles(kepler, "care") == []
    assert headline(find(kepler)).title == "One formula stands out"
    assert "The chains agree" in titles(kepler, "good")


def test_chains_that_disagree_come_first(kepler, with_diagnostics):
    posterior = with_diagnostics(kepler, disagreements=[0])
    first = headline(find(posterior))
    assert (first.level, first.title) == ("bad", "The chains disagree")
    assert posterior.disagreements[0] in first.text
    assert "The chains agree" not in titles(posterior)


@pytest.mark.parametrize(("n", "scarce"), [(3, True), (9, True), (10, False), (40, False)])
def test_so_few_rows_tell_little(n, scarce, rng):
    x = rng.normal(size=(n, 1))
    posterior = dbrm.enumerate_models(x, x[:, 0] + 0.1 * rng.normal(size=n))
    assert ("There are too few rows to tell" in titles(posterior, "bad")) == scarce
    assert (
        "The probabilities depend on the prior" in " ".join(posterior.summary().split())
    ) == scarce


def test_rows_that_the_coefficients_use_up_do_not_count(rng):
    x = rng.normal(size=(12, 8))
    posterior = dbrm.fit(
        x, rng.normal(size=12), always=[f"x{j}" for j in range(1, 9)], algorithm="enumerate"
    )
    (finding,) = (f for f in find(posterior) if f.title == "There are too few rows to tell")
    assert "12 rows, 3 beyond the 9 coefficients" in finding.text


def test_few_rows_of_many_trials_are_not_few(rng):
    x = rng.normal(size=(6, 1))
    trials = np.full(6, 50.0)
    posterior = dbrm.enumerate_models(
        x, rng.binomial(50, 0.4, size=6).astype(float), trials=trials, family="binomial"
    )
    assert "There are too few rows to tell" not in titles(posterior, "bad")


def test_a_group_without_events_is_not_called_separated_classes(rng):
    """Counts make no mistakes and have no classes; their predictions stay those of a rate."""
    group = np.repeat([0.0, 1.0], 40)[:, None]
    counts = np.where(group[:, 0] > 0, rng.poisson(3.0, 80), 0).astype(float)
    posterior = dbrm.enumerate_models(group, counts, family="poisson")
    assert "The best model has rows without any event" in titles(posterior, "care")
    assert "rows without any event" in posterior.summary()
    assert "classes" not in posterior.summary()
    # Nearly all mass is on the model with the group: about 1/(2n), and not less than it says.
    assert posterior.predict(group)[0] == pytest.approx(1 / 80, rel=0.05)
    assert posterior.predict_sd(group)[0] == pytest.approx(np.sqrt(1 / 80), rel=0.05)


@pytest.mark.parametrize(
    ("changes", "level", "title"),
    [
        ({"unexplored": 0.3}, "bad", "The search was too short"),
        ({"rhat": {"size": 1.3}}, "bad", "The chains have not mixed"),
        ({"rhat": {"size": float("nan")}}, "bad", "The chains have not mixed"),
        ({"effective_draws": {"size": 12.0}}, "care", "Few effective draws"),
    ],
)
def test_every_complaint_is_told(kepler, with_diagnostics, changes, level, title):
    posterior = with_diagnostics(kepler, **changes)
    first = headline(find(posterior))
    assert (first.level, first.title) == (level, title)
    assert title not in titles(kepler)


def test_doubts_are_told_together(kepler, with_diagnostics):
    posterior = with_diagnostics(kepler, disagreements=[0], unexplored=0.3)
    assert headline(find(posterior)).text.endswith("Also: the search was too short.")


def test_one_chain_is_a_doubt(kepler, planets):
    posterior = dbrm.fit(*planets, transforms=[], n_chains=1, n_populations=2, random_state=1)
    assert "There was only one chain" in titles(posterior, "care")


def test_a_best_model_with_little_probability_is_said_first(vague):
    """All 16 subsets of unrelated columns share the mass."""
    first = headline(find(vague))
    assert first.level in ("care", "bad")
    assert first.title in ("Several formulas compete", "No single formula can be trusted")
    assert format_share(vague.best_model.probability) in first.text


def test_an_empty_model_is_no_finding(rng):
    posterior = dbrm.enumerate_models(rng.normal(size=(40, 2)), rng.normal(size=40), penalty="bic")
    assert posterior.best_model.terms == ()
    assert headline(find(posterior)).title == "Nothing was found"
    assert "One formula stands out" not in titles(posterior)


def test_enumeration_misses_nothing(vague):
    assert "The search is complete" in titles(vague, "good")


def test_a_perfect_fit_is_told(rng):
    x = rng.normal(size=(30, 2))
    posterior = dbrm.enumerate_models(x, 2.0 * x[:, 0])
    assert "The best model fits without any error" in titles(posterior, "care")


def test_separated_classes_are_told(rng):
    x = rng.normal(size=(30, 1))
    posterior = dbrm.enumerate_models(x, (x[:, 0] > 0).astype(float), family="binomial")
    assert "The best model makes no mistake in these rows" in titles(posterior, "care")


@pytest.mark.parametrize(
    ("changes", "level", "title"),
    [
        ({"ended": "SIGINT", "n_finished": 1}, "care", "The run was interrupted"),
        ({"ended": "agreement"}, "good", "The run ended early"),
        ({"failures": {1: "MemoryError"}}, "care", "One chain failed"),
        ({"failures": {1: "MemoryError", 2: "MemoryError"}}, "care", "2 chains failed"),
    ],
)
def test_what_the_run_did_not_bring_is_told(kepler, changes, level, title):
    posterior = copy.copy(kepler)
    posterior.record = replace(kepler.record, **changes)
    assert title in titles(posterior, level)
    assert title not in titles(kepler)


def test_models_left_out_are_told(kepler, monkeypatch):
    monkeypatch.setattr(type(kepler), "averaged_share", property(lambda self: 0.5))
    monkeypatch.setattr(type(kepler), "lost_mass", property(lambda self: 0.2))
    assert titles(kepler, "care") == [
        "Some models were visited but not kept",
        "Predictions leave models out",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "less than 0.1 %"),
        (0.0123, "1.2 %"),
        (0.45, "45 %"),
        (0.953, "95.3 %"),
        (1.0, "more than 99.9 %"),
    ],
)
def test_shares_are_never_certain(value, text):
    assert format_share(value) == text


def test_lists_read_as_sentences():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
