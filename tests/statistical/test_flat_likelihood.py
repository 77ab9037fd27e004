"""Without data the posterior is the prior: reversible samplers over a closed grammar.

The evidence is a constant, a function written in Python, so the chains must return the
model prior over all models of the grammar, written out here by hand.
"""

import inspect
from itertools import combinations
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import chi2

import dbrm
from dbrm.data import Table
from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evolution import (
    Filtration,
    Grammar,
    Operators,
    Problem,
    SearchBudget,
    proceed,
)
from dbrm.evolution.algorithms import pool_gibbs, reversible
from dbrm.evolution.algorithms.gmjmcmc import Evolution
from dbrm.evolution.algorithms.rgmjmcmc import _FeatureSpace
from dbrm.evolution.algorithms.sampling import fill_reservoir
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.features import resolve_transforms
from dbrm.priors import Complexity
from dbrm.search import Mjmcmc, OptimiserMix

# One false alarm per million runs, were the seeds not fixed.
ALARM = 1e-6
PENALTY, MOST, RATE = 0.5, 2, 0.2


def features_by_hand(n_covariates):
    """Text and complexity of every feature: covariates, their tanh, their products of two."""
    names = [f"x{j + 1}" for j in range(n_covariates)]
    pairs = [*combinations(names, 2), *((name, name) for name in names)]
    return (
        dict.fromkeys(names, 1)
        | {f"tanh({name})": 2 for name in names}
        | {f"{one}*{other}": 2 for one, other in pairs}
    )


def prior_by_hand(complexity):
    """Probability of every model of at most two features."""
    models = [frozenset(m) for k in range(MOST + 1) for m in combinations(complexity, k)]
    mass = {model: np.exp(-PENALTY * sum(complexity[f] for f in model)) for model in models}
    total = sum(mass.values())
    return {model: value / total for model, value in mass.items()}


def flat(columns, response):
    return 0.0


def closed_problem(rng, *, n_covariates, population_size, n_steps=20):
    names = tuple(f"x{j + 1}" for j in range(n_covariates))
    optimisers = OptimiserMix(greedy=0.0, annealing=0.0, local=1.0)
    return Problem(
        table=Table(names, rng.normal(size=(30, n_covariates))),
        engine=build_engine(Observations(rng.normal(size=30)), Jeffreys(), evidence=flat),
        model_prior=Complexity(PENALTY),
        grammar=Grammar(
            resolve_transforms(["tanh"]),
            operators=Operators(1.0, 1.0, 1.0, 0.0),
            max_depth=1,
            max_complexity=2,
            max_projection=4,
            projection=OptimizeThenTransform(),
        ),
        # Nothing is worth keeping: the first phase is to meet every feature.
        filtration=Filtration(threshold=1.0),
        budget=SearchBudget(
            population_size=population_size,
            n_populations=8,
            n_init=20_000,
            n_final=20_000,
            mjmcmc=Mjmcmc(n_steps=n_steps, optimisers=optimisers, local_moves=2),
        ),
        max_model_size=MOST,
    )


def spelled(chain, models):
    texts = [str(feature) for feature in chain.registry.features]
    return [frozenset(texts[number] for number in model) for model in models]


def reversible_visits(rng, problem, step, n_steps, thin):
    chain = ChainRecord(problem)
    proceed(Evolution(rng, chain))
    space = _FeatureSpace(chain, fill_reservoir(chain, 100))
    model, visited = frozenset(), []
    for number in range(n_steps):
        model, _ = step(rng, space, model, RATE)
        if number % thin == 0:
            visited.append(model)
    return spelled(chain, visited[1:])


def gibbs_visits(rng, problem, n_steps, thin):
    """Visited models, and the prior over the models of the sampler's own pool."""
    chain = ChainRecord(problem)
    proceed(Evolution(rng, chain))
    pool = fill_reservoir(chain, 100)
    features = [chain.registry.features[number] for number in pool.numbers]
    sampler = pool_gibbs._Sampler(chain, pool, features)
    model, visited = [], []
    for number in range(n_steps):
        model, _, _, _ = sampler.step(rng, model)
        if number % thin == 0:
            visited.append(frozenset(int(pool.numbers[place]) for place in model))
    return spelled(chain, visited[1:]), {str(f): f.complexity for f in features}


def chi_square_pvalue(visited, probability):
    """Pearson's statistic; cells with fewer than five expected visits are one cell."""
    expected = np.array(list(probability.values())) * len(visited)
    observed = np.array([visited.count(model) for model in probability], dtype=float)
    assert observed.sum() == len(visited), "a model outside the grammar was visited"
    rare = expected < 5
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    return chi2.sf(np.sum((observed - expected) ** 2 / expected), expected.size - 1)


