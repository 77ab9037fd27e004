"""Tests of `dbrm.features.parsing` and `tokens`."""

import time

import numpy as np
import pytest

from dbrm.errors import DBRMError, FeatureSyntaxError, UnknownNameError
from dbrm.features import (
    TRANSFORMS,
    Modification,
    Product,
    Projection,
    Transform,
    covariate,
    modify,
    multiply,
    parse_feature,
    project,
)

SIN, TANH = TRANSFORMS["sin"], TRANSFORMS["tanh"]
X, Y = covariate("x"), covariate("y")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x*(y*x)", "x*x*y"),
        ("x ** 2 * y", "x*x*y"),
        ("x^3", "x*x*x"),
        ("x^1", "x"),
        ("(x*y)^2", "x*x*y*y"),
        ("troot(PeriodDays*PeriodDays*HostStarMassSlrMass)",) * 2,
        (
            "(PeriodDays^2 * HostStarMassSlrMass)^(1/3)",
            "troot(PeriodDays*PeriodDays*HostStarMassSlrMass)",
        ),
        ("|x|^(1/3)", "troot(x)"),
        ("|x*|y|^0.5|^(1/3)", "troot(x*sqrt_abs(y))"),
        ("x^-1", "power[-1](x)"),
        ("x**(-1/2)", "power[-0.5](x)"),
        ("(x)^2.3", "pow2_3(x)"),
        ("power[1/3](x)", "troot(x)"),
        ("(x + y)^2", "square(1.0*x + 1.0*y)"),
        ("tanh(0.3 + 1.2*x1 - 1.0*x4)",) * 2,
        ("tanh(x1*1.2 - x4 + .3)", "tanh(0.3 + 1.2*x1 - 1.0*x4)"),
        ("tanh(0.0 + 1.0*x)",) * 2,
        ("tanh(-x)", "tanh(-1.0*x)"),
        ("tanh(- -x)", "tanh(x)"),
        ("tanh((x))", "tanh(x)"),
        ("tanh(+x)", "tanh(x)"),
        ("tanh(2*(x + 1) - (y - 3))", "tanh(5.0 + 2.0*x - 1.0*y)"),
        ("tanh(2.0*x*y)",) * 2,
        ("tanh(x*2*y*3)", "tanh(6.0*x*y)"),
        ("tanh(x + x)", "tanh(2.0*x)"),
        ("tanh{0.5 + x}", "tanh{0.5 + 1.0*x}"),
        ("gauss{-1e-5*x}", "gauss{1e-05*x}"),
        ("step[q0.5=1.25](x)",) * 2,
        ("step[ q.5 ](x)", "step[q0.5](x)"),
        ("hinge_down[q0.25=-1e-07](1.0*x)",) * 2,
        ("sin(sin)*tanh", "tanh*sin(sin)"),
        ("sin (x)", "sin(x)"),
        ("not(x)*y", "y*not(x)"),
        ("`x*y`*`a b`", "`a b`*`x*y`"),
        ("`plain`", "plain"),
        ("`char_freq_[`", "`char_freq_[`"),
        ("größe*Δ", "größe*Δ"),
        (r"`a\`b\\c`",) * 2,
        ("``*`1`", "`1`*``"),
    ],
)
def test_text_and_its_canonical_print(text, printed):
    feature = parse_feature(text)
    assert str(feature) == printed
    assert parse_feature(printed) is feature


def test_what_the_texts_mean():
    assert parse_feature("tanh(x)") is modify(TANH, X)
    assert parse_feature("tanh(1.0*x)") is project(TANH, [X], [1.0])
    assert parse_feature("tanh(0.0 + 1.0*x)") is project(TANH, [X], [1.0], 0.0)
    assert parse_feature("tanh(2.0*x*y)") is project(TANH, [multiply(X, Y)], [2.0])
    assert isinstance(parse_feature("tanh(x)"), Modification)
    assert isinstance(parse_feature("tanh(x + y)"), Projection)
    assert isinstance(parse_feature("x*tanh(x)"), Product)


def test_odd_names_come_back():
    for name in ("a b", "x*y", "", "`", "\\", "a\nb\t", "1st", "é", "sin(x)", "x\\n", "?", "#1"):
        feature = modify(SIN, covariate(name))
        assert parse_feature(str(feature)).covariates == (name,)
        assert "\n" not in str(feature)


