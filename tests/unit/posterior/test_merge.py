"""Tests of `dbrm.posterior.merge`: small chains by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dbrm
from dbrm.data import Table
from dbrm.errors import UnknownNameError
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.evolution import ChainResult, Filtration, Grammar, Problem, SearchBudget
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.features import resolve_transforms
from dbrm.posterior import Merger, merge_chains
from dbrm.priors import Complexity
from dbrm.search import ModelTable, split_key
from dbrm.status import Status

PENALTY = 2.0


@pytest.fixture
def problem(rng):
    """Evidence is what the chains say: the engine does not recompute it."""
    values = rng.uniform(0.5, 2.0, size=(30, 3))
    return Problem(
        table=Table(("x", "z", "u"), values),
        engine=SimpleNamespace(refines=False, row_terms_at_most=0.0, has_row_terms=False),
        model_prior=Complexity(PENALTY),
        grammar=Grammar(resolve_transforms(["troot", "sin"]), 5, 10, 4, OptimizeThenTransform()),
        filtration=Filtration(),
        budget=SearchBudget(15, 1, n_init=1, n_final=1),
        max_model_size=5,
    )


def chain(models, *, aliases=None, log_lost=-np.inf):
    """A chain that visited these models: a mapping of texts joined by ``+`` to log evidence."""
    texts = sorted({text for model in models for text in model.split("+") if text})
    features = [dbrm.parse_feature(text) for text in texts]
    masks = np.array([[text in model.split("+") for text in texts] for model in models], dtype=bool)
    prior = -PENALTY * masks @ np.array([f.complexity for f in features], dtype=float)
    keys = np.array([split_key(feature.key) for feature in features], dtype=np.uint64)
    table = ModelTable.from_masks(
        masks,
        np.arange(len(texts), dtype=np.int32),
        keys.reshape(-1, 2),
        log_evidence=np.array(list(models.values())),
        log_prior=prior,
        statuses=np.zeros(len(models), dtype=np.uint8),
    )
    spellings = {
        texts.index(name): [dbrm.parse_feature(t) for t in more]
        for name, more in (aliases or {}).items()
    }
    return ChainResult(
        features=features,
        aliases=spellings,
        models=table,
        log_lost=log_lost,
        n_evaluated=len(models),
        status_counts={},
        rejections={},
        trace=np.zeros(1),
        moves={},
    )


def as_mapping(merged):
    return {
        "+".join(sorted(str(merged.features[j]) for j in merged.models.features_of(row))): p
        for row, p in enumerate(merged.probability)
    }


FIRST = {"": 0.0, "x": 5.0, "x+z": 6.0}
SECOND = {"x": 5.0, "z": 1.0}
# Log posteriors by hand: two nats per covariate.
MASS = {"": np.exp(0.0), "x": np.exp(3.0), "x+z": np.exp(2.0), "z": np.exp(-1.0)}


def normalised(weights):
    total = sum(weights.values())
    return {key: pytest.approx(value / total, rel=1e-12) for key, value in weights.items()}


def test_union_counts_every_model_once(problem):
    merged = merge_chains([chain(FIRST), chain(SECOND)], problem, "union")
    assert as_mapping(merged) == normalised(MASS)
    assert merged.log_mass == pytest.approx(np.log(sum(MASS.values())))
    assert np.all(np.diff(merged.probability) <= 0)


def test_chains_are_merged_again_only_if_there_are_more(problem):
    merger = Merger(problem)
    merger.add(chain(FIRST))
    first = merger.merged()
    assert merger.merged() is first
    merger.add(chain(SECOND))
    assert as_mapping(first) == normalised({key: MASS[key] for key in FIRST})
    assert as_mapping(merger.merged()) == normalised(MASS)


def test_mass_counts_a_model_once_per_chain(problem):
    """The paper's u_b, proportional to the mass of each chain."""
    merged = merge_chains([chain(FIRST), chain(SECOND)], problem, "mass")
    own = [{k: MASS[k] for k in FIRST}, {k: MASS[k] for k in SECOND}]
    share = np.array([sum(mass.values()) for mass in own])
    by_hand = dict.fromkeys(MASS, 0.0)
    for u, mass in zip(share / share.sum(), own, strict=True):
        for key, value in mass.items():
            by_hand[key] += u * value / sum(mass.values())
    assert as_mapping(merged) == normalised(by_hand)
    assert as_mapping(merged) == normalised({**MASS, "x": 2 * MASS["x"]})


