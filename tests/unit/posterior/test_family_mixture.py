"""Tests of `dbrm.posterior.family_mixture` against brute-force integrals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dbrm.evidence import find_family, find_link
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.mixture import StudentMixture

FAMILIES = ["gaussian", "binomial", "poisson", "gamma", "negative_binomial"]
# A fine grid over the standard normal, for integrals by plain summation.
Z = np.linspace(-7.0, 7.0, 4001)
W = np.exp(-0.5 * Z**2) / np.exp(-0.5 * Z**2).sum()


def mixture(name, seed, n_models=3, n_rows=4, *, integrate=True, widest=0.3):
    draw = np.random.default_rng(seed)
    family = find_family(name)
    link = find_link("log" if name == "gaussian" else family.default_link)
    spread = 0.2 * family.has_dispersion * draw.random(n_models)
    return FamilyMixture(
        family=family,
        link=link,
        weights=draw.dirichlet(np.ones(n_models), size=n_rows).T,
        locations=1.0 + 0.7 * draw.normal(size=(n_models, n_rows)),
        scales=10.0 ** draw.uniform(-4.0, widest, size=(n_models, n_rows)),
        dispersions=(0.4 + spread) if family.has_dispersion else np.ones(n_models),
        trials=draw.integers(0, 30, n_rows).astype(float) if family.has_trials else None,
        integrate=integrate,
    )


def brute_nodes(mixed, model, row):
    """Linear predictors of one model on a fine grid, with weights that add to one."""
    mode, scale = mixed.locations[model, row], mixed.scales[model, row]
    if not mixed.integrate:
        return np.array([mode]), np.ones(1)
    if mixed.link.name != "log":
        return mode + scale * Z, W
    # Without a shift the rate over its mode is Gamma(1/s^2 + 1/2, 1/s^2).
    law = stats.loggamma(scale**-2.0 + 0.5)
    low, high = law.ppf([1e-15, 1.0 - 1e-15])
    u = np.linspace(low, high, 8001)
    weights = law.pdf(u)
    return mode + u + 2.0 * np.log(scale), weights / weights.sum()


def brute_cdf(mixed, row, value):
    total = 0.0
    for model in range(len(mixed.weights)):
        eta, weights = brute_nodes(mixed, model, row)
        trials = None if mixed.trials is None else np.full(eta.size, mixed.trials[row])
        mean = mixed.link.mean(eta)
        inside = np.clip(mean, 1e-300, 1 - 1e-16) if mixed.family.has_trials else mean
        values = np.full(eta.size, value)
        chance = mixed.family.cdf(values, inside, mixed.dispersions[model], trials)
        total += mixed.weights[model, row] * (weights @ chance)
    return total


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("integrate", [True, False])
def test_the_mean_is_the_integral(name, integrate):
    mixed = mixture(name, 5, integrate=integrate, widest=0.3)
    size = 1.0 if mixed.trials is None else mixed.trials
    expected = np.zeros(4)
    for row in range(4):
        for model, weight in enumerate(mixed.weights[:, row]):
            eta, weights = brute_nodes(mixed, model, row)
            expected[row] += weight * (weights @ mixed.link.mean(eta))
    np.testing.assert_allclose(mixed.mean(), size * expected, rtol=1e-7)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("integrate", [True, False])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_the_cdf_is_the_integral(name, integrate, seed):
    mixed = mixture(name, seed, integrate=integrate)
    value = np.round(mixed.mean() + 1.0)
    expected = [brute_cdf(mixed, row, value[row]) for row in range(4)]
    # Models whose dispersions are within 1 % share one.
    error = 1e-3 if mixed.family.has_dispersion else 2e-5
    np.testing.assert_allclose(mixed.cdf(value), expected, atol=error)


@pytest.mark.parametrize("trials", [None, np.ones(4)])
@pytest.mark.parametrize("value", [-1.0, 0.0, 0.5, 1.0])
def test_the_cdf_of_zeros_and_ones_is_the_integral(trials, value):
    mixed = replace(mixture("binomial", 3), trials=trials)
    expected = [brute_cdf(mixed, row, value) for row in range(4)]
    np.testing.assert_allclose(mixed.cdf(np.full(4, value)), expected, atol=1e-7)
    rows = np.array([2, 0])
    np.testing.assert_allclose(
        mixed.cdf(np.full(2, value), rows), np.array(expected)[rows], atol=1e-7
    )


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), level=st.floats(1e-3, 1 - 1e-3))
def test_quantiles_invert_the_cdf(name, seed, level):
    mixed = mixture(name, seed)
    found = mixed.quantile(level)
    if mixed.family.discrete:
        assert np.all(mixed.cdf(found) >= level)
        assert np.all((mixed.cdf(found - 1.0) < level) | (found == 0.0))
        assert np.all(found == np.round(found))
    else:
        np.testing.assert_allclose(mixed.cdf(found), level, atol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_means_and_spreads_are_those_of_draws(name, rng):
    """Six standard errors: one false alarm in 10**8."""
    mixed = mixture(name, 5, widest=-0.5)
    draws = mixed.sample(rng, 40_000)
    error = draws.std(axis=0) / 200.0
    assert np.all(np.abs(draws.mean(axis=0) - mixed.mean()) < 6 * error + 1e-12)
    np.testing.assert_allclose(draws.std(axis=0), mixed.standard_deviation(), rtol=0.15)
    assert np.any(np.abs(draws.mean(axis=0) - 1.2 * mixed.mean()) > 6 * error)


def test_probabilities_are_exact_where_coefficients_are_very_uncertain():
    """A Gauss-Hermite rule of 15 points is off by 0.02 here."""
    mixed = mixture("binomial", 1)
    for scale in (0.1, 3.0, 20.0):
        scales = np.full_like(mixed.scales, scale)
        fields = {"family", "link", "weights", "locations", "dispersions"}
        wide = FamilyMixture(**{f: getattr(mixed, f) for f in fields}, scales=scales)
        means = [[W @ mixed.link.mean(loc + scale * Z) for loc in row] for row in mixed.locations]
        np.testing.assert_allclose(wide.mean(), (mixed.weights * means).sum(axis=0), atol=1e-7)


def test_certain_counts_of_an_uncertain_rate_have_smooth_quantiles():
    """A mean near 3000 known to 20 %: quantiles follow the rate, without steps."""
    shape = (1, 1)
    family, link = find_family("poisson"), find_link("log")
    mixed = FamilyMixture(
        family, link, np.ones(shape), np.full(shape, 8.0), np.full(shape, 0.2), np.ones(1)
    )
    levels = np.linspace(0.05, 0.95, 19)
    found = np.array([mixed.quantile(level)[0] for level in levels])
    rate = stats.gamma(25.5, scale=np.exp(8.0) / 25.0)
    np.testing.assert_allclose(found, rate.ppf(levels), rtol=3e-3)


@pytest.mark.parametrize("events", [0, 1, 3, 20])
def test_the_rate_of_one_group_has_its_posterior_under_jeffreys_prior(events, rng):
    """Poisson counts with sum t in n rows: Gamma(t + 1/2, n), so counts are negative binomial.

    Draws: six standard errors, one false alarm in 10**8.
    """
    n = 50
    # Firth's mode where there is no event, the maximum of the likelihood otherwise.
    mode, variance, shift = (
        (np.log(events / n), 1 / events, 0.0) if events else (np.log(0.01), 2, -1)
    )
    mixed = FamilyMixture(
        find_family("poisson"),
        find_link("log"),
        np.ones((1, 1)),
        np.full((1, 1), mode),
        np.full((1, 1), np.sqrt(variance)),
        np.ones(1),
        shifts=np.full((1, 1), shift),
    )
    exact = stats.nbinom(events + 0.5, n / (n + 1.0))
    assert mixed.mean()[0] == pytest.approx((events + 0.5) / n, rel=1e-6)
    assert mixed.standard_deviation()[0] == pytest.approx(exact.std(), rel=1e-5)
    for count in (0.0, 1.0, 2.0):
        assert mixed.cdf(np.array([count]))[0] == pytest.approx(exact.cdf(count), abs=1e-5)
    assert mixed.quantile(0.999)[0] == exact.ppf(0.999)
    draws = mixed.sample(rng, 40_000)
    assert abs(draws.mean() - exact.mean()) < 6 * exact.std() / 200


@pytest.mark.parametrize("scale", [3.0, 30.0, 1e4])
def test_an_unknown_rate_has_finite_moments(scale, rng):
    """A normal linear predictor would have a mean of exp(scale**2 / 2)."""
    shape = (1, 1)
    for name in ("poisson", "gamma", "negative_binomial"):
        mixed = FamilyMixture(
            find_family(name),
            find_link("log"),
            np.ones(shape),
            np.zeros(shape),
            np.full(shape, scale),
            np.ones(1),
        )
        assert mixed.mean()[0] == pytest.approx(1 + scale**2 / 2, rel=1e-4)
        assert np.isfinite(mixed.standard_deviation()).all()
        assert np.isfinite(mixed.quantile(0.5)).all()
        assert np.isfinite(mixed.sample(rng, 100)).all()


def test_a_row_without_models_has_no_number(rng):
    mixed = mixture("gamma", 3)
    mixed.weights[:, 1] = np.nan
    for found in (
        mixed.mean(),
        mixed.quantile(0.2),
        mixed.cdf(np.ones(4)),
        mixed.sample(rng, 3)[0],
    ):
        assert np.array_equal(np.isnan(found), [False, True, False, False])


def test_levels_may_differ_between_rows(rng):
    law = StudentMixture(
        np.full((2, 3), 0.5), rng.normal(size=(2, 3)), np.ones((2, 3)), np.array([4.0, np.inf])
    )
    levels = np.array([0.1, 0.5, 0.99])
    np.testing.assert_allclose(law.cdf(law.quantile(levels)), levels, atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("integrate", [True, False])
def test_quantiles_of_the_mean_are_those_of_draws_without_noise(name, integrate, rng):
    """The share of draws below a quantile, within five standard errors: one alarm in 10**5."""
    mixed = mixture(name, 5, widest=-0.5, integrate=integrate)
    size = 1.0 if mixed.trials is None else mixed.trials
    draws, level = 40_000, 0.9
    found = mixed.mean_quantile(level) / size
    for row in range(4):
        below = 0.0
        for model, weight in enumerate(mixed.weights[:, row]):
            eta, weights = brute_nodes(mixed, model, row)
            drawn = rng.choice(eta, size=draws, p=weights)
            # A predictor that is certain may be the quantile itself.
            below += weight * np.mean(mixed.link.mean(drawn) <= found[row] * (1 + 1e-6))
        if integrate:
            assert abs(below - level) < 5 * np.sqrt(level * (1 - level) / draws)
        else:
            assert below >= level


def test_quantiles_of_a_mean_under_a_falling_link_are_in_order():
    mixed = replace(mixture("gamma", 3, integrate=False), link=find_link("inverse"))
    mixed = replace(mixed, locations=np.abs(mixed.locations) + 0.1)
    assert np.all(mixed.mean_quantile(0.05) < mixed.mean_quantile(0.95))
