"""Tests of features that are certain and leave their places to others."""

import numpy as np
import pytest

import dbrm
from dbrm.evidence import GaussianEngine, GlmEngine
from dbrm.evidence.coefficient_priors import Jeffreys, ZellnerSiow
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.population import Population, Rejections, next_population
from dbrm.search import enumerate_population, refine_population


@pytest.fixture
def columns(rng):
    """Nine columns that are correlated, the fourth nearly a sum of the first two."""
    values = rng.normal(size=(120, 9)) + 0.5 * rng.normal(size=(120, 1))
    values[:, 3] = values[:, 0] + values[:, 1] + 0.05 * rng.normal(size=120)
    return values


def inserted(masks, n_settled):
    return np.pad(masks, ((0, 0), (n_settled, 0)), constant_values=True)


def every_mask(size):
    return ((np.arange(1 << size)[:, None] >> np.arange(size)) & 1).astype(bool)


@pytest.mark.parametrize("prior", [Jeffreys(), ZellnerSiow()])
def test_gaussian_models_beside_settled_columns_have_the_same_evidence(prior, columns, rng):
    y = columns[:, :5] @ [1.0, -1.0, 0.5, 0.0, 0.3] + rng.normal(size=120)
    engine = GaussianEngine(y, prior, weights=rng.integers(1, 4, 120).astype(float))
    masks = every_mask(6)
    whole, _ = engine.prepare(columns).log_evidence(inserted(masks, 3))
    beside = engine.prepare_beside(columns, 3)
    np.testing.assert_allclose(beside.log_evidence(masks)[0], whole, rtol=1e-11)
    np.testing.assert_allclose(beside.log_evidence_of_all(6)[0], whole, rtol=1e-11)


def test_a_column_in_the_span_of_settled_ones_has_no_evidence(columns, rng):
    columns[:, 5] = columns[:, 0] - 2.0 * columns[:, 1]
    engine = GaussianEngine(rng.normal(size=120), ZellnerSiow())
    values, statuses = engine.prepare_beside(columns[:, [0, 1, 5, 6]], 2).log_evidence_of_all(2)
    np.testing.assert_array_equal(np.isfinite(values), [True, False, True, False])
    assert statuses[1] == dbrm.status.Status.RANK_DEFICIENT


def test_logistic_models_beside_settled_columns_have_the_same_evidence(columns, rng):
    y = rng.binomial(1, 1.0 / (1.0 + np.exp(-columns[:, 0] + columns[:, 4]))).astype(float)
    engine = GlmEngine(y, Jeffreys("unit_information"), family="binomial")
    masks = every_mask(6)
    whole, _ = engine.prepare(columns).log_evidence(inserted(masks, 3))
    beside = engine.prepare_beside(columns, 3)
    assert beside.size == 6
    np.testing.assert_allclose(beside.log_evidence(masks)[0], whole, rtol=1e-10)
    # The expansion ranks them as that of the whole population does.
    approximate = beside.approximate_all(np.ones(6, dtype=bool), 6)
    expected = engine.prepare(columns).approximate_all(np.ones(9, dtype=bool), 9)[7::8]
    np.testing.assert_allclose(approximate, expected, atol=1e-6)


def test_explorations_beside_settled_features_are_those_of_the_whole(columns, rng, pose):
    """Their models are those of the whole population that have the settled features."""
    y = columns[:, :3] @ [2.0, -2.0, 1.0] + rng.normal(size=120)
    problem = pose(columns, y, population_size=9, max_model_size=12)
    terms = problem.prior_terms([-1.0] * 9)
    limits = {"window": np.inf, "max_kept": 1 << 9}
    whole = enumerate_population(problem.prepare([], columns), terms, **limits)
    prepared = problem.prepare([], columns, 2)
    found = enumerate_population(prepared, terms.beside(2), **limits).with_settled(2)
    have = whole.masks[:, :2].all(axis=1)
    assert np.array_equal(found.masks, whole.masks[have])
    np.testing.assert_allclose(found.log_evidence, whole.log_evidence[have], rtol=1e-11)
    np.testing.assert_allclose(found.log_prior, whole.log_prior[have], rtol=1e-12)
    assert found.inclusion[:2].tolist() == [1.0, 1.0]
    assert found.last.size == 9


def certain_population(problem, chain):
    numbers = [
        chain.registry.number(feature, problem.table.column(str(feature)))
        for feature in problem.covariates
    ]
    return Population(np.array(numbers, dtype=np.int32), problem.table.values)


def test_certain_features_settle_and_take_no_place(columns, rng, pose):
    problem = pose(columns, rng.normal(size=120), population_size=9, max_model_size=12)
    chain = ChainRecord(problem)
    population = certain_population(problem, chain)
    inclusion = np.array([1.0] * 6 + [0.5] * 3)
    opened = np.zeros(6)
    for _ in range(200):
        following = next_population(
            rng, problem, chain.registry, Rejections(), population, inclusion
        )
        assert 3 <= following.n_settled <= 6
        assert following.size == 9 + following.n_settled
        settled = following.numbers[: following.n_settled]
        assert set(settled) <= set(population.numbers[:6])
        opened += ~np.isin(population.numbers[:6], settled)
    # Three of six are open: a share below a fifth in 200 draws has probability below 1e-17.
    assert opened.min() > 40