def test_uniform_averages_the_chains(problem):
    merged = merge_chains([chain(FIRST), chain(SECOND)], problem, "uniform")
    first = sum(MASS[k] for k in FIRST)
    second = sum(MASS[k] for k in SECOND)
    by_hand = {
        "": 0.5 * MASS[""] / first,
        "x": 0.5 * MASS["x"] / first + 0.5 * MASS["x"] / second,
        "x+z": 0.5 * MASS["x+z"] / first,
        "z": 0.5 * MASS["z"] / second,
    }
    assert as_mapping(merged) == normalised(by_hand)


def test_a_chain_that_lags_behind_counts_in_the_plain_average_only(problem):
    """Three thousand nats apart: far beyond the window, and beyond what exp can hold."""
    chains = [chain({"x": 3002.0}), chain({"z": 2.0})]
    assert as_mapping(merge_chains(chains, problem, "uniform")) == normalised({"x": 1.0, "z": 1.0})
    assert as_mapping(merge_chains(chains, problem, "union")) == {"x": 1.0}
    assert as_mapping(merge_chains(chains, problem, "mass")) == {"x": 1.0}


@pytest.mark.parametrize("how", ["union", "mass", "uniform"])
def test_the_order_of_the_chains_does_not_matter(problem, how):
    chains = [chain(FIRST), chain(SECOND), chain({"u+x": 4.0, "sin(x)": 6.0})]
    forth, back = merge_chains(chains, problem, how), merge_chains(chains[::-1], problem, how)
    for key, value in as_mapping(forth).items():
        assert as_mapping(back)[key] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("order", [1, -1])
def test_one_law_under_two_spellings_is_one_row(problem, order):
    """Positive values: the cube root of x*x*x is x. The simplest spelling sets the prior."""
    chains = [chain({"troot(x*x*x)": 5.0, "": 0.0}), chain({"x": 5.0})][::order]
    merged = merge_chains(chains, problem)
    assert as_mapping(merged) == normalised({"x": np.exp(3.0), "": 1.0})
    assert [[str(f) for f in more] for more in merged.aliases.values()] == [["troot(x*x*x)"]]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("how", ["union", "mass"])
def test_a_model_survives_the_window_under_its_simplest_spelling(problem, order, how):
    """One chain knows a longer spelling only, by which its models seem to be far behind."""
    problem = replace(problem, budget=replace(problem.budget, window=4.0))
    long, short = "troot(x*x*x)*z", "x*z"
    costs = [dbrm.parse_feature(text).complexity for text in (long, short)]
    assert PENALTY * (costs[0] - costs[1]) > 4.0
    chains = [chain({long: 30.0, f"{long}+u": 31.0}), chain({f"{short}+u": 31.0})]
    merged = merge_chains(chains[::order], problem, how)
    found = as_mapping(merged)
    assert set(found) == {"x*z", "u+x*z"}
    assert found["x*z"] > found["u+x*z"] or how == "mass"


def test_aliases_of_the_chains_survive(problem):
    merged = merge_chains([chain({"x": 5.0}, aliases={"x": ["troot(x*x*x)"]})], problem)
    assert [str(f) for f in merged.aliases[0]] == ["troot(x*x*x)"]


