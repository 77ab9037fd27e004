"""Tests of `dbrm.evolution.newcomers.constants`, and of what it is made of."""

import numpy as np
import pytest

from dbrm.evolution.function_shapes import Kind, shape_of, shapes_of
from dbrm.evolution.newcomers.constants import propose_constants
from dbrm.evolution.newcomers.expressions import Chain, Expression, Layer, fit
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import (
    TRANSFORMS,
    Projection,
    Transform,
    covariate,
    get_transform,
    parse_feature,
    resolve_transforms,
    walk,
)

of = Target.of

N = 400
X, Z = covariate("x"), covariate("z")
FUNCTIONS = resolve_transforms(["smooth", "exp", "power[-1]", "log_abs"])


def centred(column):
    return column - column.mean()


def with_noise(rng, signal, share=0.01):
    """The centred signal with noise of this share of its standard deviation."""
    return centred(signal + share * signal.std() * rng.normal(size=signal.size))


def share(feature, table, residual):
    column = centred(feature.evaluate(table))
    return (column @ residual) ** 2 / ((column @ column) * (residual @ residual))


LAWS = {
    "sine": (lambda x: np.sin(2.3 * x), "sin{2.3*x}"),
    "sine with phase": (lambda x: np.sin(5.1 * x + 1.0), "sin{1.0 + 5.1*x}"),
    "decay": (lambda x: np.exp(-0.4 * x), "exp{-0.4*x}"),
    "saturation": (lambda x: x / (x + 1.7), "power[-1]{1.7 + 1.0*x}"),
    "logistic growth": (lambda x: 1 / (1 + np.exp(4.8 - 1.2 * x)), "sigmoid{-4.8 + 1.2*x}"),
    "Gompertz": (lambda x: np.exp(-5 * np.exp(-0.7 * x)), "exp{-5.0*exp{-0.7*x}}"),
    "damped oscillation": (
        lambda x: np.exp(-0.4 * x) * np.sin(2.3 * x),
        "exp{-0.4*x}*sin{2.3*x}",
    ),
}


def numbers_in(feature):
    nodes = [node for node in walk(feature) if isinstance(node, Projection)]
    return [number for node in nodes for number in (node.bias or 0.0, *node.weights)]


@pytest.mark.parametrize("name", LAWS)
def test_laws_are_found_with_their_constants(rng, name):
    """At 1 % noise the best proposal is the law, its numbers within a few hundredths.

    False alarms: a phase that is not there is kept if it gains log(n)/2 nats by chance, which a
    chi-square variable does for one seed in seventy. Errors of the numbers are far smaller than
    the tolerance.
    """
    law, text = LAWS[name]
    x = rng.uniform(0.0, 10.0, N)
    best = propose_constants([X], x[:, None], [Target.of(with_noise(rng, law(x)))], FUNCTIONS, 4)[0]
    truth = parse_feature(text)
    assert best.complexity == truth.complexity
    assert [c.transform for c in best.children] == [c.transform for c in truth.children]
    assert best.transform is truth.transform
    np.testing.assert_allclose(numbers_in(best), numbers_in(truth), rtol=0.03, atol=0.03)


def test_hill_is_found_from_the_square(rng):
    x = rng.uniform(0.0, 10.0, N)
    bases = [X, parse_feature("x*x")]
    residual = with_noise(rng, x**2 / (x**2 + 4.0))
    best = propose_constants(bases, np.column_stack([x, x * x]), [of(residual)], FUNCTIONS, 3)[0]
    assert best.transform.name == "power[-1]"
    np.testing.assert_allclose([best.bias, *best.weights], [4.0, 1.0], rtol=0.02)


def test_constants_in_a_product_with_a_partner(rng):
    x, z = rng.uniform(0.0, 10.0, N), rng.normal(size=N)
    columns = np.column_stack([x, z])
    residual = with_noise(rng, z * np.exp(-0.4 * x))
    best = propose_constants(
        [X, Z],
        columns,
        [of(residual)],
        FUNCTIONS,
        2,
        partners=[X, Z],
        partner_columns=columns,
    )[0]
    assert {factor.covariates for factor in best.children} == {("x",), ("z",)}
    assert share(best, {"x": x, "z": z}, residual) > 0.999


