"""Tests of `dbrm.evolution.units`."""

from fractions import Fraction

import pytest

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evolution.units import Units, degree_of_homogeneity
from dbrm.features import Transform, get_transform, parse_feature

pytest.importorskip("pint")
NAMES = ("P", "M", "R", "T", "e")


@pytest.fixture
def units():
    return Units.parse({"P": "day", "M": "kg", "R": "km", "T": "hour"}, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "P",
        "P*M",
        "troot(P*P*M)",
        "sin(e)",
        "tanh(0.1 + 1.0*e)",
        "relu(0.5 + 1.0*P - 2.0*T)",
        "step[3.0](P)",
        "hinge[2.0](R)*M",
        "exp(e*step[1.0](R))",
        "sin(step[1.0](P))",
    ],
)
def test_sensible_features_are_allowed(units, text):
    assert units.allow(parse_feature(text))


@pytest.mark.parametrize(
    "text",
    [
        "sin(P)",
        "exp(P*M)",
        "tanh(0.1 + 1.0*P)",
        "relu(0.5 + 1.0*P - 2.0*M)",
        "M*log_abs(R)",
        "sin(hinge[1.0](P))",
        "relu(0.1 + 1.0*P + 1.0*e)",
    ],
)
def test_senseless_features_are_refused(units, text):
    assert not units.allow(parse_feature(text))


def test_dimensions_multiply_and_scale(units):
    assert dict(units.dimension(parse_feature("troot(P*P*M)"))) == {
        "[time]": Fraction(2, 3),
        "[mass]": Fraction(1, 3),
    }
    assert units.dimension(parse_feature("P")) == units.dimension(parse_feature("T"))


@pytest.mark.parametrize(
    ("name", "degree"),
    [("troot", Fraction(1, 3)), ("square", 2), ("relu", 1), ("sqrt_abs", Fraction(1, 2))],
)
def test_homogeneous_functions_are_recognised(name, degree):
    assert degree_of_homogeneity(get_transform(name)) == degree


@pytest.mark.parametrize("name", ["sin", "tanh", "exp", "log_abs", "sigmoid", "not", "gauss"])
def test_other_functions_are_not_homogeneous(name):
    assert degree_of_homogeneity(get_transform(name)) is None


def test_a_users_own_power_is_recognised():
    assert degree_of_homogeneity(Transform("fourth", lambda x: x**4)) == 4


def test_unknown_columns_and_units_are_named():
    with pytest.raises(UnknownNameError, match="units names 'Q', which is not a column"):
        Units.parse({"Q": "day"}, NAMES)
    with pytest.raises(InvalidSettingError, match="'P' the unit 'dayz'"):
        Units.parse({"P": "dayz"}, NAMES)
