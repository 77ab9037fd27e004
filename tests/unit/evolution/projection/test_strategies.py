"""The four strategies: what they reach, and that topology and data alone decide."""

import itertools
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import dbrm
from dbrm.data import Table
from dbrm.errors import InvalidSettingError
from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evolution import Operators, proceed
from dbrm.evolution.algorithms.gmjmcmc import Gmjmcmc
from dbrm.evolution.projection import (
    AllLayers,
    Bayes,
    OptimizeThenTransform,
    Projector,
    TransformThenOptimize,
    resolve_strategy,
)
from dbrm.evolution.projection.program import free_projections
from dbrm.features import covariate, evaluate, get_transform, multiply, parse_feature, project, walk

X1, X2, X3, X4 = (covariate(f"x{j}") for j in range(1, 5))
TANH, SIN = get_transform("tanh"), get_transform("sin")


@pytest.fixture
def nested(rng, table):
    """A signal that is a projection of projections."""
    x = table.values
    first, second = np.tanh(0.5 + 1.2 * x[:, 0] - x[:, 1]), np.tanh(x[:, 2] + 1.5 * x[:, 3])
    return np.tanh(1.5 * first - 2.0 * second)


def likelihood(engine, feature, table):
    """Maximised log likelihood of the model with this one feature."""
    return engine.fit(evaluate([feature], table)[0]).log_likelihood


def build_nested(projector, rng, top=TANH):
    first, second = projector.build(rng, TANH, [X1, X2]), projector.build(rng, TANH, [X3, X4])
    return projector.build(rng, top, [first, second])


LATER = ("gauss", "sin", "exp", "log_abs")
TRANSFORMS = ["tanh", "relu", "troot", *(pytest.param(f, marks=pytest.mark.slow) for f in LATER)]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_two_is_never_below_one(rng, family, name, respond, nested, table, projector):
    engine, transform = respond(rng, family, nested), get_transform(name)
    for children in ([X1, X2], [X1, X3, multiply(X2, X4)]):
        one = projector(engine, 1).build(rng, transform, children)
        two = projector(engine, 2).build(rng, transform, children)
        assert one.key == two.key
        before, after = (likelihood(engine, feature, table) for feature in (one, two))
        assert after >= before - 1e-6 * (1.0 + abs(before))


def test_three_is_never_below_two_or_one(rng, family, respond, nested, table, projector):
    engine = respond(rng, family, nested)
    one, two, three = (build_nested(projector(engine, s), rng) for s in (1, 2, 3))
    assert one.key == two.key == three.key
    reached = [likelihood(engine, feature, table) for feature in (one, two, three)]
    assert reached[2] >= max(reached) - 1e-6 * (1.0 + abs(reached[0]))


def test_the_literal_versions_climb_their_own_objective(rng, respond, nested, table, projector):
    engine = respond(rng, "binomial", nested)
    rows = engine.likelihood()
    one = projector(engine, 1).build(rng, TANH, [X1, X2])
    two = projector(engine, TransformThenOptimize(outer_affine=False)).build(rng, TANH, [X1, X2])
    first, second = (rows.at(evaluate([f], table)[0][:, 0]).value for f in (one, two))
    assert second > first


def test_bounded_transforms_need_the_outer_affine(rng):
    """Where the paper's version fails: a Gaussian bump reaches probabilities 0.5 to 0.73."""
    values = rng.normal(size=(400, 2))
    table = Table(("x1", "x2"), values)
    bump = np.exp(-((0.3 + values[:, 0] - values[:, 1]) ** 2))
    y = (rng.random(400) < 1 / (1 + np.exp(-(8.0 * bump - 4.0)))).astype(float)
    engine = build_engine(Observations(y), Jeffreys(), family="binomial")
    rows, gauss = engine.likelihood(), get_transform("gauss")
    fits = {}
    for affine in (False, True):
        strategy = TransformThenOptimize(outer_affine=affine)
        feature = Projector(strategy, engine, table).build(rng, gauss, [X1, X2])
        fits[affine] = feature
    literal = rows.at(evaluate([fits[False]], table)[0][:, 0]).value
    assert likelihood(engine, fits[True], table) > literal + 50.0


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_the_way_does_not_matter(rng, strategy, respond, nested, projector):
    """Other generators, other orders, other features met before: the same weights."""
    engine = respond(rng, "binomial", nested)
    texts = set()
    for seed, order in enumerate(itertools.permutations((X1, X2, X3))):
        fresh, own = projector(engine, strategy), np.random.default_rng(seed)
        if seed % 2:
            fresh.build(own, SIN, [X4, X1])
        inner = fresh.build(own, TANH, sorted(order, key=lambda f: f.canonical))
        pair = sorted([inner, X4], key=lambda f: f.canonical)
        texts.add(fresh.build(own, SIN, pair).text)
    assert len(texts) == 1