def test_only_what_the_model_lacks_counts(rng):
    """Beside a steep line in x the constants of a small bend are found."""
    x = rng.uniform(0.0, 10.0, N)
    signal = 30.0 * x + np.tanh(1.2 * x - 6.0)
    span = centred(x)[:, None] / np.linalg.norm(centred(x))
    residual = centred(signal + 0.01 * rng.normal(size=N))
    residual = residual - span @ (span.T @ residual)
    target = Target.of(residual, span)
    best = propose_constants([X], x[:, None], [target], [get_transform("tanh")], 1)[0]
    np.testing.assert_allclose([best.bias, *best.weights], [-6.0, 1.2], rtol=0.05)


def test_residuals_take_turns_and_features_differ(rng):
    x, z = rng.uniform(0.0, 10.0, N), rng.uniform(0.0, 10.0, N)
    residuals = [with_noise(rng, np.exp(-x)), centred(np.sin(3 * z) + rng.normal(size=N))]
    targets = [Target.of(residual) for residual in residuals]
    found = propose_constants([X, Z], np.column_stack([x, z]), targets, FUNCTIONS, 6)
    assert [feature.covariates for feature in found[:2]] == [("x",), ("z",)]
    assert len(set(found)) == len(found) <= 6


def test_numbers_have_the_digits_that_they_are_worth(rng):
    """With much noise few digits are left: one more would gain less than log 10."""
    x = rng.uniform(0.0, 10.0, N)
    residual = with_noise(rng, np.sin(2.3 * x), 0.5)
    best = propose_constants([X], x[:, None], [of(residual)], [get_transform("sin")], 1)[0]
    (scale,) = best.weights
    assert len(repr(scale)) <= len("2.301")
    finer = [parse_feature(f"sin{{{scale + step}*x}}") for step in np.linspace(-0.05, 0.05, 201)]
    highest = max(share(feature, {"x": x}, residual) for feature in finer)
    loss = 0.5 * N * np.log((1 - share(best, {"x": x}, residual)) / (1 - highest))
    assert loss < np.log(10.0)


def test_weights_belong_to_the_identity_and_text_is_read_back(rng):
    x = rng.uniform(0.0, 10.0, N)
    residual = with_noise(rng, np.sin(2.3 * x) + np.sin(4.1 * x))
    for feature in propose_constants([X], x[:, None], [of(residual)], FUNCTIONS, 4):
        assert parse_feature(str(feature)) is feature
        nodes = [node for node in walk(feature) if isinstance(node, Projection)]
        assert all(node.weights_in_identity for node in nodes)


def test_a_straight_line_needs_no_constants(rng):
    x = rng.uniform(0.0, 10.0, N)
    assert propose_constants([X], x[:, None], [Target.of(with_noise(rng, x))], FUNCTIONS, 4) == []


def test_noise_is_explained_no_better_than_by_chance(rng):
    """Negative control: what is proposed for noise explains little of it.

    400 times the share is a chi-square variable of at most 5 degrees of freedom for each of
    fewer than 1000 points of the grids: it exceeds 50 with a probability below 1e-5.
    """
    x = rng.uniform(0.0, 10.0, N)
    residual = centred(rng.normal(size=N))
    for feature in propose_constants([X], x[:, None], [of(residual)], FUNCTIONS, 4):
        assert N * share(feature, {"x": x}, residual) < 50


