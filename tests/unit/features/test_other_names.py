"""Names of functions that people know from elsewhere."""

import numpy as np
import pytest

from dbrm import Transform, parse_feature
from dbrm.errors import FeatureSyntaxError, UnknownNameError
from dbrm.features import resolve_transforms

X = {"x": np.array([-8.0, -1.0, 0.5, 4.0]), "y": np.array([1.0, 2.0, 3.0, 4.0])}


@pytest.mark.parametrize(
    ("text", "written", "function"),
    [
        ("sqrt(x)", "sqrt_abs(x)", lambda x, _: np.sqrt(np.abs(x))),
        ("log(x)", "log_abs(x)", lambda x, _: np.log(np.abs(x))),
        ("ln(x)", "log_abs(x)", lambda x, _: np.log(np.abs(x))),
        ("log1p(x)", "log1p_abs(x)", lambda x, _: np.log1p(np.abs(x))),
        ("inv(x)", "power[-1](x)", lambda x, _: 1 / x),
        ("cbrt(x)", "cbrt(x)", lambda x, _: np.cbrt(x)),
        ("abs(x)", "abs(x)", lambda x, _: np.abs(x)),
        ("neg(x)", "neg(x)", lambda x, _: -x),
        ("exp(neg(x))", "exp(neg(x))", lambda x, _: np.exp(-x)),
        ("logistic(x)", "sigmoid(x)", lambda x, _: 1 / (1 + np.exp(-x))),
        ("arctan(x)", "atan(x)", lambda x, _: np.arctan(x)),
        ("pow[2/3](x)", "power[2/3](x)", lambda x, _: np.abs(x) ** (2 / 3)),
        ("pow(x, 2)", "x*x", lambda x, _: x**2),
        ("pow(x, -1)*y", "y*power[-1](x)", lambda x, y: y / x),
        ("pow(x + y, (1/2))", "sqrt_abs(1.0*x + 1.0*y)", lambda x, y: np.sqrt(np.abs(x + y))),
    ],
)
def test_names_from_elsewhere(text, written, function):
    feature = parse_feature(text)
    assert str(feature) == written
    assert parse_feature(written) == feature
    np.testing.assert_allclose(feature.evaluate(X), function(X["x"], X["y"]), rtol=1e-12)


def test_transforms_by_names_from_elsewhere():
    names = ["sqrt", "log", "inv", "cbrt", "abs", "neg", "logistic", "pow[0.7]", "sqrt_abs"]
    written = ["sqrt_abs", "log_abs", "power[-1]", "cbrt", "abs", "neg", "sigmoid", "power[0.7]"]
    assert [g.name for g in resolve_transforms(names)] == written


def test_a_column_on_the_log_scale_is_the_column():
    names = ["income", "log(income)"]
    assert str(parse_feature("log(income)", names)) == "`log(income)`"
    assert str(parse_feature("sin(log(income)*income)", names)) == "sin(`log(income)`*income)"
    assert str(parse_feature("log(income)", ["income"])) == "log_abs(income)"
    # Names under which features are written are functions.
    assert str(parse_feature("sin(x)", ["x", "sin(x)"])) == "sin(x)"


def test_your_own_function_comes_first():
    own = Transform("log", lambda x: np.log(x))
    assert resolve_transforms([own]) == (own,)
    assert str(parse_feature("log(x)", transforms=[own])) == "log(x)"


@pytest.mark.parametrize("text", ["pow(x)", "pow(x, y)", "pow(x, 2"])
def test_pow_needs_an_exponent(text):
    with pytest.raises(FeatureSyntaxError):
        parse_feature(text)


def test_pow_as_a_transform_needs_its_exponent():
    with pytest.raises(UnknownNameError, match=r"Write its exponent: pow\[1.5\]"):
        resolve_transforms(["pow"])
    with pytest.raises(UnknownNameError, match="Did you mean 'sqrt"):
        resolve_transforms(["sqroot"])