def conditioned_step():
    """The reversible step of the paper's statement: a way back that must hold the model."""
    text = inspect.getsource(reversible)
    original = "back = space.grow(rng, proposal)"
    assert text.count(original) == 1
    planted = f"{original}\n    while not model.issubset(back):\n        {original}"
    broken = ModuleType("broken")
    exec(compile(text.replace(original, planted), "broken", "exec"), vars(broken))
    return broken.reversible_step


def test_the_grammar_by_hand_is_the_grammar(rng):
    """Evolution meets every feature on the list and no other."""
    chain = ChainRecord(closed_problem(rng, n_covariates=2, population_size=5))
    for _ in range(4):
        proceed(Evolution(rng, chain))
    assert {str(f): f.complexity for f in chain.registry.features} == features_by_hand(2)


def test_reversible_gmjmcmc_returns_the_prior(rng):
    problem = closed_problem(rng, n_covariates=2, population_size=5)
    visited = reversible_visits(rng, problem, reversible.reversible_step, 2_500, thin=5)
    assert chi_square_pvalue(visited, prior_by_hand(features_by_hand(2))) > ALARM


def test_a_conditioned_way_back_is_caught(rng):
    """Negative control: the check above has the power to fail."""
    problem = closed_problem(rng, n_covariates=2, population_size=3)
    visited = reversible_visits(rng, problem, conditioned_step(), 2_000, thin=5)
    assert chi_square_pvalue(visited, prior_by_hand(features_by_hand(2))) < ALARM


@pytest.mark.slow
def test_reversible_gmjmcmc_returns_the_prior_over_three_covariates(rng):
    problem = closed_problem(rng, n_covariates=3, population_size=8)
    visited = reversible_visits(rng, problem, reversible.reversible_step, 120_000, thin=30)
    assert chi_square_pvalue(visited, prior_by_hand(features_by_hand(3))) > ALARM


def test_pool_gibbs_returns_the_prior_over_its_pool(rng):
    """Windows of four features, enumerated."""
    problem = closed_problem(rng, n_covariates=2, population_size=4)
    visited, complexity = gibbs_visits(rng, problem, 3_000, thin=3)
    assert chi_square_pvalue(visited, prior_by_hand(complexity)) > ALARM


@pytest.mark.slow
def test_pool_gibbs_by_walking_returns_the_prior_over_its_pool(rng):
    """Windows of nine features, too many for a Python function: MJMCMC steps instead."""
    problem = closed_problem(rng, n_covariates=3, population_size=9, n_steps=20)
    visited, complexity = gibbs_visits(rng, problem, 1_500, thin=3)
    assert chi_square_pvalue(visited, prior_by_hand(complexity)) > ALARM


def test_pool_gibbs_without_the_window_term_is_caught(rng, monkeypatch):
    """Negative control: forgetting how many windows hold a model."""
    monkeypatch.setattr(pool_gibbs, "log_window_count", lambda n_pool, size: np.zeros(size + 1))
    problem = closed_problem(rng, n_covariates=2, population_size=4)
    visited, complexity = gibbs_visits(rng, problem, 3_000, thin=3)
    assert chi_square_pvalue(visited, prior_by_hand(complexity)) < ALARM


@pytest.mark.parametrize("algorithm", ["rgmjmcmc", "pool-gibbs"])
def test_fit_reports_the_prior_where_there_is_no_evidence(algorithm, rng):
    """Through the front door: renormalised and counted inclusion both follow the prior."""
    posterior = dbrm.fit(
        rng.normal(size=(30, 2)),
        rng.normal(size=30),
        evidence=flat,
        penalty=PENALTY,
        transforms=["tanh"],
        operators={"mutation": 1, "crossover": 1, "modification": 1, "projection": 0},
        max_depth=1,
        max_complexity=2,
        max_model_size=MOST,
        population_size=5,
        n_populations=8,
        n_chains=2,
        n_final=600,
        algorithm=algorithm,
        # Without data greedy ascent always ends at the empty model, and chains mix slowly.
        mjmcmc={"optimisers": {"greedy": 0, "annealing": 0}, "rate": 0.3},
        random_state=1,
    )
    prior = prior_by_hand(features_by_hand(2))
    table = posterior.features.set_index("feature")
    assert len(table) == 7
    # Some sixty effective draws at worst: 0.25 is four standard errors.
    for text, row in table.iterrows():
        text = text.replace("x0", "x_").replace("x1", "x2").replace("x_", "x1")
        exact = sum(p for model, p in prior.items() if text in model)
        assert row["inclusion"] == pytest.approx(exact, abs=1e-6)
        assert row["frequency"] == pytest.approx(exact, abs=0.25)