def test_columns_that_cannot_be_used_are_left_out(rng):
    columns = np.column_stack([np.zeros(N), np.full(N, np.nan), rng.random(N) < 0.5])
    residual = centred(rng.normal(size=N))
    assert propose_constants([X, Z, covariate("w")], columns, [of(residual)], FUNCTIONS, 3) == []
    line = rng.normal(size=(N, 1))
    assert (
        propose_constants([X], line, [of(residual)], resolve_transforms("powers")[3:5:2], 3) == []
    )
    assert propose_constants([X], line, [], FUNCTIONS, 3) == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Kind.WAVE, "sin cos sin_degrees cos_degrees"),
        (Kind.SCALE, "exp"),
        (Kind.SHIFT, "log_abs sqrt_abs troot pow2_3 pow3_5 power[-1] power[-2] power[-0.5]"),
        (Kind.BOTH, "sigmoid tanh atan gauss erf arcsinh exp_neg_abs log1p_abs gelu"),
        (None, "square cube not relu relu_mirror step[0] hinge[1.5] step[q0.5] hinge"),
    ],
)
def test_kinds_of_functions(kind, names):
    for name in names.split():
        shape = shape_of(get_transform(name))
        assert (None if shape is None else shape.kind) is kind, name


def test_every_function_has_a_kind_or_is_straight():
    known = [shape_of(g) for g in TRANSFORMS.values()]
    assert sum(shape is None for shape in known) == 6
    own = shape_of(Transform("bump", lambda x: 1.0 / (1.0 + x**4)))
    assert own.kind is Kind.BOTH


def test_functions_that_numbers_make_equal_are_tried_once():
    names = [shape.transform.name for shape in shapes_of(FUNCTIONS)]
    assert "sigmoid" in names
    assert not {"tanh", "cos"} & set(names)


@pytest.mark.parametrize("names", [("exp",), ("tanh",), ("sin", "exp"), ("exp", "power[-1]")])
def test_derivatives_agree_with_differences(rng, names):
    """In all numbers of a product of two chains, the first of one function, the second of all."""
    layers = tuple(Layer(shape_of(get_transform(name)), 0.7, 0.4) for name in names)
    chains = (Chain(X, rng.normal(size=20), layers[:1]), Chain(Z, rng.normal(size=20), layers))
    expression = Expression(chains, Z, rng.normal(size=20))
    analytic = expression.linearize()
    numbers = expression.numbers
    np.testing.assert_allclose(analytic[0], expression.value())
    for j in range(numbers.size):
        step = 1e-6 * (np.arange(numbers.size) == j)
        above, below = (expression.with_numbers(numbers + s * step).value() for s in (1, -1))
        np.testing.assert_allclose(analytic[j + 1], (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


def test_a_long_fit_of_equal_factors_does_not_end_in_singular_equations(rng):
    # Both factors have the same derivatives: only damping keeps the equations regular.
    shape = shape_of(get_transform("exp"))
    for _ in range(40):
        x = rng.uniform(-2.0, 2.0, 200)
        chain = Chain(X, x, (Layer(shape, 0.1, 0.0),))
        target = Target.of(np.exp(9.0 * x))
        with np.errstate(all="ignore"):
            _, share = fit(Expression((chain, chain)), target, steps=60)
        assert share > target.share(chain.value())


def test_a_fit_reaches_a_stationary_point(rng):
    x = rng.uniform(-2.0, 2.0, N)
    target = Target.of(np.tanh(1.5 * x + 0.5) + 0.1 * rng.normal(size=N))
    start = Expression((Chain(X, x, (Layer(shape_of(get_transform("tanh")), 0.6, 0.0),)),))
    fitted, best = fit(start, target)
    for j in range(2):
        for sign in (-1, 1):
            step = sign * 0.05 * (np.arange(2) == j)
            assert target.share(fitted.with_numbers(fitted.numbers + step).value()) < best


def test_few_values_have_no_short_waves(rng):
    """A wave needs four different values: of eight it has at most two turns in the range."""
    x = rng.integers(0, 8, N).astype(float)
    residual = centred(rng.normal(size=N))
    for feature in propose_constants([X], x[:, None], [of(residual)], [get_transform("sin")], 3):
        waves = [node for node in walk(feature) if node.transform is get_transform("sin")]
        assert all(node.weights[0] < 2.5 * 2 * np.pi / 7 for node in waves)
