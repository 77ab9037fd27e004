"""Properties that hold for every feature, over random trees and odd column names."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dbrm.features import (
    TRANSFORMS,
    Covariate,
    Modification,
    Product,
    evaluate,
    fit_knots,
    hinge,
    modify,
    multiply,
    parse_feature,
    power,
    project,
    step,
    step_down,
    walk,
)
from dbrm.features import covariate as make_covariate

NAMES = st.one_of(
    st.sampled_from(
        ["x", "y", "x1", "x10", "sin", "not", "a b", "x*y", "char_freq_[", "", "`", "\\"]
    ),
    st.text(max_size=5),
)
SMOOTH = [
    TRANSFORMS[name] for name in ("sin", "tanh", "atan", "gauss", "sigmoid", "erf", "arcsinh")
]
TRANSFORM = st.sampled_from(
    [*TRANSFORMS.values(), step(0.5), step_down(-1), hinge(1.25), power(-1), power("2/3")]
)
KNOTTED = st.sampled_from([step("q0.5"), step_down("q0.25"), hinge("q0.75")])
WEIGHT = st.floats(-1e6, 1e6) | st.floats(allow_nan=False, allow_infinity=False, width=32)


def features(names=NAMES, transforms=TRANSFORM, knots=KNOTTED, weights=WEIGHT):
    """Random features of moderate size."""

    def extend(inner):
        lists = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            st.builds(modify, transforms, inner),
            st.builds(modify, knots, inner, st.none() | weights),
            st.builds(lambda parts: multiply(*parts), st.lists(inner, min_size=2, max_size=4)),
            st.builds(
                lambda g, parts, w, b, fixed: project(
                    g, parts, w[: len(parts)], b, weights_in_identity=fixed
                ),
                transforms,
                lists,
                st.lists(weights, min_size=3, max_size=3),
                st.none() | weights,
                st.booleans(),
            ),
        )

    return st.recursive(st.builds(make_covariate, names), extend, max_leaves=6)


PLAIN_TREES = features(
    names=st.sampled_from(["x", "y", "z"]),
    transforms=st.sampled_from([*SMOOTH, step(0.5), TRANSFORMS["relu"], TRANSFORMS["log1p_abs"]]),
    weights=st.floats(-3, 3).map(lambda w: round(w, 3)),
)


def random_table(feature, n=20):
    rng = np.random.default_rng(7)
    return {name: rng.normal(size=n) for name in feature.covariates}


@given(features())
def test_text_comes_back_as_the_same_object(feature):
    assert parse_feature(str(feature)) is feature
    assert parse_feature(str(feature), feature.covariates).key == feature.key


@given(features())
def test_pickles_come_back_as_the_same_object(feature):
    assert pickle.loads(pickle.dumps(feature)) is feature  # noqa: S301


@given(features())
def test_key_follows_the_topology(feature):
    """Features are equal exactly if their canonical texts are; free weights are not in it."""
    assert feature == parse_feature(str(feature))
    for node in walk(feature):
        assert (node == feature) == (node.canonical == feature.canonical)
        assert (node.key == feature.key) == (node.canonical == feature.canonical)


@given(features())
def test_evaluation_never_warns_and_is_the_same_after_a_round_trip(feature):
    table = random_table(feature)
    fitted = fit_knots(feature, table)
    assert fitted == feature
    values, statuses = evaluate([fitted], table)
    again, same = evaluate([parse_feature(str(fitted))], table)
    np.testing.assert_array_equal(values, again)
    np.testing.assert_array_equal(statuses, same)
    usable = np.isfinite(values).all() and (np.abs(values) <= 1e150).all()
    assert usable == (statuses[0] in (0, 3))


@given(features(), st.randoms())
def test_products_forget_the_order(feature, random):
    parts = list(walk(feature))[:4]
    shuffled = parts.copy()
    random.shuffle(shuffled)
    product = multiply(*parts)
    assert product is multiply(*shuffled)
    nested = shuffled[0]
    for part in shuffled[1:]:
        nested = multiply(nested, part)
    assert nested is product


@given(features())
def test_measures_follow_their_recursion(feature):
    for node in walk(feature):
        widths = sum(child.width for child in node.children)
        deepest = max((child.depth for child in node.children), default=0)
        assert node.complexity == 1 + node.width
        if isinstance(node, Covariate):
            assert (node.width, node.depth) == (0, 0)
        elif isinstance(node, Modification):
            assert (node.width, node.depth) == (1 + widths, 1 + deepest)
        elif isinstance(node, Product):
            assert node.width == len(node.children) - 1 + widths
            levels = int(np.ceil(np.log2(len(node.children))))
            assert deepest + 1 <= node.depth <= deepest + levels
        else:
            with_bias = node.bias is not None or node.weights_in_identity
            assert node.width == len(node.weights) + with_bias + widths
            assert node.depth == 1 + deepest


@given(features())
def test_latex_is_balanced(feature):
    latex = feature.to_latex()
    bare = re.sub(r"\\[{}\\]", "", latex)
    assert latex
    depth = 0
    for character in bare:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    assert latex.count(r"\left") == latex.count(r"\right")


@given(PLAIN_TREES)
@settings(max_examples=40)
def test_sympy_has_the_same_values(feature):
    sympy = pytest.importorskip("sympy")
    table = random_table(feature)
    feature = fit_knots(feature, table)
    values, statuses = evaluate([feature], table)
    assume(statuses[0] in (0, 3))
    symbols = [sympy.Symbol(name) for name in feature.covariates]
    function = sympy.lambdify(symbols, feature.to_sympy(), "scipy")
    with np.errstate(all="ignore"):
        expected = function(*[table[name] for name in feature.covariates])
    # A step may fall on the other side of its knot by rounding.
    agree = np.isclose(np.broadcast_to(expected, 20), values[:, 0], rtol=1e-7, atol=1e-9)
    assert agree.mean() >= 0.9
