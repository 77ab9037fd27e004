"""Tests of `dbrm.posterior.diagnostics`: known values, and what is said about them."""

import numpy as np
import pytest
from scipy.signal import lfilter

import dbrm
from dbrm.evolution import Candidate
from dbrm.posterior import Diagnostics
from dbrm.posterior.diagnostics import effective_size, split_rhat


def autoregression(rng, correlation, n, n_chains=4):
    """Stationary chains with this correlation from step to step and unit variance."""
    noise = rng.normal(size=(n_chains, n)) * np.sqrt(1 - correlation**2)
    noise[:, 0] /= np.sqrt(1 - correlation**2)
    return list(lfilter([1.0], [1.0, -correlation], noise, axis=1))


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.5, 0.9, 0.97])
def test_effective_size_of_an_autoregression(correlation, rng):
    """N (1 - r) / (1 + r); the estimate is good to a few per cent at this length."""
    chains = autoregression(rng, correlation, 50_000)
    exact = 200_000 * (1 - correlation) / (1 + correlation)
    assert effective_size(chains) == pytest.approx(exact, rel=0.15)


def test_effective_size_is_that_of_the_textbook(rng):
    """Against sums over pairs of autocorrelations written out."""
    chains = autoregression(rng, 0.7, 400, n_chains=3)
    halves = np.array([part for chain in chains for part in (chain[:200], chain[200:])])
    centred = halves - halves.mean(axis=1, keepdims=True)
    covariance = np.array(
        [np.mean(np.sum(centred[:, lag:] * centred[:, : 200 - lag], axis=1)) for lag in range(200)]
    )
    covariance /= 200
    within = covariance[0] * 200 / 199
    total = within * 199 / 200 + halves.mean(axis=1).var(ddof=1)
    rho = 1 - (within - covariance * 200 / 199) / total
    rho[0] = 1
    pairs, last = [], np.inf
    for start in range(0, 200, 2):
        pair = rho[start] + rho[start + 1]
        if pair < 0:
            break
        last = min(last, pair)
        pairs.append(last)
    assert effective_size(chains) == pytest.approx(1200 / (2 * sum(pairs) - 1))


def test_rhat_is_that_of_the_textbook(rng):
    chains = [rng.normal(size=100) + shift for shift in (0.0, 0.5, 1.0)]
    halves = np.array([part for chain in chains for part in (chain[:50], chain[50:])])
    within = halves.var(axis=1, ddof=1).mean()
    between = 50 * halves.mean(axis=1).var(ddof=1)
    assert split_rhat(chains) == pytest.approx(np.sqrt((49 / 50 * within + between / 50) / within))


def test_rhat_of_chains_that_agree_is_one(rng):
    assert split_rhat(autoregression(rng, 0.5, 20_000)) == pytest.approx(1.0, abs=0.005)


def test_rhat_sees_chains_apart_and_chains_that_drift(rng):
    apart = [rng.normal(size=1000), 3.0 + rng.normal(size=1000)]
    drifting = [rng.normal(size=1000) + np.linspace(0, 4, 1000) for _ in range(4)]
    assert split_rhat(apart) > 1.5
    assert split_rhat(drifting) > 1.2
    assert effective_size(apart) < 20


def test_chains_that_never_move():
    still = [np.zeros(100), np.zeros(100)]
    assert split_rhat(still) == 1.0
    assert np.isnan(effective_size(still))
    assert split_rhat([np.zeros(100), np.ones(100)]) == np.inf


def test_too_short_to_say():
    assert np.isnan(split_rhat([np.array([1.0])]))
    assert np.isnan(effective_size([np.arange(4.0)]))


def say(
    *,
    n_chains=4,
    captured=1.0,
    unexplored=0.0,
    rhat=None,
    draws=None,
    disagreements=(),
    latent=(),
    candidate=None,
):
    return Diagnostics(
        chain_inclusion=np.zeros((n_chains, 5)),
        captured=np.ones(n_chains) * captured,
        unexplored=unexplored,
        rhat=rhat or {},
        effective_draws=draws or {},
        disagreements=list(disagreements),
        latent_disagreements=list(latent),
        candidate=candidate,
    ).verdict()


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        ({}, "The 4 chains agree."),
        (
            {"n_chains": 1},
            "There was only one chain: run several (n_chains) to see whether they agree.",
        ),
        ({"disagreements": [1, 2, 4]}, "The 4 chains disagree on 3 features: run longer."),
        ({"disagreements": [1]}, "The 4 chains disagree on 1 feature: run longer."),
        ({"latent": [0, 1]}, "The 4 chains disagree on 2 latent effects: run longer."),
        (
            {"unexplored": 0.2},
            "The 4 chains each miss about 20% of the probability that others find: run longer.",
        ),
        (
            {"rhat": {"log_posterior": 1.3, "size": 1.01}},
            "The 4 chains have not mixed (R-hat of log_posterior): run longer.",
        ),
        (
            {"rhat": {"size": 1.0}, "draws": {"size": 50.0}},
            "The 4 chains have few effective draws of size: run longer.",
        ),
        (
            {"rhat": {"size": 1.0}, "draws": {"size": np.nan}},
            "The 4 chains agree; none of them ever left its first model.",
        ),
        (
            {"disagreements": [0], "unexplored": 0.5},
            "The 4 chains disagree on 1 feature and each miss about 50% of the probability "
            "that others find: run longer.",
        ),
        (
            {"captured": [1.0, 1.0, 0.03, 0.9]},
            "The 4 chains differ (1 has found hardly any of the probability): run longer.",
        ),
        ({"candidate": Candidate("x*z", 0.9)}, "The 4 chains agree."),
        (
            {"candidate": Candidate("x*z", 17.04)},
            "The 4 chains have all missed x*z, which raises the log posterior by 17.0: run longer.",
        ),
    ],
)
def test_the_verdict_in_words(facts, verdict):
    assert say(**facts) == verdict


def test_chains_that_all_see_everything_agree(rng):
    """Few covariates: every chain visits all models, nothing is unexplored."""
    x = rng.normal(size=(50, 4))
    posterior = dbrm.fit(
        x,
        x[:, 0] + rng.normal(size=50),
        algorithm="mjmcmc",
        n_chains=3,
        n_iter=2_000,
        random_state=1,
    )
    diagnostics = posterior.diagnostics
    np.testing.assert_allclose(diagnostics.captured, 1.0)
    assert diagnostics.unexplored == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(np.ptp(diagnostics.chain_inclusion, axis=0), 0.0, atol=1e-12)
    assert all(value < 1.05 for value in diagnostics.rhat.values())
    assert all(value > 200 for value in diagnostics.effective_draws.values())
    assert "agree" in posterior.summary()


def test_captured_and_unexplored_mass_by_hand(rng):
    """Short chains over many covariates: shares recomputed from the models' tables."""
    x = rng.normal(size=(40, 12))
    posterior = dbrm.fit(
        x,
        x[:, :4].sum(axis=1) + 2 * rng.normal(size=40),
        algorithm="mjmcmc",
        n_chains=3,
        n_final=60,
        random_state=1,
    )
    merged, diagnostics = posterior._merged, posterior.diagnostics
    share = merged.probability
    found = [set(rows.tolist()) for rows in merged.visited]
    np.testing.assert_allclose(diagnostics.captured, [sum(share[list(s)]) for s in found])
    alone = [sum(share[list(s - set().union(*(o for o in found if o is not s)))]) for s in found]
    assert diagnostics.unexplored == pytest.approx(np.mean(alone))
    assert diagnostics.unexplored > 0
