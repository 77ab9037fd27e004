"""Tests of standardised arguments: ``sin[z](x)`` becomes ``sin((x - 3.1)/2.4)``."""

import pickle

import numpy as np
import pytest

from dbrm.errors import FeatureSyntaxError, InvalidSettingError
from dbrm.features import (
    NUMPY,
    Standardized,
    Transform,
    covariate,
    evaluate,
    fit_knots,
    get_transform,
    modify,
    parse_feature,
    project,
    render,
    resolve_transforms,
    shortened,
)

TABLE = {"x": np.array([1.0, 2.0, 4.0, 9.0]), "y": np.array([0.3, -0.2, 0.9, 0.1])}


def fitted(text, table=TABLE):
    return fit_knots(parse_feature(text), table)


def test_the_argument_has_mean_zero_and_unit_variance():
    (column,) = evaluate([fitted("arcsinh[z](x)")], TABLE)[0].T
    argument = np.sinh(column)
    assert np.mean(argument) == pytest.approx(0.0, abs=1e-3)
    assert np.std(argument) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e5, 1e200])
def test_units_change_the_numbers_and_not_the_values(factor):
    here = evaluate([fitted("sin[z](x*y)")], TABLE)[0]
    scaled = {"x": TABLE["x"] * factor, "y": TABLE["y"]}
    feature = fitted("sin[z](x*y)", scaled)
    np.testing.assert_allclose(evaluate([feature], scaled)[0], here, rtol=1e-12)


def test_the_price_is_that_of_the_plain_function():
    plain, standard = parse_feature("sin(x*y)"), fitted("sin[z](x*y)")
    assert (standard.complexity, standard.depth) == (plain.complexity, plain.depth)
    assert standard != plain


def test_identity_does_not_depend_on_the_numbers():
    assert fitted("sin[z](x)") == parse_feature("sin[z](x)") == parse_feature("sin((x + 1)/3)")


@pytest.mark.parametrize("text", ["sin[z](x)", "tanh[z](x*y)*x", "sin[z](cos[z](x))"])
def test_text_reads_back_as_the_same_object(text):
    feature = fitted(text)
    assert parse_feature(str(feature)) is feature
    assert pickle.loads(pickle.dumps(feature)) is feature  # noqa: S301


def test_it_is_written_for_people():
    feature = fitted("sin[z](x)")
    assert str(feature) == "sin((x - 4.0)/3.082)"
    assert feature.to_latex() == r"\sin\left(\frac{x - 4}{3.082}\right)"
    assert render(feature, NUMPY, {"x": "x"}) == "np.sin(((x - 4.0) / 3.082))"
    assert str(feature.to_sympy()).startswith("sin(0.32446")


def test_a_transform_without_parameters_can_be_standardised():
    own = Transform("bump", lambda x: 1.0 / (1.0 + x * x)).standardized()
    assert own.name == "bump[z]"
    assert str(fit_knots(modify(own, covariate("x")), TABLE)) == "bump((x - 4.0)/3.082)"
    with pytest.raises(InvalidSettingError, match="already has a parameter"):
        get_transform("step[q0.5]").standardized()


def test_projections_use_the_plain_function():
    made = project(get_transform("sin[z]"), [covariate("x"), covariate("y")], [1.0, 2.0], 0.5)
    assert str(made) == "sin(0.5 + 1.0*x + 2.0*y)"


def test_one_function_less_is_the_feature_inside():
    assert shortened(fitted("sin[z](x*y)"))[0] == parse_feature("x*y")


def test_division_of_a_weighted_sum_divides_the_weights():
    assert parse_feature("sin((2*x + y)/4)") == parse_feature("sin(0.5*x + 0.25*y)")
    with pytest.raises(FeatureSyntaxError, match="division by zero"):
        parse_feature("sin((x - 1)/0)")


@pytest.mark.parametrize("numbers", [(np.nan, 1.0), (0.0, 0.0), (0.0, np.inf), (1.0, None)])
def test_numbers_that_cannot_be_are_refused(numbers):
    with pytest.raises(InvalidSettingError, match="finite centre and a positive scale"):
        Standardized(covariate("x"), *numbers)


def test_the_default_set_takes_standardised_arguments():
    assert all(g.base is not None for g in resolve_transforms("smooth"))


@pytest.mark.parametrize("name", ["tanh", "sin", "gauss", "sigmoid", "atan", "erf", "step[1.5]"])
def test_bounded_functions_are_known(name):
    assert get_transform(name).bounded


@pytest.mark.parametrize(
    "name", ["log_abs", "log1p_abs", "arcsinh", "troot", "power[-1]", "relu", "exp", "not"]
)
def test_unbounded_functions_are_known(name):
    assert not get_transform(name).bounded
