"""Numbers that could fail: steps, separated classes, overflow, constants, odd units."""

import numpy as np
import pytest

from dbrm.data import Table
from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evolution.population import Rejections, _Builder
from dbrm.evolution.projection import AllLayers, TransformThenOptimize
from dbrm.evolution.projection.objectives import AffineObjective
from dbrm.evolution.projection.program import Program, free_projections
from dbrm.evolution.registry import Registry
from dbrm.features import (
    Transform,
    column_status,
    covariate,
    evaluate,
    get_transform,
    parse_feature,
)
from dbrm.status import Status

X1, X2, X3, X4 = (covariate(f"x{j}") for j in range(1, 5))
TANH = get_transform("tanh")


def log_likelihood(engine, feature, table):
    return engine.fit(evaluate([feature], table)[0]).log_likelihood


def smooth(text, table):
    feature = parse_feature(text)
    nodes = free_projections(feature)
    return Program(feature, nodes, lambda node: evaluate([node], table)[0][:, 0]).smooth


def test_steps_and_moving_knots_are_told_from_smooth_functions(table):
    assert smooth("tanh(0.1 + 1.0*x1 + 1.0*x2)", table)
    assert smooth("relu(0.1 + 1.0*x1 + 1.0*x2)", table)
    assert not smooth("step[0.5](0.1 + 1.0*x1 + 1.0*x2)", table)
    assert not smooth("tanh(0.1 + 1.0*x1 + 1.0*step[0.5](0.1 + 1.0*x1 + 1.0*x2))", table)
    assert not smooth("hinge[q0.5=0.1](0.1 + 1.0*x1 + 1.0*x2)", table)
    # A step below a projection, without weights inside, is just a column.
    assert smooth("tanh(0.1 + 1.0*x1 + 1.0*step[0.5](x2))", table)


@pytest.mark.parametrize(
    "name", ["step[0.5]", "step_down[q0.5]", "step[q0.25]", "hinge[q0.5]", "relu", "troot"]
)
@pytest.mark.parametrize("strategy", [2, 3])
def test_functions_without_derivatives_are_fitted_too(rng, name, strategy, table, projector):
    x = table.values
    y = 3.0 * (x[:, 0] - 2 * x[:, 1] > 0.5) + 0.3 * rng.normal(size=len(x))
    engine = build_engine(Observations(y), Jeffreys())
    transform = get_transform(name)
    reached = []
    for one in (projector(engine, 1), projector(engine, strategy)):
        inner = one.build(rng, transform, [X1, X2])
        feature = one.build(rng, TANH, [inner, X3])
        _, column, status = _trial(one, feature)
        assert status == Status.OK
        reached.append(engine.fit(column[:, None]).log_likelihood)
    assert reached[1] >= reached[0] - 1e-9
    assert strategy != 3 or "step" not in name or reached[1] > reached[0]


def test_many_weights_without_derivatives(rng, table, projector):
    """More than a simplex can handle."""
    engine = build_engine(Observations(table.values[:, 0] + rng.normal(size=60)), Jeffreys())
    step = get_transform("step[0]")
    one = projector(engine, AllLayers(restarts=2, max_iterations=20))
    inner = one.build(rng, step, [X1, X2, X3])
    feature = one.build(rng, step, [inner, X3, X4])
    assert _trial(one, feature)[2] == Status.OK


def test_own_functions_without_derivative(rng, table, projector):
    engine = build_engine(Observations(np.sin(table.values[:, 0] + table.values[:, 1])), Jeffreys())
    own = Transform("wave", lambda x: np.sin(x) + 0.1 * x)
    one, two = (projector(engine, s).build(rng, own, [X1, X2]) for s in (1, 2))
    better, worse = log_likelihood(engine, two, table), log_likelihood(engine, one, table)
    assert better > worse + 10.0


@pytest.mark.parametrize("strategy", [1, 2, 3])
@pytest.mark.parametrize("affine", [True, False])
def test_separated_classes_do_not_blow_up(rng, strategy, affine, table, projector):
    x = table.values
    y = (x[:, 0] + x[:, 1] > 0.1).astype(float)
    engine = build_engine(Observations(y), Jeffreys(), family="binomial")
    kinds = {1: 1, 2: TransformThenOptimize(affine), 3: AllLayers(affine)}
    one = projector(engine, kinds[strategy])
    inner = one.build(rng, TANH, [X1, X2])
    feature = one.build(rng, TANH, [inner, X3])
    _, column, status = _trial(one, feature)
    assert status == Status.OK
    numbers = [w for node in free_projections(feature) for w in (node.bias, *node.weights)]
    assert np.max(np.abs(numbers)) < 500.0
    assert engine.fit(column[:, None]).log_likelihood > -5.0


