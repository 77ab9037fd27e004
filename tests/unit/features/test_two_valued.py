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
