"""Gradients of projections agree with finite differences on random trees, for every family."""

import numpy as np
import pytest

from dbrm.evolution.projection.objectives import AffineObjective, PlainObjective
from dbrm.evolution.projection.program import (
    Program,
    free_projections,
    read_weights,
    replace_weights,
)
from dbrm.evolution.projection.weight_fitting import Scaling
from dbrm.features import TRANSFORMS, evaluate, get_transform, parse_feature, project

# Agreement asked for, relative to the length of the gradient.
CLOSE = 1e-7
SMOOTH = tuple(name for name, transform in TRANSFORMS.items() if not transform.kinks)
KINKED = tuple(name for name, transform in TRANSFORMS.items() if transform.kinks)
BOUNDED = ("tanh", "sigmoid", "sin", "cos", "gauss", "atan", "erf")


def program_of(feature, table, projections=None):
    nodes = free_projections(feature) if projections is None else projections
    return Program(feature, nodes, lambda node: evaluate([node], table)[0][:, 0]), nodes


def slope_along(function, point, direction):
    """Central differences of sixth order, with the steps that agree best among themselves."""
    steps = 10.0 ** -np.arange(1.5, 4.1, 0.5)
    found = []
    for h in steps:
        f = [function(point + k * h * direction) for k in (-3, -2, -1, 1, 2, 3)]
        found.append((-f[0] + 9 * f[1] - 45 * f[2] + 45 * f[3] - 9 * f[4] + f[5]) / (60 * h))
    best = int(np.argmin(np.abs(np.diff(found))))
    return found[best + 1]


def disagreement(value_and_gradient, point, rng):
    """Largest error along random directions, relative to the length of the gradient."""
    gradient = value_and_gradient(point)[1]
    errors = []
    for _ in range(3):
        direction = rng.normal(size=point.size)
        direction /= np.linalg.norm(direction)
        numerical = slope_along(lambda x: value_and_gradient(x)[0], point, direction)
        errors.append(abs(numerical - gradient @ direction))
    return max(errors) / (1.0 + np.linalg.norm(gradient))


def objective(program, head):
    def value_and_gradient(weights):
        value, bar = head.value(program.forward(weights))
        return value, program.backward(bar)

    return value_and_gradient


def tame(feature, table):
    """Whether no number on the way is so large that differences lose their digits."""
    program, nodes = program_of(feature, table)
    column = program.forward(read_weights(nodes))
    inner = [c for k in range(len(nodes)) for c in program.inputs(k)]
    largest = max(np.max(np.abs(c)) for c in [column, *inner])
    return np.isfinite(largest) and largest < 30.0 and np.std(column) > 1e-3


def trees(rng, tree, table, transforms, count, depth=3):
    found = []
    while len(found) < count:
        feature = tree(rng, transforms, depth)
        if tame(feature, table):
            found.append(feature)
    return found


@pytest.mark.parametrize("outer", ["affine", "plain"])
def test_gradients_agree_with_differences_for_every_family(
    rng, family, outer, respond, table, tree
):
    signal = np.tanh(table.values @ np.array([1.0, -1.0, 0.5, 0.0]))
    engine = respond(rng, family, signal)
    likelihood = engine.likelihood()
    intercept = engine.project(np.empty((table.n_rows, 0)))[0]
    # The inverse link needs positive linear predictors.
    names = ("sigmoid", "gauss") if family == "gamma/inverse" else BOUNDED
    for feature in trees(rng, tree, table, names, 6):
        program, nodes = program_of(feature, table)
        head = (
            AffineObjective(likelihood, intercept)
            if outer == "affine"
            else PlainObjective(likelihood)
        )
        assert disagreement(objective(program, head), read_weights(nodes), rng) < CLOSE


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_agree_with_differences_for_every_transform(rng, name, respond, table, tree):
    engine = respond(rng, "gaussian", np.tanh(table.values[:, 0]))
    head = AffineObjective(engine.likelihood(), 5.0)
    for feature in trees(rng, tree, table, (name, "tanh"), 4, depth=2):
        program, nodes = program_of(feature, table)
        assert disagreement(objective(program, head), read_weights(nodes), rng) < CLOSE


@pytest.mark.parametrize("name", [*KINKED, "hinge[0.3]", "hinge_down[0.3]", "power[-1]"])
def test_away_from_kinks_gradients_agree_too(rng, name, respond, table):
    # Far from zero, on the side where the function is not constant.
    bias = -6.0 if name in ("relu_mirror", "hinge_down[0.3]") else 6.0
    children = [parse_feature("x1"), parse_feature("sin(x2)")]
    feature = project(get_transform(name), children, [0.7, -1.1], bias)
    assert np.min(np.abs(bias + 0.7 * table.values[:, 0])) > 2.5
    head = AffineObjective(respond(rng, "gaussian", np.tanh(table.values[:, 0])).likelihood(), 5.0)
    program, nodes = program_of(feature, table)
    assert program.smooth
    assert disagreement(objective(program, head), read_weights(nodes), rng) < CLOSE