def test_models_outside_the_window_are_cut_and_booked(problem):
    models = {"x": 50.0, "z": 49.0, "": 10.0}
    merged = merge_chains([chain(models, log_lost=3.0)], problem)
    assert set(as_mapping(merged)) == {"x", "z"}
    assert merged.log_lost == pytest.approx(np.logaddexp(10.0, 3.0))


def test_features_that_no_model_uses_are_forgotten(problem):
    merged = merge_chains([chain({"x": 90.0, "u": 0.0})], problem)
    assert [str(feature) for feature in merged.features] == ["x"]


def test_an_unknown_merge_is_refused(problem):
    with pytest.raises(UnknownNameError, match="There is no merge rule 'best'"):
        merge_chains([chain(FIRST)], problem, "best")


def test_leading_models_are_recomputed_from_the_rows(problem, rng):
    """What a chain noted, here nonsense, is replaced by what the engine says."""
    values = problem.table.values
    engine = GaussianEngine(values[:, 0] + 0.1 * rng.normal(size=30), Jeffreys())
    refining = replace(problem, engine=engine)
    merged = merge_chains([chain({"x": 5.0, "z": 5.1, "x+z": 6.5})], refining)
    assert merged.n_refined == 3
    by_row = {key: row for row, key in enumerate(as_mapping(merged))}
    for key, columns in {"x": [0], "z": [1], "x+z": [0, 1]}.items():
        expected, _ = engine.log_evidence(values[:, columns])
        assert merged.models.log_evidence[by_row[key]] == pytest.approx(expected)
    assert merged.models.statuses.tolist() == [Status.OK] * 3


def test_a_lone_null_model_is_refined_too(problem, rng):
    """It has no columns at all: this once raised."""
    engine = GaussianEngine(rng.normal(size=30), Jeffreys())
    merged = merge_chains([chain({"": 5.0})], replace(problem, engine=engine))
    assert as_mapping(merged) == {"": 1.0}


def test_models_that_all_turn_out_dependent_keep_their_evidence(problem):
    """Otherwise nothing is left, and all probabilities are NaN."""

    def all_dependent(_, masks):
        return np.full(len(masks), -np.inf), np.full(len(masks), Status.RANK_DEFICIENT)

    engine = SimpleNamespace(
        refines=True, row_terms_at_most=0.0, has_row_terms=False, log_evidence_of=all_dependent
    )
    models = {"x": -1.0, "x+z": -3.0}
    merged = merge_chains([chain(models)], replace(problem, engine=engine), "union")
    assert merged.probability.sum() == pytest.approx(1.0)
    assert merged.models.log_evidence.tolist() == [-1.0, -3.0]
    assert merged.n_refined == 0


def test_an_exact_law_found_before_the_chains_is_included(rng):
    """A chain knows an approximation, which to its Gram matrix is as good, and is cheaper."""
    x = rng.uniform(0.5, 2.0, size=(40, 2))
    near = x[:, 0] * x[:, 1] * (1.0 + 1e-7 * rng.normal(size=40))
    table = Table(("x", "z", "u"), np.column_stack([x, near]))
    problem = Problem(
        table=table,
        engine=GaussianEngine(x[:, 0] * x[:, 1], Jeffreys()),
        model_prior=Complexity(PENALTY),
        grammar=Grammar(resolve_transforms(["troot", "sin"]), 5, 10, 4, OptimizeThenTransform()),
        filtration=Filtration(),
        budget=SearchBudget(15, 1, n_init=1, n_final=1),
        max_model_size=5,
    )
    law = dbrm.parse_feature("x*z", table.names)
    best = {}
    for included in (False, True):
        merger = Merger(problem)
        merger.add(chain({"u": 500.0, "x": 480.0}))
        if included:
            merger.include([law])
        merged = merger.merged()
        best[included] = [merged.features[j].text for j in merged.models.features_of(0)]
        assert merged.probability.sum() == pytest.approx(1.0)
    assert best == {False: ["u"], True: ["x*z"]}
    assert 0 in merged.visited[0]
