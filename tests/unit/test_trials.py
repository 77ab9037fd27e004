"""Successes out of trials and the zeros and ones they stand for are the same data."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, gammaln

import dbrm
import dbrm.data.out_of_core.batches as blocks
import dbrm.run.out_of_core as tall
from dbrm.evidence import COEFFICIENT_PRIORS, Observations

# Only a Gaussian response has a noise variance.
PRIORS = [
    {"name": name} for name in COEFFICIENT_PRIORS if name not in ("known-variance", "benchmark")
]
PRIORS += [{"name": "benchmark", "candidates": 4}, {"name": "normal", "standardised": True}]
PRIORS += [{"name": "jeffreys", "constant": "unit_information"}]
PENALTIES = ["aic", "bic", "beta-binomial", "multiplicity", "script-weights", "uniform", 1.5]
SAME = 1e-8


def grouped(seed=7, n=25):
    """Groups with 0 to 80 trials each; ``a`` has a moderate effect."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    trials = rng.integers(0, 81, n)
    return table, rng.binomial(trials, expit(0.15 * table.a)), trials


def expand(table, successes, trials):
    """One row for each trial."""
    rows = np.repeat(np.arange(len(table)), trials)
    before = np.repeat(np.cumsum(trials) - trials, trials)
    labels = (np.arange(rows.size) - before < successes[rows]).astype(float)
    return table.iloc[rows].reset_index(drop=True), labels


def log_choose(trials, successes):
    terms = gammaln(trials + 1) - gammaln(successes + 1) - gammaln(trials - successes + 1)
    return float(terms.sum())


def by_features(posterior):
    return posterior.models.assign(key=posterior.models["features"].map(frozenset)).set_index("key")


def assert_same_posterior(first, second, constant):
    """Equal models and inclusions; evidence equal up to the binomial coefficients."""
    one, two = by_features(first), by_features(second)
    two = two.loc[one.index]
    np.testing.assert_allclose(one.log_evidence, two.log_evidence + constant, rtol=0, atol=SAME)
    np.testing.assert_allclose(one.log_prior, two.log_prior, rtol=0, atol=SAME)
    for name in "abcd":
        assert first.inclusion(name) == pytest.approx(second.inclusion(name), abs=SAME)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: "-".join(map(str, prior.values())))
def test_priors_count_trials_as_rows(prior):
    table, successes, trials = grouped()
    options = {"family": "binomial", "prior": prior}
    one = dbrm.enumerate_models(table, successes, trials=trials, **options)
    two = dbrm.enumerate_models(*expand(table, successes, trials), **options)
    assert_same_posterior(one, two, log_choose(trials, successes))
    columns = table[["a", "b"]]
    counted = dbrm.log_evidence(columns, successes, trials=trials, **options)
    single = dbrm.log_evidence(*expand(columns, successes, trials), **options)
    assert counted - single == pytest.approx(log_choose(trials, successes), abs=SAME)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_penalties_count_trials_as_rows(penalty):
    table, successes, trials = grouped()
    options = {"family": "binomial", "penalty": penalty}
    one = dbrm.enumerate_models(table, successes, trials=trials, **options)
    two = dbrm.enumerate_models(*expand(table, successes, trials), **options)
    assert_same_posterior(one, two, log_choose(trials, successes))


@pytest.mark.parametrize("link", ["probit", "cloglog"])
@pytest.mark.parametrize("prior", ["bic", "g-prior", "robust", "normal"])
def test_weights_and_trials_multiply(prior, link):
    """A weight of two on ten trials is twenty rows."""
    table, successes, trials = grouped()
    weights = np.random.default_rng(1).integers(0, 4, len(table))
    options = {"family": "binomial", "link": link, "prior": prior, "penalty": "bic"}
    one = dbrm.enumerate_models(table, successes, trials=trials, sample_weight=weights, **options)
    twice = np.repeat(np.arange(len(table)), weights)
    repeated = table.iloc[twice], successes[twice], trials[twice]
    two = dbrm.enumerate_models(*expand(*repeated), **options)
    assert_same_posterior(one, two, log_choose(trials[twice], successes[twice]))


@pytest.mark.parametrize("prior", ["bic", "normal"])
def test_latent_effects_count_trials_as_rows(prior):
    table, successes, trials = grouped(n=12)
    table = table[["a"]].assign(time=np.arange(12))
    options = {"family": "binomial", "prior": prior, "latent": dbrm.latent.AR1("time")}
    counted = dbrm.log_evidence(table, successes, trials=trials, **options)
    single = dbrm.log_evidence(*expand(table, successes, trials), **options)
    assert counted - single == pytest.approx(log_choose(trials, successes), abs=SAME)


def test_tall_data_count_trials_as_rows(monkeypatch):
    """In blocks, where a sample stands for all rows: the number of observations is exact."""
    table, successes, trials = grouped(n=1_500)
    options = {"family": "binomial", "prior": "bic", "penalty": "bic"}
    together = dbrm.enumerate_models(table, successes, trials=trials, **options)
    monkeypatch.setattr(tall, "TALL_ROWS", 1_000)
    monkeypatch.setattr(tall, "SAMPLE_ROWS", 600)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 400)
    apart = dbrm.enumerate_models(table, successes, trials=trials, **options)
    assert apart._problem.out_of_core is not None
    one, two = by_features(apart), by_features(together)
    two = two.loc[one.index]
    np.testing.assert_allclose(one.log_prior, two.log_prior, rtol=1e-12)
    # The best come from streamed Newton steps, the others from a quadratic expansion.
    np.testing.assert_allclose(one.log_evidence[:1], two.log_evidence[:1], rtol=0, atol=SAME)
    np.testing.assert_allclose(one.log_evidence, two.log_evidence, rtol=0, atol=1e-4)


def test_trials_of_one_change_nothing():
    """Bit for bit: a row with one trial is a row."""
    table, labels = expand(*grouped(n=8))
    for prior in PRIORS:
        options = {"family": "binomial", "prior": prior}
        plain = dbrm.log_evidence(table, labels, **options)
        assert dbrm.log_evidence(table, labels, trials=np.ones(len(table)), **options) == plain


def test_the_number_of_observations_counts_weights_and_trials():
    y, two, three = np.ones(4), np.full(4, 2.0), np.full(4, 3.0)
    assert Observations(y).n == 4
    assert Observations(y, weights=two).n == 8
    assert Observations(y, trials=three).n == 12
    assert Observations(y, weights=two, trials=three).n == 24