def test_features_that_are_certain_no_more_leave_when_places_are_few(columns, rng, pose):
    """Six had settled beside nine others; none of the fifteen is certain any more."""
    columns = np.column_stack([columns, rng.normal(size=(120, 6))])
    problem = pose(columns, rng.normal(size=120), population_size=9, max_model_size=15)
    chain = ChainRecord(problem)
    population = certain_population(problem, chain)
    inclusion = np.linspace(0.5, 0.98, 15)
    following = next_population(rng, problem, chain.registry, Rejections(), population, inclusion)
    assert following.n_settled == 0
    assert following.size == 9
    stayed = np.isin(population.numbers, following.numbers)
    assert stayed[-3:].all()
    assert not stayed[:3].any()


def test_nothing_settles_where_models_are_no_larger_than_populations(columns, rng, pose):
    problem = pose(columns, rng.normal(size=120), population_size=9, max_model_size=9)
    chain = ChainRecord(problem)
    population = certain_population(problem, chain)
    following = next_population(rng, problem, chain.registry, Rejections(), population, np.ones(9))
    assert following.n_settled == 0
    assert following.size <= 9


def test_models_grow_beyond_the_population(rng):
    """Twenty-two covariates of thirty matter, with fifteen places."""
    X = rng.normal(size=(900, 30))
    y = X[:, :22].sum(axis=1) + rng.normal(size=900)
    posterior = dbrm.fit(X, y, transforms=[], n_chains=1, random_state=1)
    best = {str(feature) for feature in posterior.best_model.features}
    assert {f"x{j + 1}" for j in range(22)} <= best
    small = dbrm.fit(X, y, transforms=[], n_chains=1, random_state=1, max_model_size=15)
    assert len(small.best_model.features) == 15


def test_logistic_models_grow_beyond_the_population(rng):
    X = rng.normal(size=(1_200, 24))
    eta = X[:, :18] @ np.where(np.arange(18) % 2, 1.0, -1.0)
    y = rng.binomial(1, 1.0 / (1.0 + np.exp(-eta)))
    posterior = dbrm.fit(X, y, family="binomial", transforms=[], n_chains=1, random_state=1)
    best = {str(feature) for feature in posterior.best_model.features}
    assert {f"x{j + 1}" for j in range(18)} <= best


def test_refinement_beside_settled_columns_finds_the_best_model(columns, rng, pose):
    y = rng.binomial(1, 1.0 / (1.0 + np.exp(-2.0 * columns[:, 0] + columns[:, 6]))).astype(float)
    engine = GlmEngine(y, Jeffreys("unit_information"), family="binomial")
    terms = pose(columns, y, max_model_size=12).prior_terms([-1.0] * 9).beside(2)
    limits = {"window": 20.0, "max_kept": 1 << 9}
    beside = engine.prepare_beside(columns, 2)
    exact = enumerate_population(beside, terms, **limits)
    found = refine_population(beside, terms, **limits)
    assert np.array_equal(found.last, exact.last)
    np.testing.assert_allclose(found.log_mass, exact.log_mass, atol=1e-3)


def test_only_compiled_likelihoods_search_beside_settled_columns(rng):
    from dbrm.evidence import find_link

    class Doubled(type(find_link("logit"))):
        name = "doubled"
        code = None

    y = rng.binomial(1, 0.5, 60).astype(float)
    prior = Jeffreys("unit_information")
    assert GlmEngine(y, prior, family="binomial").settling_limit > 0
    assert GlmEngine(y, prior, family="binomial", link=Doubled()).settling_limit == 0


def test_a_chain_goes_on_from_a_population_with_settled_features(columns, rng, pose):
    """Bit for bit, as if it had not been interrupted."""
    from dbrm.evolution.algorithms.gmjmcmc import Gmjmcmc

    y = columns @ np.ones(9) + 0.1 * rng.normal(size=120)
    problem = pose(columns, y, population_size=6, max_model_size=14, n_populations=12)
    whole = Gmjmcmc(np.random.default_rng(3), problem)
    while not whole.finished:
        whole.advance(1)
    first = Gmjmcmc(np.random.default_rng(3), problem)
    for _ in range(7):
        first.advance(1)
    second = Gmjmcmc(np.random.default_rng(99), problem)
    second.set_state(first.get_state())
    while not second.finished:
        second.advance(1)
    models, again = whole.result().models, second.result().models
    assert int(np.diff(models.starts).max()) > 6
    for name in ("members", "starts", "log_evidence", "log_prior"):
        np.testing.assert_array_equal(getattr(again, name), getattr(models, name))