def test_the_inner_fit_of_separated_data_is_finite(rng):
    x = np.sort(rng.normal(size=50))
    engine = build_engine(Observations((x > 0).astype(float)), Jeffreys(), family="binomial")
    head = AffineObjective(engine.likelihood(), 0.0)
    value, bar = head.value(x)
    assert np.isfinite(value)
    assert -2.0 < value < 0.0
    assert np.all(np.isfinite(bar))


def test_the_inner_fit_is_the_model(rng, family, respond, table):
    """Without a penalty the value is the likelihood that the engine maximises."""
    signal = np.tanh(table.values[:, 0])
    engine = respond(rng, family, signal)
    head = AffineObjective(
        engine.likelihood(), engine.project(np.empty((table.n_rows, 0)))[0], penalised=False
    )
    for column in (signal, 1e6 * signal + 1e7, 1e-9 * signal, table.values[:, 1]):
        expected = engine.fit(column[:, None]).log_likelihood
        assert head.value(column)[0] == pytest.approx(expected, rel=1e-9, abs=1e-7)


def test_the_inner_fit_of_a_constant_is_the_null_model(rng, respond, table):
    engine = respond(rng, "poisson", table.values[:, 0])
    intercept = engine.project(np.empty((table.n_rows, 0)))[0]
    head = AffineObjective(engine.likelihood(), intercept)
    value, bar = head.value(np.full(table.n_rows, 3.0))
    assert value == pytest.approx(engine.fit(np.empty((table.n_rows, 0))).log_likelihood)
    assert not bar.any()
    assert head.value(np.full(table.n_rows, np.inf))[0] == -np.inf
    assert head.value(np.full(table.n_rows, np.nan))[0] == -np.inf


@pytest.mark.parametrize("strategy", [1, 2, 3])
def test_units_do_not_matter(rng, strategy, table, projector):
    """Children in other units give the same column, unless the response's units matter."""
    y = np.tanh(table.values[:, 0] - table.values[:, 1]) + 0.1 * rng.normal(size=60)
    engine = build_engine(Observations(y), Jeffreys())
    other = Table(table.names, table.values * [1e8, 1e-8, 1.0, 1.0] + [1e9, 1e-7, 0.0, 0.0])
    one = projector(engine, strategy).build(rng, TANH, [X1, X2])
    two = projector(engine, strategy, over=other).build(rng, TANH, [X1, X2])
    first, second = (evaluate([f], t)[0][:, 0] for f, t in ((one, table), (two, other)))
    reached = [engine.fit(column[:, None]).log_likelihood for column in (first, second)]
    assert reached[1] == pytest.approx(reached[0], abs=0.02)


@pytest.mark.parametrize(
    ("name", "size", "reason"),
    [("exp", 1e4, Status.OVERFLOW), ("sigmoid", 1e7, Status.CONSTANT)],
)
def test_columns_unfit_for_use_are_rejected_with_a_reason(rng, pose, name, size, reason):
    """Strategy 1 puts the response's own size through g; the builder says what is wrong."""
    values = rng.normal(size=(40, 2))
    problem = pose(values, size * (3.0 + 0.1 * values.sum(axis=1)) + rng.normal(size=40))
    feature = problem.projector.build(rng, get_transform(name), [X1, X2])
    rejections = Rejections()
    builder = _Builder(problem, Registry(problem.table), rejections)
    builder.add(feature)
    assert rejections.counts == {reason.meaning: 1}


@pytest.mark.parametrize("name", ["exp", "sigmoid"])
def test_fitting_behind_the_transform_rescues_such_columns(rng, name, table, projector):
    y = 1e5 * (3.0 + np.tanh(table.values[:, 0])) + rng.normal(size=60)
    engine = build_engine(Observations(y), Jeffreys())
    transform = get_transform(name)
    one, two = (projector(engine, s).build(rng, transform, [X1, X2]) for s in (1, 2))
    assert column_status(evaluate([one], table)[0][:, 0]) != Status.OK
    assert column_status(evaluate([two], table)[0][:, 0]) == Status.OK


def _trial(projector, feature):
    from dbrm.evolution.projection.base import ProjectionContext

    return ProjectionContext(projector, {}).trial(feature)