def test_planted_mistakes_are_caught(rng, respond, table, tree):
    """Negative control: a slope that is off by a part in ten thousand fails."""
    engine = respond(rng, "gaussian", np.tanh(table.values[:, 0]))
    head = AffineObjective(engine.likelihood(), 5.0)
    feature = trees(rng, tree, table, BOUNDED, 1)[0]
    program, nodes = program_of(feature, table)
    point = read_weights(nodes)
    right = objective(program, head)
    assert disagreement(right, point, rng) < CLOSE

    def wrong(weights):
        value, gradient = right(weights)
        return value, gradient * (1.0 + 1e-4)

    assert disagreement(wrong, point, rng) > CLOSE


def test_a_forgotten_factor_of_a_product_is_caught(rng, respond, table):
    """Negative control: the derivative of a product without its other factor."""
    feature = parse_feature("tanh(0.1 + 0.5*x1 + 0.7*x2*sin(0.2 + 0.9*x3 - 0.4*x4))")
    head = AffineObjective(respond(rng, "gaussian", table.values[:, 0]).likelihood(), 5.0)
    program, nodes = program_of(feature, table)
    point = read_weights(nodes)
    assert disagreement(objective(program, head), point, rng) < CLOSE
    broken = parse_feature("tanh(0.1 + 0.5*x1 + 0.7*sin(0.2 + 0.9*x3 - 0.4*x4))")
    other, _ = program_of(broken, table)

    def wrong(weights):
        value, bar = head.value(program.forward(weights))
        other.forward(weights)
        return value, other.backward(bar)

    assert disagreement(wrong, point, rng) > CLOSE


def test_only_the_outer_weights_are_free_when_asked(rng, respond, table, tree):
    engine = respond(rng, "binomial", table.values[:, 0])
    head = AffineObjective(engine.likelihood(), 0.0)
    feature = parse_feature("tanh(0.2 + 1.1*sin(0.1 + 0.5*x1 - 0.7*x2) + 0.4*x3)")
    program, nodes = program_of(feature, table, projections=(feature,))
    assert program.n_weights == 3
    assert disagreement(objective(program, head), read_weights(nodes), rng) < CLOSE


def test_a_projection_that_occurs_twice_has_one_set_of_weights(rng, respond, table):
    feature = parse_feature(
        "tanh(0.2 + 1.1*sin(0.1 + 0.5*x1 - 0.7*x2) + 0.4*x3*sin(0.1 + 0.5*x1 - 0.7*x2))"
    )
    head = AffineObjective(respond(rng, "poisson", table.values[:, 0]).likelihood(), 0.0)
    program, nodes = program_of(feature, table)
    assert program.n_weights == 6
    assert disagreement(objective(program, head), read_weights(nodes), rng) < CLOSE


def test_forward_is_the_feature_and_weights_can_be_replaced(rng, table, tree):
    for feature in trees(rng, tree, table, BOUNDED, 20):
        program, nodes = program_of(feature, table)
        weights = read_weights(nodes)
        expected = evaluate([feature], table)[0][:, 0]
        np.testing.assert_allclose(program.forward(weights), expected, rtol=1e-13, atol=1e-13)
        moved = weights + 0.1 * rng.normal(size=weights.size)
        other = replace_weights(feature, nodes, moved)
        assert other.key == feature.key
        column = evaluate([other], table)[0][:, 0]
        np.testing.assert_allclose(program.forward(moved), column, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(read_weights(free_projections(other)), moved)


def test_scaled_weights_mean_the_same(rng, respond, table, tree):
    """`outward` undoes `inward`, and gradients in scaled weights are right, in any units."""
    from dbrm.data import Table

    wide = Table(table.names, table.values * [1e-4, 1e3, 1.0, 10.0] + [1e-3, 5e3, 2.0, 0.0])
    feature = parse_feature("tanh(0.2 + 5e3*x1 - 1e-3*x2 + 0.4*sin(0.1 + 0.5*x3 - 0.1*x4))")
    program, nodes = program_of(feature, wide)
    weights = read_weights(nodes)
    program.forward(weights)
    scaling = Scaling.of(program, nodes)
    np.testing.assert_allclose(scaling.outward(scaling.inward(weights)), weights, rtol=1e-9)
    head = AffineObjective(respond(rng, "gaussian", table.values[:, 0]).likelihood(), 5.0)

    def value_and_gradient(scaled):
        value, bar = head.value(program.forward(scaling.outward(scaled)))
        return value, scaling.pull_back(program.backward(bar))

    assert disagreement(value_and_gradient, scaling.inward(weights), rng) < CLOSE
