"""Tests of `dbrm.features.two_valued`."""

import numpy as np
import pytest

from dbrm.features import TwoValued, evaluate, parse_feature

TABLE = {
    "b": np.array([0.0, 1.0, 1.0, 0.0]),
    "c": np.array([1.0, 1.0, 0.0, 0.0]),
    "x": np.array([0.5, -2.0, 3.0, 1.5]),
}


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("b*b*x", "b*x"),
        ("b*b*c*c", "b*c"),
        ("x*x*b", "x*x*b"),
        ("tanh(b*b*x)", "tanh(b*x)"),
        ("not(b)*not(b)*c", "not(b)*c"),
        ("not(x)*not(x)*c", "not(x)*not(x)*c"),
        ("step[1.0](x)*step[1.0](x)*x", "step[1.0](x)*x"),
        ("b*b", "b"),
    ],
)
def test_binary_factors_are_written_once(text, simple):
    feature = parse_feature(text)
    simplified = TwoValued({"b", "c"}).simplify(feature)
    assert simplified == parse_feature(simple)
    before, after = (evaluate([f], TABLE)[0] for f in (feature, simplified))
    np.testing.assert_allclose(before, after)


def test_features_without_powers_are_left_as_they_are():
    feature = parse_feature("tanh(b*x)*c")
    assert TwoValued({"b", "c"}).simplify(feature) is feature


SIGNS = {
    "s": np.array([1.0, -1.0, 1.0, -1.0, -1.0]),
    "t": np.array([-0.5, -0.5, 0.5, 0.5, -0.5]),
    "x": np.array([0.5, -2.0, 3.0, 1.5, 0.1]),
}


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("s*s*x", "x"),
        ("s*s*s*x", "s*x"),
        ("s*s*t*t*t*x*x", "t*x*x"),
        ("tanh(s*t*s*x)", "tanh(t*x)"),
        ("x*power[-1](x)*s", "s"),
        ("x*x*power[-1](x)", "x"),
        ("x*power[-2](x)*s", "s*power[-1](x)"),
        ("x*power[-1](s)", "x*power[-1](s)"),
    ],
)
def test_squares_of_signs_and_inverses_cancel(text, simple):
    feature = parse_feature(text)
    simplified = TwoValued.of(list(SIGNS), np.column_stack(list(SIGNS.values()))).simplify(feature)
    assert simplified == parse_feature(simple)
    before, after = (evaluate([f], SIGNS)[0][:, 0] for f in (feature, simplified))
    # Equal up to a constant factor.
    np.testing.assert_allclose(before * after[0], after * before[0])


def test_a_product_that_comes_to_a_constant_is_left_to_its_status():
    feature = parse_feature("s*s*t*t")
    assert TwoValued(plus_minus=["s", "t"]).simplify(feature) is feature


def test_functions_of_two_values_are_relabelings():
    known = TwoValued(zero_one=["b"], plus_minus=["s"], others=["k"])
    for text in (
        "sigmoid(b)",
        "x*tanh(s)",
        "sin(k)",
        "tanh[z](b)",
        "gauss(step[0.5](x))",
        "sin(s*s*s)",
    ):
        assert known.contains_relabelling(parse_feature(text)), text
    for text in ("not(b)*x", "tanh(b*x)", "sin(b*s)", "b*s", "tanh(0.1 + 1.0*b + 2.0*s)"):
        assert not known.contains_relabelling(parse_feature(text)), text


def test_columns_of_a_table_are_told_apart():
    columns = [[0.0, 1.0, 1.0], [-3.0, 3.0, 3.0], [1.0, 2.0, 2.0], [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
    known = TwoValued.of(["b", "s", "k", "x", "c"], np.array(columns).T)
    assert (known.zero_one, known.plus_minus, known.others) == (["b", "c"], ["s"], ["k"])
