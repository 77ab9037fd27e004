r"""Draw a model and then data; sampling models given the data must not show.

*Exact invariance*: for :math:`M \sim p(M)` and :math:`y \sim p(y|M)` the pair
:math:`(M, y)` follows the joint law. A few steps of a correct kernel from M, given y, lead
to an :math:`M'` such that :math:`(M', y)` follows the same law, whatever the number of
steps. *Calibration*: of the covariates with inclusion probability p, a share p is in M.

The g-prior leaves intercept and variance improper. They are the same in all models, and
posterior model probabilities depend on the response only through its standardised
residuals, whose law does not depend on them; so any values will do for the simulation.
"""

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp, multivariate_t

from dbrm.evidence import GaussianEngine, Jeffreys, Observations, build_engine, resolve_prior
from dbrm.search import KernelMix, Mjmcmc, PriorTerms, enumerate_population

# Rate of false alarms over all statistics of one test, were the seeds not fixed.
FAMILY_WISE = 0.005
# Enough for the negative controls below to be caught; the slow tests have ten times as many.
N_DRAWS = 1_000
SIZE, ROWS, G, PENALTY = 5, 24, 12.0, 0.4
MIXES = [
    pytest.param(KernelMix(), id="default"),
    pytest.param(KernelMix(0.2, 0.2, 0.2, 0.2, 0.2), id="even"),
]


def terms(penalty=PENALTY, size=SIZE):
    return PriorTerms(np.full(size, -penalty), np.zeros(size + 1))


def draw_mask(rng, size=SIZE):
    """From the prior, under which covariates are independent."""
    return rng.random(size) < 1 / (1 + np.exp(PENALTY))


class GaussianWorld:
    """Responses under a g-prior, evidence from the compiled engine."""

    size = SIZE

    def __init__(self, g=G):
        design = np.random.default_rng(5)
        columns = design.normal(size=(ROWS, SIZE)) + 0.7 * design.normal(size=(ROWS, 1))
        self.columns = columns - columns.mean(axis=0)
        self._prior = resolve_prior("g-prior", g=g)

    def simulate(self, rng, mask):
        chosen = self.columns[:, mask]
        if not mask.any():
            return 3.0 + rng.normal(size=ROWS)
        factor = np.linalg.cholesky(np.linalg.inv(chosen.T @ chosen))
        slopes = np.sqrt(G) * factor @ rng.normal(size=mask.sum())
        return 3.0 + chosen @ slopes + rng.normal(size=ROWS)

    def prepare(self, response):
        return GaussianEngine(response, self._prior).prepare(self.columns)


class ConjugateWorld:
    """Normal coefficients, inverse-gamma variance; evidence from a function in Python.

    Everything is proper: the response has a multivariate t law.
    """

    size, n_rows, shape, scale, width = 3, 12, 2.0, 1.5, 1.0

    def __init__(self):
        self.columns = np.random.default_rng(6).normal(size=(self.n_rows, self.size))

    def simulate(self, rng, mask):
        variance = self.scale / rng.gamma(self.shape)
        design = self._design(self.columns[:, mask])
        effects = np.sqrt(variance) * self.width * rng.normal(size=design.shape[1])
        return design @ effects + np.sqrt(variance) * rng.normal(size=self.n_rows)

    def evidence(self, columns, response):
        design = self._design(columns)
        spread = np.eye(self.n_rows) + self.width**2 * design @ design.T
        law = multivariate_t(shape=self.scale / self.shape * spread, df=2 * self.shape)
        return law.logpdf(response)

    def prepare(self, response):
        engine = build_engine(Observations(response), Jeffreys(), evidence=self.evidence)
        return engine.prepare(self.columns)

    def _design(self, columns):
        return np.column_stack([np.ones(self.n_rows), columns])


def statistics(population, mask):
    value = population.log_evidence(mask[None])[0][0]
    empty = population.log_evidence(np.zeros((1, mask.size), dtype=np.bool_))[0][0]
    return [mask.sum(), value - empty, *mask]


def joint_draws(rng, world, count, kernel=None, prior=None):
    """Statistics of the model and the data, after some steps of a kernel if there is one."""
    rows = []
    for _ in range(count):
        mask = draw_mask(rng, world.size)
        population = world.prepare(world.simulate(rng, mask))
        if kernel is not None:
            mask = kernel.explore(rng, population, prior, mask).last
        rows.append(statistics(population, mask))
    return np.array(rows, dtype=float)


