"""MJMCMC against the exact posterior over the 256 models of eight covariates."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chi2

from dbrm.evidence import GaussianEngine, resolve_prior
from dbrm.search import KernelMix, Mjmcmc, PriorTerms, enumerate_population

SIZE, TOP = 8, 30
CODE = 1 << np.arange(SIZE)
# False-alarm rate of the chi-square test, were the seeds not fixed.
ALARM = 1e-4
MIXES = [
    pytest.param(KernelMix(), id="default"),
    pytest.param(KernelMix(0.0, 0.0, 1.0, 0.0, 0.0), id="add_delete"),
    pytest.param(KernelMix(0.0, 0.0, 0.0, 1.0, 0.0), id="multiple_try"),
    pytest.param(KernelMix(0.2, 0.2, 0.2, 0.2, 0.2), id="even"),
]


def make_population(seed=8):
    """Correlated columns and weak signals: hundreds of models share the mass."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(60, SIZE)) + 0.6 * rng.normal(size=(60, 1))
    response = columns @ np.array([0.35, 0.3, 0.2, 0.0, 0.0, 0.15, 0.0, 0.1])
    engine = GaussianEngine(response + rng.normal(size=60), resolve_prior("g-prior", g=60.0))
    return engine.prepare(columns)


def terms(penalty=0.3):
    return PriorTerms(np.full(SIZE, -penalty), np.zeros(SIZE + 1))


@dataclass(frozen=True)
class Comparison:
    """Chains beside the truth: models as integers, one row per chain."""

    visits: np.ndarray
    exact: np.ndarray

    def chi_square_pvalue(self):
        r"""Top models and the rest, each cell with its own batch-means variance.

        With visit shares :math:`\hat p_k` and effective sizes :math:`N_k`, Pearson's
        statistic on counts scaled to :math:`N_k`:
        :math:`\sum_k N_k (\hat p_k - p_k)^2 / p_k`.
        """
        order = np.argsort(-self.exact)[:TOP]
        groups = [self.visits == model for model in order]
        groups.append(~np.isin(self.visits, order))
        probability = np.append(self.exact[order], 1 - self.exact[order].sum())
        total = 0.0
        for inside, p in zip(groups, probability, strict=True):
            effective = p * (1 - p) / standard_error(inside) ** 2
            total += min(effective, inside.size) * (inside.mean() - p) ** 2 / p
        return chi2.sf(total, TOP)

    def inclusion_errors(self):
        """Errors of the inclusion frequencies in Monte Carlo standard errors."""
        masks = (np.arange(self.exact.size)[:, None] & CODE) > 0
        exact = self.exact @ masks
        series = [(self.visits & code) > 0 for code in CODE]
        return np.array(
            [
                (inside.mean() - p) / standard_error(inside)
                for inside, p in zip(series, exact, strict=True)
            ]
        )

    def total_variation(self):
        shares = np.bincount(self.visits.ravel(), minlength=self.exact.size) / self.visits.size
        return 0.5 * np.abs(shares - self.exact).sum()


def standard_error(series, n_batches=50):
    """Of the mean of several chains, by batch means within each."""
    length = series.shape[1] // n_batches
    batches = series[:, : length * n_batches].reshape(series.shape[0], n_batches, length)
    means = batches.mean(axis=2)
    variance = means.var(axis=1, ddof=1).mean() / n_batches
    return np.sqrt(max(variance, 1e-12) / series.shape[0])


def compare(mix, prior, *, n_chains, n_steps, n_blocks):
    """Run chains in blocks; the state after each block of steps is one draw."""
    population = make_population()
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    probability = np.exp(exact.log_evidence + exact.log_prior - exact.log_mass)
    settings = Mjmcmc(n_steps=n_steps, adapt=0.0, kernels=mix)
    visits = np.empty((n_chains, n_blocks), dtype=np.int64)
    for chain in range(n_chains):
        rng = np.random.default_rng([chain, 2026])
        mask = np.zeros(SIZE, dtype=np.bool_)
        for block in range(n_blocks):
            mask = settings.explore(rng, population, prior, mask).last
            visits[chain, block] = mask @ CODE
    return Comparison(visits[:, n_blocks // 50 :], probability)


FAST = {"n_chains": 4, "n_steps": 10, "n_blocks": 2_500}


@pytest.mark.parametrize("mix", [MIXES[0], MIXES[-1]])
def test_visits_follow_the_posterior(mix):
    result = compare(mix, terms(), **FAST)
    assert result.chi_square_pvalue() > ALARM
    assert np.abs(result.inclusion_errors()).max() < 5
    assert result.total_variation() < 0.06


def test_another_target_is_caught():
    """Negative control: a prior that is off by a tenth of a nat per covariate."""
    result = compare(KernelMix(), terms(penalty=0.4), **FAST)
    assert result.chi_square_pvalue() < ALARM or np.abs(result.inclusion_errors()).max() > 5


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES)
def test_long_chains_come_within_two_hundredths_of_the_posterior(mix):
    result = compare(mix, terms(), n_chains=4, n_steps=10, n_blocks=50_000)
    assert result.chi_square_pvalue() > ALARM
    assert np.abs(result.inclusion_errors()).max() < 5
    assert result.total_variation() < 0.02


def test_counted_frequencies_agree_with_renormalised_ones(rng):
    """The loop's own counts, in one run of a million steps, adaptation dropped."""
    population = make_population()
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    found = Mjmcmc(n_steps=1_000_000, window=np.inf).explore(
        rng, population, terms(), np.zeros(SIZE, dtype=np.bool_)
    )
    share = np.zeros(1 << SIZE)
    share[found.masks @ CODE] = found.walk.visits / found.walk.visits.sum()
    probability = np.exp(exact.log_evidence + exact.log_prior - exact.log_mass)
    assert 0.5 * np.abs(share - probability).sum() < 0.02
    np.testing.assert_allclose(found.walk.frequency, exact.inclusion, atol=0.01)


def test_after_a_full_visit_the_mass_is_exact(rng):
    population = make_population()
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    found = Mjmcmc(n_steps=100_000).explore(
        rng, population, terms(), np.zeros(SIZE, dtype=np.bool_)
    )
    assert found.n_evaluated == 1 << SIZE
    assert found.log_mass == pytest.approx(exact.log_mass, abs=1e-10)
    np.testing.assert_allclose(found.inclusion, exact.inclusion, rtol=0, atol=1e-10)
