"""Tests of `dbrm.posterior.unvisited`: the mass of models that no chain visited."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.evidence import ShortCoefficients
from dbrm.features import evaluate
from dbrm.posterior.merge import Merged
from dbrm.posterior.unvisited import _exchanges, _Walks, with_unvisited
from dbrm.search import split_key

QUICK = {"n_chains": 2, "n_populations": 4, "random_state": 1}


def weak(draw, n, n_columns, size):
    """Columns with more and less in common, all of which matter a little."""
    share = np.linspace(0.0, 0.95, n_columns)
    common = draw.normal(size=(n, 1))
    X = pd.DataFrame(
        np.sqrt(share) * common + np.sqrt(1.0 - share) * draw.normal(size=(n, n_columns))
    )
    X.columns = [f"x{j}" for j in range(n_columns)]
    return X, X.to_numpy() @ np.full(n_columns, size) + draw.normal(size=n)


@dataclass
class Few:
    """In the place of a merger: a posterior over the most probable models only."""

    merged_models: Merged
    problem: object

    def merged(self):
        return self.merged_models

    def with_features(self, features, columns):
        assert not features
        return self.merged_models

    def feature_terms(self):
        prior = self.problem.model_prior
        return np.array([prior.feature_log_prior(f) for f in self.merged_models.features])

    def feature_keys(self):
        keys = [split_key(feature.key) for feature in self.merged_models.features]
        return np.array(keys, dtype=np.uint64)


def inclusion(merged):
    return merged.models.add_up(merged.probability, len(merged.features))


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_the_exact_posterior_comes_back_from_its_leading_models(family):
    """All 16,384 models against the ten most probable ones with walks.

    Means of twelve seeds have standard errors of at most .002, so that a right estimate fails once
    in a thousand times; without Hastings' ratio they are off by .014 for a Gaussian response, and
    without walks by more than a tenth.
    """
    X, y = weak(np.random.default_rng(3), 120, 14, 0.12 if family == "gaussian" else 0.25)
    y = y if family == "gaussian" else (y > 0).astype(float)
    exact = dbrm.enumerate_models(X, y, family=family)
    problem = exact._source.problem
    problem = replace(
        problem, estimate_unvisited=True, grammar=replace(problem.grammar, transforms=())
    )
    all_models = exact._merged
    top = np.arange(10)
    few = replace(
        all_models,
        models=all_models.models.take(top),
        probability=all_models.probability[top] / all_models.probability[top].sum(),
        visited=[top],
    )
    errors = []
    for seed in range(12):
        found = with_unvisited(np.random.default_rng(seed), problem, Few(few, problem))
        assert found.probability.sum() == pytest.approx(1.0)
        assert np.all(np.diff(found.probability) <= 0.0)
        errors.append(inclusion(found) - inclusion(all_models))
    assert np.max(np.abs(np.mean(errors, axis=0))) < 0.01
    assert np.max(np.abs(inclusion(few) - inclusion(all_models))) > 0.1
    # Those that were visited, with the ones that walks found first, keep their ratios.
    known = np.isin(all_models.models.keys[:, 0], found.models.keys[found.visited[0], 0])
    np.testing.assert_allclose(
        found.probability[found.visited[0]] / found.probability[found.visited[0]].sum(),
        all_models.probability[known] / all_models.probability[known].sum(),
        rtol=1e-6,
    )


@pytest.mark.parametrize("zero_intercept", [0.0, 0.9])
def test_what_only_the_rows_say_counts(zero_intercept):
    """As above with coefficients that may be short, of which populations do not know.

    Seven columns have a coefficient of one half, the only short number, each beside a relative.
    """
    draw = np.random.default_rng(3)
    base = draw.normal(size=(150, 7))
    X = pd.DataFrame(np.hstack([base, base + 0.1 * draw.normal(size=(150, 7))]))
    X.columns = [f"x{j}" for j in range(14)]
    y = base @ np.full(7, 0.5) + 0.25 * draw.normal(size=150)
    exact = dbrm.enumerate_models(X, y, penalty="adaptive", prior="zellner-siow")
    problem, before = exact._source.problem, exact._merged
    prior = ShortCoefficients(0.9, np.array([5.0]), np.zeros(1))
    engine = replace(problem.engine, short_coefficients=prior, zero_intercept=zero_intercept)
    problem = replace(
        problem,
        engine=engine,
        estimate_unvisited=True,
        grammar=replace(problem.grammar, transforms=()),
    )
    n = len(before.features)
    masks = np.zeros((len(before.models), n), dtype=bool)
    masks[before.models.owners, before.models.members] = True
    columns = evaluate(before.features, problem.table)[0]
    models = replace(before.models, log_evidence=engine.log_evidence_of(columns, masks)[0])
    change = float(np.median((models.log_evidence - before.models.log_evidence)[:100]))
    log_posterior = models.log_evidence + models.log_prior
    order = np.argsort(-log_posterior, kind="stable")
    probability = np.exp(log_posterior - np.logaddexp.reduce(log_posterior))[order]
    exact = replace(before, models=models.take(order), probability=probability)
    assert np.max(np.abs(inclusion(exact) - inclusion(before))) > 0.1
    # The most probable model of each column, and the first of all.
    masks[:] = False
    masks[exact.models.owners, exact.models.members] = True
    first = [int(np.argmax(column)) for column in masks.T]
    rows = np.unique([0, *first])
    few = replace(
        exact,
        models=exact.models.take(rows),
        probability=probability[rows] / probability[rows].sum(),
        visited=[np.arange(rows.size)],
        row_terms=change,
    )
    assert np.max(np.abs(inclusion(few) - inclusion(exact))) > 0.05
    errors = []
    for seed in range(12):
        found = with_unvisited(np.random.default_rng(seed), problem, Few(few, problem))
        errors.append(inclusion(found) - inclusion(exact))
    assert np.max(np.abs(np.mean(errors, axis=0))) < 0.01


def test_the_empty_model_has_its_share():
    """Of 400 walks over 256 models; nothing is there to find, but a few columns look like it.

    The share of the steps has a standard error of about .005; it is a tenth too small if walks
    leave the empty model twice as often as others add a feature.
    """
    X, y = weak(np.random.default_rng(2), 60, 8, 0.0)
    exact = dbrm.enumerate_models(X, y, penalty="adaptive", prior="zellner-siow")
    problem = exact._source.problem
    problem = replace(
        problem, estimate_unvisited=True, grammar=replace(problem.grammar, transforms=())
    )
    empty = exact._merged.models.sizes == 0
    share = float(exact._merged.probability[empty].sum())
    assert 0.2 < share < 0.9
    prior = problem.model_prior
    terms = problem.prior_terms([prior.feature_log_prior(f) for f in exact._merged.features])
    columns = X.to_numpy()
    walks = _Walks(
        problem.engine.prepare(columns), terms, *_exchanges(columns), np.arange(1.0, 9.0)
    )
    rng = np.random.default_rng(1)
    states = walks.start(np.zeros((400, 8), dtype=bool))
    seen = []
    for step in range(400):
        states = walks.step(rng, states)
        if step >= 100:
            seen.append(np.mean(~states.masks.any(axis=1)))
    assert np.mean(seen) == pytest.approx(share, abs=0.02)


@pytest.fixture(scope="module")
def many():
    X, y = weak(np.random.default_rng(5), 400, 14, 0.12)
    return X, y, dbrm.fit(X, y, **QUICK)


def test_what_no_chain_visited_counts(many, tmp_path):
    X, y, posterior = many
    assert 0.1 < posterior.unvisited < 1.0
    assert posterior.models["probability"].sum() == pytest.approx(1.0)
    assert "Formulas that no chain visited have about" in posterior.summary()
    without = dbrm.fit(X, y, estimate_unvisited=False, **QUICK)
    assert without.unvisited == 0.0
    assert without.best_model.features == posterior.best_model.features
    ratio = posterior.best_model.probability / without.best_model.probability
    assert ratio < 1.0 - 0.5 * posterior.unvisited
    # The path has the best formula of each complexity, none that stands for others.
    models, features = posterior._merged.models, posterior._merged.features
    complexity = models.sum_terms(np.array([float(f.complexity) for f in features]))
    for step in posterior.path_steps:
        same = complexity == step.complexity
        if same.any():
            value = np.max((models.log_evidence + models.log_prior)[same])
            share = np.exp(value - posterior._merged.log_mass) * (1.0 - posterior.unvisited)
            assert step.probability >= share * (1.0 - 1e-6)
    best = max(step.probability for step in posterior.path_steps)
    assert best == pytest.approx(posterior.best_model.probability)
    posterior.save(tmp_path / "run.dbrm")
    again = dbrm.load(tmp_path / "run.dbrm")
    assert again.unvisited == posterior.unvisited
    pd.testing.assert_frame_equal(again.features, posterior.features)
    np.testing.assert_array_equal(again.predict(X), posterior.predict(X))


def test_the_same_seed_gives_the_same(many):
    X, y, posterior = many
    again = dbrm.fit(X, y, **QUICK)
    assert again.unvisited == posterior.unvisited
    pd.testing.assert_frame_equal(again.features, posterior.features)


def test_a_sure_formula_and_presets_need_no_walks():
    draw = np.random.default_rng(7)
    X = pd.DataFrame(draw.normal(size=(200, 3)), columns=list("abc"))
    y = X["a"] * X["b"] + 0.1 * draw.normal(size=200)
    assert dbrm.fit(X, y, transforms=[], **QUICK).unvisited == 0.0
    X, y = weak(draw, 200, 8, 0.1)
    assert dbrm.fit(X, y, preset="paper_text", **QUICK).unvisited == 0.0


def test_relatives_that_no_chain_met_are_in_the_posterior():
    """A product of covariates cannot be told from one with an arcus tangent of a factor."""
    draw = np.random.default_rng(11)
    X = pd.DataFrame(draw.normal(size=(120, 8)), columns=list("abcdefgh"))
    y = X["a"] * X["b"] + 0.5 * X["c"] * X["d"] + 0.4 * X["e"] + draw.normal(size=120)
    posterior = dbrm.fit(X, y, **QUICK)
    table = posterior.features
    like = table["feature"].str.contains("c") & table["feature"].str.contains("d")
    assert (table["inclusion"][like] > 0).sum() > 8
    assert len(posterior.diagnostics.chain_inclusion.T) == len(table)