def smallest_pvalue(before, after):
    """Of Kolmogorov-Smirnov for size and evidence, of exact tests for each covariate."""
    values = [ks_2samp(before[:, column], after[:, column]).pvalue for column in (0, 1)]
    prior = 1 / (1 + np.exp(PENALTY))
    for column in range(2, before.shape[1]):
        count = int(after[:, column].sum())
        values.append(binomtest(count, len(after), prior).pvalue)
    return min(values) * len(values)


@pytest.mark.parametrize("mix", MIXES)
def test_steps_leave_the_joint_law_alone(mix, rng):
    world, kernel = GaussianWorld(), Mjmcmc(n_steps=10, adapt=0.0, kernels=mix)
    before = joint_draws(rng, world, N_DRAWS)
    after = joint_draws(rng, world, N_DRAWS, kernel, terms())
    assert smallest_pvalue(before, after) > FAMILY_WISE


def test_steps_towards_another_prior_are_caught(rng):
    """Negative control: half a nat per covariate too much."""
    world, kernel = GaussianWorld(), Mjmcmc(n_steps=10, adapt=0.0)
    before = joint_draws(rng, world, N_DRAWS)
    after = joint_draws(rng, world, N_DRAWS, kernel, terms(PENALTY + 0.5))
    assert smallest_pvalue(before, after) < FAMILY_WISE


def test_steps_under_another_evidence_are_caught(rng):
    """Negative control: the engine believes in a g a tenth of the true one."""
    kernel = Mjmcmc(n_steps=30, adapt=0.0)
    before = joint_draws(rng, GaussianWorld(), N_DRAWS)
    after = joint_draws(rng, GaussianWorld(g=G / 10), N_DRAWS, kernel, terms())
    # Both sides need the evidence of the same engine: compare the covariates only.
    columns = [0, 0, *range(2, before.shape[1])]
    assert smallest_pvalue(before[:, columns], after[:, columns]) < FAMILY_WISE


def test_steps_with_a_python_evidence_leave_the_joint_law_alone(rng):
    world, kernel = ConjugateWorld(), Mjmcmc(n_steps=6, adapt=0.0)
    before = joint_draws(rng, world, 250)
    after = joint_draws(rng, world, 250, kernel, terms(size=world.size))
    assert smallest_pvalue(before, after) > FAMILY_WISE


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES)
def test_ten_thousand_draws_leave_the_joint_law_alone(mix, rng):
    world, kernel = GaussianWorld(), Mjmcmc(n_steps=10, adapt=0.0, kernels=mix)
    before = joint_draws(rng, world, 10_000)
    after = joint_draws(rng, world, 10_000, kernel, terms())
    assert smallest_pvalue(before, after) > FAMILY_WISE


@pytest.mark.slow
def test_many_draws_with_a_python_evidence_leave_the_joint_law_alone(rng):
    world, kernel = ConjugateWorld(), Mjmcmc(n_steps=10, adapt=0.0)
    before = joint_draws(rng, world, 5_000)
    after = joint_draws(rng, world, 5_000, kernel, terms(size=world.size))
    assert smallest_pvalue(before, after) > FAMILY_WISE


def calibration(rng, world, count, prior):
    r"""The z-scores :math:`\sum (\gamma - p) / \sqrt{\sum p (1 - p)}` of each covariate and of
    the model size, with its exact posterior variance.
    """
    errors, variances = np.zeros(world.size + 1), np.zeros(world.size + 1)
    for _ in range(count):
        mask = draw_mask(rng, world.size)
        population = world.prepare(world.simulate(rng, mask))
        exact = enumerate_population(population, prior, window=np.inf, max_kept=1 << world.size)
        share = np.exp(exact.log_evidence + exact.log_prior - exact.log_mass)
        sizes = exact.masks.sum(axis=1)
        errors += [*(mask - exact.inclusion), mask.sum() - share @ sizes]
        spread = share @ (sizes - share @ sizes) ** 2
        variances += [*(exact.inclusion * (1 - exact.inclusion)), spread]
    return errors / np.sqrt(variances)


@pytest.mark.parametrize("world", [GaussianWorld(), ConjugateWorld()], ids=["g-prior", "python"])
def test_inclusion_probabilities_are_calibrated(world, rng):
    """Fewer than one false alarm in ten thousand runs, were the seeds not fixed."""
    scores = calibration(rng, world, 300, terms(size=world.size))
    assert np.abs(scores).max() < 4


def test_probabilities_under_another_prior_are_not_calibrated(rng):
    """Negative control."""
    scores = calibration(rng, GaussianWorld(), 300, terms(PENALTY + 0.5))
    assert np.abs(scores).max() > 4


@pytest.mark.slow
def test_inclusion_probabilities_are_calibrated_over_many_data_sets(rng):
    assert np.abs(calibration(rng, GaussianWorld(), 5_000, terms())).max() < 4