def test_weights_come_back_exactly():
    weights = [0.1 + 0.2, -1e-308, 5e-324, 1.7976931348623157e308]
    feature = project(TANH, [covariate(f"x{i}") for i in range(4)], weights, -1 / 3)
    again = parse_feature(str(feature))
    assert again.weights == tuple(weights)
    assert again.bias == -1 / 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expected a feature or a number, found the end of the text"),
        ("  ", "Expected a feature"),
        ("x + y", "weighted sum is not a feature"),
        ("2*x", "weighted sum is not a feature"),
        ("3", "number alone is not a feature"),
        ("tanh(3)", "needs a feature inside"),
        ("tanh()", r"Expected a feature or a number, found '\)'"),
        ("x y", "Expected an operator or the end, found 'y', at position 2"),
        ("2x", "Expected an operator"),
        ("sin(x", r"Expected an operator or '\)'"),
        ("sin{x)", "Expected an operator or '}'"),
        ("sin(x))", "Expected an operator or the end"),
        ("x*", "Expected a feature"),
        ("*x", "Expected a feature"),
        ("x^y", "Expected a number"),
        ("x^", "Expected a number"),
        ("x^0", "not a feature"),
        ("2^3*x", "not a feature"),
        ("x^(1/0)", "too large"),
        ("x^2^3", "Expected an operator"),
        ("|x|", r"Expected '\^'"),
        ("|x|^2", "whole power"),
        ("x^1000000", "Too many factors"),
        ("((((x^9)^9)^9)^9)^99", "Too many factors"),
        ("(x + y)*z", "A sum cannot be a factor"),
        ("x/y", "Expected an operator or the end, found '/'"),
        ("tanh(1e999*x)", "too large"),
        ("tanh(1e308*x + 1e308*x)", "must be finite"),
        ("tanh(9e307 + 9e307 + 9e307 + x)", "must be finite"),
        ("step[x](y)", "step needs a finite number"),
        ("step[q0.5=z](y)", "Expected a number after '='"),
        ("step[q0.5=inf](y)", "too large"),
        ("sin[q0.5=2](x)", "Unknown transform"),
        ("step[1.5=2](x)", "knot"),
        ("step[1.5]", r"Expected '\('"),
        ("`x", "never closed"),
        ("x[1", "never closed"),
        ("x.y", "between backticks"),
        ("x = y", "Unexpected character '='"),
        ("__import__('os').system('ls')", "Unexpected character"),
        ("x.__class__.__mro__", "Unexpected character"),
        ("lambda: x", "Unexpected character"),
    ],
)
def test_errors_say_what_was_expected_and_where(text, message):
    with pytest.raises(DBRMError, match=message):
        parse_feature(text)


def test_errors_point_at_the_place():
    with pytest.raises(FeatureSyntaxError) as caught:
        parse_feature("tanh(0.3 + $y)")
    *_, shown, caret = str(caught.value).splitlines()
    assert shown[caret.index("^")] == "$"
    with pytest.raises(FeatureSyntaxError) as caught:
        parse_feature("sin(x)*" * 500 + "?" + "*sin(x)" * 500)
    *_, shown, caret = str(caught.value).splitlines()
    assert shown[caret.index("^")] == "?"
    assert len(shown) < 100


def test_unknown_transforms_and_columns_name_the_close_ones():
    with pytest.raises(UnknownNameError, match=r"'sinn'.*Did you mean 'sin'"):
        parse_feature("sinn(x)")
    with pytest.raises(UnknownNameError, match="'__import__'"):
        parse_feature("__import__(os)")
    with pytest.raises(UnknownNameError, match=r"Unknown column 'agee'.*'age'"):
        parse_feature("sin(agee)", ["age", "height"])
    assert parse_feature("sin(age)", ["age"]).covariates == ("age",)


def test_users_transforms_are_known_when_given():
    mine = Transform("mine", lambda x: x**5)
    assert parse_feature("mine(x)", transforms=[mine]) is modify(mine, X)
    with pytest.raises(UnknownNameError, match="'mine'"):
        parse_feature("mine(x)")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "(" * 10_000,
        "(" * 10_000 + "x" + ")" * 10_000,
        "sin(" * 10_000 + "x",
        "|" * 10_000,
        "-" * 60_000 + "x",
        "`" * 99_999,
        "[" * 50_000,
        "x*" * 49_999,
        " " * 99_999,
        "1" * 99_999,
        "x^999*" * 10_000 + "x",
        "tanh(x+y^99*" * 200,
        "\\" * 90_000,
        "`" + "\\`" * 40_000,
        "x[" + "9" * 90_000 + "](x)",
        "f" * 90_000 + "(x)",
    ],
)
def test_hostile_texts_fail_cleanly_and_fast(text):
    start = time.process_time()
    with pytest.raises(DBRMError) as caught:
        parse_feature(text)
    assert time.process_time() - start < 1.0
    assert len(str(caught.value)) < 2000


def test_large_but_legal_texts_are_read_fast():
    start = time.process_time()
    assert parse_feature("*".join(["x"] * 20_000)).complexity == 20_000
    feature = parse_feature("tanh(" + " + ".join(f"{i}.5*x{i}" for i in range(5000)) + ")")
    assert feature.complexity == 5001
    assert parse_feature("sin(" * 200 + "x" + ")" * 200).depth == 200
    assert time.process_time() - start < 2.0


def test_random_texts_never_fail_in_another_way():
    """Fuzz: whatever parses prints a text that parses to the same object."""
    rng = np.random.default_rng(20)
    pieces = [
        *"xy+-*/^(){}[]|`=.,?'\"\\ \n\0_0129eq",
        *("sin(", "tanh{", "step[q0.5](", "step[q0.5=1.5](", "1.5*", "**2", "^(1/3)", "`a b`"),
        *("__import__('os')", "__class__", "lambda", "nan", "inf", "é", "🙂", "power[-1]"),
    ]
    parsed = 0
    for _ in range(4000):
        text = "".join(rng.choice(pieces, size=rng.integers(1, 12)))
        try:
            feature = parse_feature(text)
        except DBRMError:
            continue
        parsed += 1
        assert parse_feature(str(feature)) is feature
    assert parsed > 50