def test_inner_weights_at_the_start_do_not_matter_across_layers(rng, respond, nested, projector):
    """Strategy 3 forgets the weights that children bring along."""
    engine = respond(rng, "gaussian", nested)
    texts = set()
    for weights in ([1.0, -1.0], [0.1, 5.0], [-3.0, 0.0]):
        child = project(TANH, [X1, X2], weights, 0.5)
        texts.add(projector(engine, 3).build(rng, SIN, [child, X3]).text)
    assert len(texts) == 1
    # Negative control: strategy 2 conditions on its children.
    other = {
        projector(engine, 2).build(rng, SIN, [project(TANH, [X1, X2], w, 0.5), X3]).text
        for w in ([1.0, -1.0], [0.1, 5.0])
    }
    assert len(other) == 2


def test_a_shared_child_stays_shared(rng, respond, nested, projector):
    engine = respond(rng, "gaussian", nested)
    one = projector(engine, 3)
    child = one.build(rng, TANH, [X1, X2])
    inside = one.build(rng, SIN, [child, X3])
    feature = one.build(rng, TANH, [child, inside])
    assert len(free_projections(feature)) == 3


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_chains_agree_on_the_weights_of_every_feature(rng, strategy, pose):
    """Whatever the populations were, one topology has one text; a binary covariate included."""
    values = rng.normal(size=(60, 3))
    values[:, 2] = values[:, 2] > 0
    y = np.tanh(values[:, 0] - values[:, 1]) + values[:, 2] + 0.3 * rng.normal(size=60)
    problem = pose(
        values,
        y,
        transforms=("tanh", "step[q0.5]"),
        operators=Operators(1, 1, 1, 6, informed=0.0),
        max_complexity=14,
        n_populations=16,
    )
    effort = {} if strategy == 1 else {"restarts": 2, "max_iterations": 15}
    quick = replace(resolve_strategy(strategy), **effort)
    texts, met_again, nested = {}, 0, 0
    for seed in range(4):
        # A fresh problem remembers nothing.
        own = replace(problem, grammar=replace(problem.grammar, projection=quick))
        for feature in proceed(Gmjmcmc(np.random.default_rng(seed), own)).result().features:
            met_again += feature.key in texts and bool(free_projections(feature))
            assert texts.setdefault(feature.key, feature.text) == feature.text
            nested += any(free_projections(child) for child in feature.children)
    assert met_again > 5
    assert nested > 5


SCRIPT = """
import numpy as np
from dbrm.data import Table
from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evolution.projection import Projector, resolve_strategy
from dbrm.features import covariate, get_transform
rng = np.random.default_rng(5)
values = rng.normal(size=(80, 3))
y = (rng.random(80) < 1 / (1 + np.exp(-2 * np.tanh(values[:, 0] - values[:, 1])))).astype(float)
engine = build_engine(Observations(y), Jeffreys(), family="binomial")
x = [covariate(name) for name in ("a", "b", "c")]
tanh = get_transform("tanh")
projector = Projector(resolve_strategy(3), engine, Table(("a", "b", "c"), values))
inner = projector.build(None, tanh, x[:2])
print(projector.build(None, tanh, [inner, x[2]]))
"""


@pytest.mark.slow
def test_other_processes_find_the_same_weights(capsys):
    exec(SCRIPT, {})
    other = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": "2", "OPENBLAS_NUM_THREADS": "2"},
    )
    assert capsys.readouterr().out == other.stdout != ""


def test_what_was_fitted_is_remembered_and_can_travel(rng, respond, nested, projector):
    engine = respond(rng, "gaussian", nested)
    one = projector(engine, 3)
    feature = build_nested(one, rng)
    assert build_nested(one, rng) is feature
    copy = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert build_nested(copy, rng).text == feature.text


def test_strategy_four_draws_weights_that_belong_to_the_identity(rng, respond, nested, projector):
    engine = respond(rng, "gaussian", nested)
    one = projector(engine, 4)
    made = [one.build(rng, TANH, [X1, X2]) for _ in range(500)]
    assert len({feature.key for feature in made}) == 500
    assert all(feature.weights_in_identity for feature in made)
    # Standard normal draws: the mean square of 1500 is one, within five standard errors.
    numbers = np.array([(feature.bias, *feature.weights) for feature in made])
    assert abs(np.mean(numbers**2) - 1.0) < 5 * np.sqrt(2 / numbers.size)
    # Weights in the identity are never refitted.
    outer = projector(engine, 3).build(rng, SIN, [made[0], X3])
    assert made[0].text in outer.text


