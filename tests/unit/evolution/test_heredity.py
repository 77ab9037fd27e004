"""Tests of `dbrm.evolution.heredity` and of every algorithm under it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import InvalidSettingError
from dbrm.evolution import Registry
from dbrm.evolution.population import Rejections, first_population, next_population
from dbrm.features import Product, covariate, multiply
from dbrm.search import enumerate_population

RULES = ["weak", "strong"]
ALGORITHMS = ["gmjmcmc", "rgmjmcmc", "pool-gibbs"]
X1, X2, X3 = (covariate(f"x{j}") for j in (1, 2, 3))


def violates(features, rule, always=()):
    """Whether a product among these spellings lacks its factors: the definition itself."""
    present = {str(feature) for feature in (*features, *always)}
    for feature in features:
        if isinstance(feature, Product):
            factors = {str(factor) for factor in feature.factors}
            if not (factors <= present if rule == "strong" else factors & present):
                return True
    return False


@pytest.fixture
def crossed(rng):
    """Data whose only effect is an interaction, so that heredity matters."""
    x = pd.DataFrame(rng.normal(size=(120, 4)), columns=["a", "b", "c", "d"])
    return x, x["a"] * x["b"] + 0.5 * rng.normal(size=120)


@pytest.mark.parametrize("rule", RULES)
def test_factors_are_counted(rng, pose, rule):
    problem = replace(pose(rng.normal(size=(20, 3)), rng.normal(size=20)), heredity=rule)
    registry = Registry(problem.table)
    kin = problem.heredity_rule(registry)
    number = {f: registry.number(f, problem.table.column(str(f))) for f in (X1, X2, X3)}
    product = multiply(X1, X1, X2)
    assert kin.missing(product, []) == [X1, X2]
    assert kin.missing(product, [number[X2]]) == [X1]
    assert not kin.satisfied(product, [number[X3]])
    assert kin.satisfied(product, [number[X1]]) == (rule == "weak")
    assert kin.satisfied(product, [number[X1], number[X2]])
    assert kin.satisfied(multiply(X1, X1), [number[X1]])
    assert kin.satisfied(X1, [])
    assert kin.satisfied(dbrm.parse_feature("tanh(x1*x2)"), [])


@pytest.mark.parametrize(("rule", "allowed"), [("weak", True), ("strong", False), (None, True)])
def test_features_of_every_model_count_as_present(rng, pose, rule, allowed):
    problem = pose(rng.normal(size=(20, 3)), rng.normal(size=20), always=("x1",))
    kin = replace(problem, heredity=rule).heredity_rule(Registry(problem.table))
    assert kin.satisfied(multiply(X1, X2), []) == allowed
    assert kin.satisfied(multiply(X1, X1), [])


@pytest.mark.parametrize("rule", RULES)
def test_enumeration_is_brute_force_over_allowed_models(rng, pose, rule):
    values = rng.normal(size=(40, 3))
    problem = pose(values, values[:, 0] * values[:, 1] + rng.normal(size=40))
    problem = replace(problem, heredity=rule)
    registry = Registry(problem.table)
    features = [X1, X2, X3, multiply(X1, X2), multiply(X1, X1), multiply(X1, X2, X3)]
    columns = np.column_stack([feature.evaluate(problem.table) for feature in features])
    numbers = [registry.number(f, column) for f, column in zip(features, columns.T, strict=True)]
    prior = problem.prior_terms([problem.model_prior.feature_log_prior(f) for f in features])
    terms = problem.heredity_rule(registry).restrict(prior, features, numbers)
    found = enumerate_population(
        problem.engine.prepare(columns), terms, window=np.inf, max_kept=100
    )
    expected = {}
    for size in range(7):
        for chosen in combinations(range(6), size):
            if not violates([features[j] for j in chosen], rule):
                evidence, _ = problem.engine.log_evidence(columns[:, list(chosen)])
                expected[chosen] = evidence - sum(features[j].complexity for j in chosen)
    kept = np.isfinite(found.log_prior)
    masks = [tuple(np.flatnonzero(mask).tolist()) for mask in found.masks[kept]]
    posterior = (found.log_evidence + found.log_prior)[kept]
    assert dict(zip(masks, posterior, strict=True)) == pytest.approx(expected, abs=1e-8)
    assert found.log_mass == pytest.approx(np.logaddexp.reduce(list(expected.values())), abs=1e-8)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_model_of_a_posterior_violates_heredity(crossed, rule, algorithm):
    x, y = crossed
    options = {"transforms": ["tanh"], "n_chains": 2, "n_populations": 8, "random_state": 1}
    options |= {"prior": "jeffreys", "penalty": "bic"}
    steps = {} if algorithm == "gmjmcmc" else {"n_final": 60}
    posterior = dbrm.fit(x, y, heredity=rule, algorithm=algorithm, **options, **steps)
    models = [
        [dbrm.parse_feature(text, list(x.columns)) for text in row]
        for row in posterior.models["features"]
    ]
    assert not any(violates(features, rule) for features in models)
    assert any(isinstance(feature, Product) for features in models for feature in features)
    assert posterior.inclusion("a*b") > 0.99
    least = {"weak": 1.0, "strong": 2.0}[rule]
    assert posterior.inclusion("a") + posterior.inclusion("b") >= least - 1e-9


def test_without_heredity_the_factors_stay_out(crossed):
    """Negative control: the data ask for the product alone."""
    x, y = crossed
    posterior = dbrm.fit(x, y, transforms=["tanh"], n_chains=1, n_populations=8, random_state=1)
    assert posterior.inclusion("a*b") > 0.99
    assert posterior.inclusion("a") + posterior.inclusion("b") < 0.5


@pytest.mark.parametrize("rule", RULES)
def test_mjmcmc_inside_populations_keeps_to_heredity(crossed, rule):
    """Logistic populations of this size are walked through, not enumerated."""
    x, y = crossed
    posterior = dbrm.fit(
        x,
        y > 0,
        family="binomial",
        penalty="aic",
        heredity=rule,
        transforms=[],
        n_chains=1,
        n_populations=4,
        n_iter=400,
        population_size=14,
        random_state=1,
    )
    texts = posterior.models["features"]
    names = list(x.columns)
    assert not any(violates([dbrm.parse_feature(t, names) for t in row], rule) for row in texts)
    assert posterior.inclusion("a*b") > 0.9


@pytest.mark.parametrize("rule", RULES)
def test_populations_bring_factors_along_and_keep_them(rng, pose, rule):
    problem = pose(
        rng.normal(size=(60, 8)), rng.normal(size=60), population_size=5, transforms=("sin",)
    )
    problem = replace(problem, heredity=rule)
    registry, rejections = Registry(problem.table), Rejections()
    population = first_population(problem, registry, rejections)
    kin, n_products = problem.heredity_rule(registry), 0
    for _ in range(30):
        population = next_population(
            rng, problem, registry, rejections, population, rng.random(population.size)
        )
        for feature in population.features(registry):
            assert kin.satisfied(feature, population.numbers.tolist())
            n_products += isinstance(feature, Product)
    assert n_products > 10


def test_a_product_with_an_excluded_factor_is_impossible(crossed):
    x, y = crossed
    options = {"transforms": [], "n_chains": 1, "n_populations": 5, "random_state": 1}
    posterior = dbrm.fit(x, y, heredity="strong", exclude="a", **options)
    assert posterior.inclusion("a*b") == 0.0
    assert dbrm.fit(x, y, heredity="weak", exclude="a", **options).inclusion("a*b") > 0.9


def test_other_rules_are_refused():
    with pytest.raises(InvalidSettingError, match="heredity must be one of"):
        dbrm.Settings(heredity="strict")
