"""Exact transition matrices of reversible GMJMCMC and of pool-Gibbs on small feature spaces."""

import inspect
from bisect import bisect_right
from itertools import combinations
from types import ModuleType

import numpy as np
import pytest
from tests.statistical.exhaustive import invariance_error, transition_matrix

from dbrm.evolution.algorithms import pool_gibbs, reversible
from dbrm.search import PriorTerms, enumerate_population

N_FEATURES, MAX_SIZE = 6, 3
RATE = 0.2
MODELS = [
    frozenset(model)
    for size in range(MAX_SIZE + 1)
    for model in combinations(range(N_FEATURES), size)
]
WINDOWS = [window for size in (3, 4) for window in combinations(range(N_FEATURES), size)]


class SmallSpace:
    """Six features; populations of three or four, a few of them possible around each model."""

    def __init__(self, rng, *, climbs_at_random):
        self.log_mass = {model: 2.0 * rng.normal() for model in MODELS}
        self._climbs_at_random = climbs_at_random
        self._windows = {}
        for model in MODELS:
            around = [window for window in WINDOWS if model.issubset(window)]
            chosen = rng.permutation(len(around))[:5]
            self._windows[model] = (
                [around[k] for k in chosen],
                np.cumsum(rng.random(chosen.size) + 0.2),
            )

    def grow(self, rng, model):
        windows, cumulative = self._windows[model]
        return windows[bisect_right(cumulative, rng.random() * cumulative[-1])]

    def grow_with(self, rng, model, wanted):
        """The planted mistake: a population drawn on condition that it holds `wanted`."""
        windows, cumulative = self._windows[model]
        weights = np.diff(cumulative, prepend=0.0)
        holds = [k for k, window in enumerate(windows) if wanted.issubset(window)]
        if not holds:
            return windows[0]
        inner = np.cumsum(weights[holds])
        return windows[holds[bisect_right(inner, rng.random() * inner[-1])]]

    def optimise(self, rng, model, population):
        if self._climbs_at_random and rng.random() < 0.3:
            return model
        neighbours = [model, *(model ^ {feature} for feature in population)]
        return max(neighbours, key=self.log_posterior)

    def log_posterior(self, model):
        return self.log_mass.get(model, -np.inf)

    @property
    def probability(self):
        mass = np.exp([self.log_mass[model] for model in MODELS])
        return mass / mass.sum()


def reversible_matrix(space, module):
    position = {model: index for index, model in enumerate(MODELS)}

    def step(rng, state):
        model, _ = module.reversible_step(rng, space, MODELS[state], RATE)
        return position[model]

    return transition_matrix(step, len(MODELS))


@pytest.mark.parametrize("climbs_at_random", [False, True])
def test_reversible_step_leaves_the_posterior_alone(climbs_at_random, rng):
    space = SmallSpace(rng, climbs_at_random=climbs_at_random)
    matrix = reversible_matrix(space, reversible)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert invariance_error(matrix, space.probability) < 1e-12


def test_reversible_step_satisfies_detailed_balance(rng):
    space = SmallSpace(rng, climbs_at_random=True)
    flow = space.probability[:, None] * reversible_matrix(space, reversible)
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)


def test_reversible_step_reaches_every_model(rng):
    matrix = reversible_matrix(SmallSpace(rng, climbs_at_random=True), reversible)
    reached = np.linalg.matrix_power(matrix + np.eye(len(matrix)), len(matrix)) > 0
    assert reached.all()


def mutant(module, original, planted):
    text = inspect.getsource(module)
    assert text.count(original) == 1, "the planted line must be found exactly once"
    broken = ModuleType("mutant")
    exec(compile(text.replace(original, planted), "mutant", "exec"), vars(broken))
    return broken


@pytest.mark.parametrize(
    ("original", "planted"),
    [
        pytest.param("(log(rate) - log1p(-rate))", "log(rate)", id="rho without 1 - rho"),
        pytest.param(
            "back = space.grow(rng, proposal)",
            "back = space.grow_with(rng, proposal, model)",
            id="backward population conditioned on the model",
        ),
        pytest.param(
            "log_ratio += (len(back) - len(population)) * log1p(-rate)",
            "pass",
            id="population sizes ignored",
        ),
        pytest.param(
            "len(model ^ returned)", "len(proposal ^ returned)", id="distance at the wrong model"
        ),
    ],
)
def test_planted_mistakes_of_the_reversible_step_are_caught(original, planted, rng):
    space = SmallSpace(rng, climbs_at_random=True)
    matrix = reversible_matrix(space, mutant(reversible, original, planted))
    assert invariance_error(matrix, space.probability) > 1e-4


class TablePopulation:
    """Log evidences of the subsets of a window, read from the space's table."""

    enumeration_limit = 20

    def __init__(self, log_mass, window):
        self._log_mass = log_mass
        self._window = window

    @property
    def size(self):
        return len(self._window)

    def log_evidence_of_all(self, max_size, report=None):
        values = np.full(1 << self.size, -np.inf)
        for index in range(values.size):
            inside = [f for j, f in enumerate(self._window) if index >> j & 1]
            if len(inside) <= max_size:
                values[index] = self._log_mass[frozenset(inside)]
        return values, np.zeros(values.size, dtype=np.uint8)


def gibbs_matrix(log_mass, *, with_window_term=True, window_size=4):
    position = {model: index for index, model in enumerate(MODELS)}
    sizes = np.where(np.arange(window_size + 1) <= MAX_SIZE, 0.0, -np.inf)
    if with_window_term:
        sizes = sizes - pool_gibbs.log_window_count(N_FEATURES, window_size)
    terms = PriorTerms(np.zeros(window_size), sizes)

    def step(rng, state):
        window = pool_gibbs.draw_window(rng, sorted(MODELS[state]), N_FEATURES, window_size)
        population = TablePopulation(log_mass, window)
        found = enumerate_population(population, terms, window=np.inf, max_kept=100, rng=rng)
        return position[frozenset(window[j] for j in np.flatnonzero(found.last))]

    return transition_matrix(step, len(MODELS))


@pytest.fixture
def log_mass(rng):
    return {model: 2.0 * rng.normal() for model in MODELS}


def as_probability(log_mass):
    mass = np.exp([log_mass[model] for model in MODELS])
    return mass / mass.sum()


def test_pool_gibbs_leaves_the_posterior_alone(log_mass):
    matrix = gibbs_matrix(log_mass)
    assert invariance_error(matrix, as_probability(log_mass)) < 1e-12
    assert (np.linalg.matrix_power(matrix, 3) > 0).all()


def test_pool_gibbs_without_the_window_term_is_caught(log_mass):
    """Negative control: forgetting u(S | M) moves the stationary law."""
    matrix = gibbs_matrix(log_mass, with_window_term=False)
    assert invariance_error(matrix, as_probability(log_mass)) > 1e-4