def test_names_and_numbers_mean_the_same():
    kinds = [OptimizeThenTransform, TransformThenOptimize, AllLayers, Bayes]
    names = ["optimize-then-transform", "transform-then-optimize", "all-layers", "bayes"]
    for number, (name, kind) in enumerate(zip(names, kinds, strict=True), start=1):
        assert resolve_strategy(name) == resolve_strategy(number) == kind()
    assert resolve_strategy(2, as_published=True) == TransformThenOptimize(outer_affine=False)
    assert resolve_strategy(AllLayers(restarts=1)).restarts == 1


def test_settings_choose_the_strategy(rng):
    """The presets mean the paper's own versions of 2, 3 and 4."""
    from dbrm.run.inputs import read_in_memory
    from dbrm.run.problem import build_problem

    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    extras = dict.fromkeys(
        ("sample_weight", "offset", "trials", "exposure", "event", "entry", "strata")
    )

    def strategy(**options):
        inputs = read_in_memory(X, y, dbrm.Settings(**options), extras=extras)
        return build_problem(inputs).projector.strategy

    assert strategy() == OptimizeThenTransform()
    assert strategy(projection=2) == TransformThenOptimize(outer_affine=True)
    assert strategy(projection=3, preset="paper_text") == AllLayers(outer_affine=False)
    assert strategy(projection=4) == Bayes(integrated=True)
    assert strategy(projection=4, preset="paper_text") == Bayes(integrated=False)
    assert strategy(projection=Bayes(), preset="paper_code") == Bayes()


@pytest.mark.parametrize("merge", ["mass", "uniform"])
def test_draws_of_all_chains_are_counted_together(merge):
    with pytest.raises(InvalidSettingError, match=f"needs merge='union'; got merge='{merge}'"):
        dbrm.Settings(projection="bayes", merge=merge)
    assert dbrm.Settings(projection="bayes", merge=merge, preset="paper_text").merge == merge


@pytest.mark.parametrize("wrong", ["bayesian", 0, 5, True, None, 2.5])
def test_unknown_strategies_are_refused(wrong):
    with pytest.raises(InvalidSettingError, match="projection must be one of"):
        dbrm.Settings(projection=wrong)


@pytest.mark.parametrize("options", [{"restarts": 0}, {"max_iterations": 0}])
def test_impossible_efforts_are_refused(options):
    with pytest.raises(InvalidSettingError, match="must be at least 1"):
        AllLayers(**options)


@pytest.mark.parametrize("strategy", [2, 3, "bayes"])
@pytest.mark.parametrize("algorithm", ["gmjmcmc", pytest.param("rgmjmcmc", marks=pytest.mark.slow)])
def test_fits_run_with_every_strategy(rng, strategy, algorithm):
    values = rng.normal(size=(60, 3))
    y = np.tanh(values[:, 0] - values[:, 1]) + 0.1 * rng.normal(size=60)
    post = dbrm.fit(
        values,
        y,
        projection=strategy,
        transforms=["tanh"],
        operators={"projection": 5.0, "informed": 0.0},
        sweep=0,
        n_populations=4,
        n_chains=2,
        n_final=20,
        population_size=6,
        algorithm=algorithm,
        random_state=1,
        n_jobs=1,
    )
    texts = [feature for feature in post.features["feature"] if "+" in feature]
    assert texts
    parsed = [parse_feature(text) for text in texts]
    fixed = strategy == "bayes"
    assert any(getattr(feature, "weights_in_identity", False) is fixed for feature in parsed)


def test_a_free_knot_is_drawn_between_training_values(rng, respond, nested, table, projector):
    """Alone it is drawn; inside a projection whose weights are optimised it stays."""
    engine = respond(rng, "gaussian", nested)
    build = projector(engine, 3).build
    # None where the largest value is drawn.
    drawn = [build(rng, get_transform("hinge"), [X1]) for _ in range(20)]
    hinges = [hinge for hinge in drawn if hinge is not None]
    column = table.column("x1")
    assert len(set(hinges)) > 10
    for hinge in hinges:
        assert column.min() < hinge.knot < column.max()
        assert hinge.children == (X1,)
    hinge = hinges[0]
    outer = build(rng, TANH, [build(rng, TANH, [hinge, X2]), X3])
    assert hinge in set(walk(outer))
    step = build(rng, get_transform("step"), [outer])
    assert step.transform.name == "step"
    assert len(np.unique(step.evaluate(table))) == 2
