"""Functions with a knot of their own, ``hinge(x, 3.2)``."""

import pickle

import numpy as np
import pytest

from dbrm.errors import FeatureSyntaxError, InvalidSettingError
from dbrm.features import (
    NUMPY,
    SQL,
    Modification,
    Projection,
    TwoValued,
    covariate,
    evaluate,
    fit_knots,
    get_transform,
    knot_after,
    modify,
    parse_feature,
    project,
    render,
    shortened,
    shortest_between,
    topology_of,
)

X = covariate("x")
TABLE = {"x": np.array([-1.0, 0.5, 3.2, 4.0, 7.0]), "y": np.array([1.0, 2.0, 0.0, -1.0, 3.0])}
VALUES = {
    "hinge(x, 3.2)": [0.0, 0.0, 0.0, 0.8, 3.8],
    "hinge_down(x, 3.2)": [4.2, 2.7, 0.0, 0.0, 0.0],
    "step(x, 3.2)": [0.0, 0.0, 0.0, 1.0, 1.0],
    "step_down(x, 3.2)": [1.0, 1.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("text", VALUES)
def test_values_and_every_form_of_export(text):
    feature = parse_feature(text)
    expected = np.array(VALUES[text])
    np.testing.assert_allclose(feature.evaluate(TABLE), expected, atol=1e-15)
    code = render(feature, NUMPY, {"x": "x"})
    values = eval(code, {"np": np, "x": TABLE["x"]})  # noqa: S307
    np.testing.assert_allclose(values, expected, atol=1e-15)
    symbolic = feature.to_sympy()
    np.testing.assert_allclose([float(symbolic.subs("x", v)) for v in TABLE["x"]], expected)
    assert "3.2" in feature.to_latex()
    assert "CASE WHEN" in render(feature, SQL, {"x": "x"})


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("hinge( x ,3.20 )", "hinge(x, 3.2)"),
        ("step(x, 3.0)", "step(x, 3)"),
        ("step(x, -3e-7)", "step(x, -3e-07)"),
        ("step(x, -0)", "step(x, 0)"),
        ("y*hinge(x*y, 2)*x", "x*y*hinge(x*y, 2)"),
        ("hinge(tanh(0.5 + 2.0*x), 0.25)",) * 2,
        ("sin((hinge(x, 3.2) - 1.0)/2.0)",) * 2,
        ("tanh(0.5 + 2.0*hinge(x, 3.2))",) * 2,
    ],
)
def test_text_is_read_back_to_the_same_object(text, written):
    feature = parse_feature(text)
    assert str(feature) == written
    assert parse_feature(written) is feature
    assert pickle.loads(pickle.dumps(feature)) is feature  # noqa: S301


def test_the_knot_belongs_to_the_identity_and_is_paid_for():
    one, other = parse_feature("hinge(x, 3.2)"), parse_feature("hinge(x, 3.3)")
    assert one != other
    assert topology_of(one) != topology_of(other)
    assert one.complexity == X.complexity + 2
    assert one.depth == 1
    assert one != parse_feature("hinge[3.2](x)")
    assert parse_feature("hinge[3.2](x)").complexity == 2


def test_nothing_is_left_to_be_learnt():
    feature = parse_feature("hinge(x, 3.2)")
    assert feature.fitted
    assert fit_knots(feature, TABLE) is feature
    inner = parse_feature("hinge(step[q0.5](x), 0.5)")
    assert str(fit_knots(inner, TABLE)) == "hinge(step[q0.5=3.2](x), 0.5)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hinge(x)", r"a comma and the knot of hinge, as in hinge\(x, 1.5\)"),
        ("hinge(2*x, 3)", "one feature without weights"),
        ("hinge{x, 3}", "one feature without weights"),
        ("hinge(x, y)", "Expected a number"),
        ("hinge(x, 1e999)", "too large"),
        ("hinge[1.5](x, 3)", "Expected an operator"),
        ("sin(x, 3)", "Expected an operator"),
    ],
)
def test_other_spellings_are_refused(text, message):
    with pytest.raises(FeatureSyntaxError, match=message):
        parse_feature(text)


@pytest.mark.parametrize("knot", [None, np.nan, np.inf])
def test_a_knot_is_required(knot):
    with pytest.raises(InvalidSettingError, match=r"hinge needs a finite knot, as in hinge\(x, 1"):
        modify(get_transform("hinge"), X, knot)


def test_a_projection_needs_no_knot_beside_its_bias():
    assert str(project(get_transform("hinge"), [X], [2.0], -3.0)) == "relu(-3.0 + 2.0*x)"
    assert project(get_transform("step"), [X], [2.0], -3.0).transform is get_transform("step[0]")


def test_steps_are_their_own_squares():
    step = parse_feature("step(x, 3.2)")
    assert TwoValued().simplify(parse_feature("step(x, 3.2)*step(x, 3.2)*y")) == parse_feature(
        "step(x, 3.2)*y"
    )
    assert TwoValued().is_two_valued(step)
    assert not TwoValued().is_two_valued(parse_feature("hinge(x, 3.2)"))


def test_the_function_can_be_taken_off_and_the_child_replaced():
    feature = parse_feature("hinge(x*y, 3.2)")
    assert shortened(feature) == [parse_feature("x*y")]
    assert feature.with_children([X]) is parse_feature("hinge(x, 3.2)")
    assert isinstance(feature, Modification)
    assert not isinstance(feature, Projection)


def test_evaluation_with_others_shares_columns():
    values, _ = evaluate([parse_feature(text) for text in VALUES], TABLE)
    np.testing.assert_allclose(values.T, list(VALUES.values()), atol=1e-15)


def test_a_knot_after_a_value_has_few_digits_and_the_same_rows_above():
    column = np.array([0.0, 1.23456, 1.34567, 7.0])
    assert knot_after(column, 1.23456) == 1.3
    assert knot_after(column, 7.0) is None
    for low, high in ((1e-9, 2e-9), (-1.0, 1.0), (999.9, 1000.1), (1.0, 1.0 + 1e-15)):
        knot = shortest_between(low, high)
        assert low <= knot <= high
    assert shortest_between(-1.0, 1.0) == 0.0
    assert shortest_between(999.9, 1000.1) == 1000.0
