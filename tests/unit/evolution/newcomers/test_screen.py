"""Tests of `dbrm.evolution.newcomers.screen`: expected gains against exact ones."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evolution.newcomers.draw import draw_newcomers
from dbrm.evolution.newcomers.screen import Screener
from dbrm.evolution.operators import Parents
from dbrm.features import covariate, evaluate, parse_feature

N, P = 120, 7


def log_posterior(problem, features):
    columns, _ = evaluate(features, problem.table)
    prior = sum(problem.model_prior.feature_log_prior(feature) for feature in features)
    size = problem.model_prior.size_log_prior(np.array([len(features)]))[0]
    return problem.engine.log_evidence(columns)[0] + prior + float(size)


def gains_of(problem, model, candidates):
    columns, _ = evaluate(model, problem.table)
    screen = Screener(problem).look_at(model, columns, np.ones(len(model)))
    values, _ = evaluate(candidates, problem.table)
    prices = [problem.model_prior.feature_log_prior(feature) for feature in candidates]
    return screen, screen.weigh(np.ascontiguousarray(values.T), np.array(prices))


def best_exact_gain(problem, model, candidate):
    """Beside the model, or in place of one feature, or of two that share a covariate."""
    base = log_posterior(problem, model)
    sets = [set(), *({f} for f in model)]
    sets += [{f, g} for f, g in combinations(model, 2) if set(f.covariates) & set(g.covariates)]
    return max(
        log_posterior(problem, [*(f for f in model if f not in left_out), candidate]) - base
        for left_out in sets
    )


@pytest.fixture
def data(rng):
    values = rng.normal(size=(N, P))
    values[:, 1] += 0.7 * values[:, 0]
    signal = values[:, 0] - 0.5 * values[:, 1] * values[:, 2] + 0.4 * values[:, 3]
    return values, signal


NAMES = tuple(f"x{j}" for j in range(1, P + 1))
MODEL = [parse_feature(text, NAMES) for text in ("x1", "x2*x3", "x3*x3")]
OTHERS = [parse_feature(text, NAMES) for text in ("x2", "x4", "x5", "x1*x2", "x2*x3*x4", "x6*x6")]


@pytest.mark.parametrize("weights", [False, True])
def test_gaussian_gains_are_exact(rng, pose, data, weights):
    values, signal = data
    problem = pose(values, signal + rng.normal(size=N))
    if weights:
        problem = replace(problem, engine=replace(problem.engine, weights=rng.uniform(0.2, 3.0, N)))
    _, candidates = gains_of(problem, MODEL, OTHERS)
    exact = [best_exact_gain(problem, MODEL, candidate) for candidate in OTHERS]
    np.testing.assert_allclose(candidates.gains(), exact, rtol=1e-8, atol=1e-8)


def test_gains_after_a_candidate_joined_are_those_beside_it(rng, pose, data):
    values, signal = data
    problem = pose(values, signal + rng.normal(size=N))
    _, candidates = gains_of(problem, MODEL[:1], OTHERS)
    candidates.add_to_model(1)
    gains = candidates.gains()
    assert gains[1] == -np.inf
    _, fresh = gains_of(problem, [MODEL[0], OTHERS[1]], OTHERS)
    # The price of a size is that of the model before, and the newcomer cannot leave.
    after = fresh.gains()
    order = [j for j in range(len(OTHERS)) if j != 1]
    assert np.argmax(gains[order]) == np.argmax(after[order])
    np.testing.assert_allclose(gains[order], after[order], atol=1.0)


def test_logistic_gains_rank_as_exact_ones(rng, pose, data):
    values, signal = data
    response = (rng.random(N) < 1 / (1 + np.exp(-signal))).astype(float)
    engine = build_engine(Observations(response), Jeffreys(), family="binomial")
    problem = replace(pose(values, response), engine=engine)
    _, candidates = gains_of(problem, MODEL, OTHERS)
    exact = [best_exact_gain(problem, MODEL, candidate) for candidate in OTHERS]
    np.testing.assert_allclose(candidates.gains(), exact, atol=1.0)


def test_columns_in_the_span_and_undefined_ones_are_out(rng, pose, data):
    values, signal = data
    problem = pose(values, signal + rng.normal(size=N))
    screen, _ = gains_of(problem, MODEL, OTHERS)
    inside, _ = evaluate(MODEL, problem.table)
    rows = np.vstack([inside.sum(axis=1), np.full(N, np.nan), np.full(N, 3.0), values[:, 4]])
    gains = screen.weigh(rows, np.zeros(4)).gains()
    np.testing.assert_array_equal(np.isfinite(gains), [False, False, False, True])


def test_promising_newcomers_come_first(rng, pose, data):
    """The product in the truth is among the first newcomers; of blind draws it is one in dozens."""
    values, signal = data
    problem = pose(values, signal + 0.3 * rng.normal(size=N), transforms=("tanh",))
    features = [covariate(name) for name in NAMES]
    parents = Parents(features, np.ones(P), features)
    columns, _ = evaluate(features, problem.table)
    inclusion = np.array([1.0, 0, 0, 1.0, 0, 0, 0])
    screener = Screener(problem)
    screener.look_at(features, columns, inclusion)
    first = [
        next(draw_newcomers(np.random.default_rng(seed), problem, parents, screener, {}, 5))
        for seed in range(10)
    ]
    assert all({"x2", "x3"} <= set(feature.covariates) for feature in first)
