"""Tests of `dbrm.features.transforms`, `library` and `families`."""

import pickle

import cloudpickle
import numpy as np
import pytest

from dbrm.errors import InvalidSettingError
from dbrm.features import (
    TRANSFORMS,
    Interval,
    Transform,
    fit_knots,
    get_transform,
    hinge,
    hinge_down,
    parse_feature,
    power,
    step,
    step_down,
)

MEMBERS = [
    step(1.5),
    step(0.5),
    step_down(-0.7),
    hinge(1.25),
    hinge_down(-1),
    power(-2),
    power(-1),
    power(-0.5),
    power("2/3"),
    power(5),
]
ALL = [*TRANSFORMS.values(), *MEMBERS]
QUANTILES = [f("q0.5") for f in (step, step_down, hinge, hinge_down)]


def by_name(transform):
    return transform.name


def points(size, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=size) * rng.choice([0.1, 1.0, 3.0], size=size)


@pytest.mark.parametrize("g", ALL, ids=by_name)
def test_derivative_agrees_with_finite_differences(g):
    """Away from kinks, to the accuracy of central differences."""
    x = points(2000)
    for kink in g.kinks:
        x = x[np.abs(x - kink) > 0.05]
    h = 1e-5 * np.maximum(1.0, np.abs(x))
    numeric = (g(x + h) - g(x - h)) / ((x + h) - (x - h))
    np.testing.assert_allclose(g.derivative(x), numeric, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("g", QUANTILES, ids=by_name)
def test_derivative_at_a_fitted_knot_agrees_with_finite_differences(g):
    x = points(500)
    x = x[np.abs(x - 0.4) > 0.05]
    numeric = (g(x + 1e-6, 0.4) - g(x - 1e-6, 0.4)) / 2e-6
    np.testing.assert_allclose(g.derivative(x, 0.4), numeric, atol=1e-6)


def test_finite_difference_check_catches_a_wrong_derivative():
    """Negative control of the two tests above."""
    wrong = Transform("wrong", np.sin, np.sin)
    x = points(100)
    numeric = (wrong(x + 1e-5) - wrong(x - 1e-5)) / 2e-5
    assert not np.allclose(wrong.derivative(x), numeric, rtol=1e-2)


@pytest.mark.parametrize("g", [g for g in ALL if g.parity], ids=by_name)
def test_declared_parity_holds(g):
    x = points(10_000)
    sign = 1.0 if g.parity == "even" else -1.0
    np.testing.assert_allclose(g(-x), sign * g(x), rtol=1e-13)


@pytest.mark.parametrize("g", [g for g in ALL if not g.parity], ids=by_name)
def test_parity_is_declared_where_it_holds(g):
    x = points(1000)
    assert not np.allclose(g(-x), g(x))
    assert not np.allclose(g(-x), -g(x))


def test_the_paper_declares_the_expected_parities():
    even = {"gauss", "cos", "exp_neg_abs", "log1p_abs", "troot", "pow2_3", "pow3_5", "square"}
    odd = {"sin", "tanh", "atan", "cube", "erf", "arcsinh"}
    assert {TRANSFORMS[name].parity for name in even} == {"even"}
    assert {TRANSFORMS[name].parity for name in odd} == {"odd"}


@pytest.mark.parametrize("g", ALL, ids=by_name)
def test_idempotence_is_declared_exactly_where_it_holds(g):
    x = points(10_000)
    assert g.idempotent == np.allclose(g(g(x)), g(x))


@pytest.mark.parametrize("g", ALL, ids=by_name)
def test_extreme_values_give_no_warning_and_nothing_but_numbers_or_infinities(g):
    """Warnings are errors here; only a pole or an overflow may be infinite."""
    x = np.array([-1e308, -1e10, -750.0, -5e-324, 0.0, 5e-324, 750.0, 1e10, 1e308])
    values = g(x)
    assert not np.isnan(values).any()
    moderate = np.abs(np.array([-30.0, -1.0, 1.0, 30.0]))
    assert np.isfinite(g(moderate)).all()


@pytest.mark.parametrize("g", [*ALL], ids=by_name)
def test_nan_goes_through(g):
    assert np.isnan(g(np.array([np.nan, 1.0]))).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("gauss", 2.0, np.exp(-4.0)),
        ("sin_degrees", 30.0, 0.5),
        ("cos_degrees", 60.0, 0.5),
        ("sigmoid", -800.0, 0.0),
        ("exp_neg_abs", -2.0, np.exp(-2.0)),
        ("log1p_abs", -1.0, np.log(2.0)),
        ("log_abs", -np.e, 1.0),
        ("log_abs", 0.0, -np.inf),
        ("sqrt_abs", -9.0, 3.0),
        ("troot", -27.0, 3.0),
        ("pow2_3", -2.0, 2.0**2.3),
        ("pow3_5", -2.0, 2.0**3.5),
        ("square", -3.0, 9.0),
        ("cube", -3.0, -27.0),
        ("gelu", 1.0, 0.8413447460685429),
        ("not", 0.25, 0.75),
        ("relu_mirror", -2.0, 2.0),
        ("step[1.5]", 1.5, 0.0),
        ("step[1.5]", 1.6, 1.0),
        ("step_down[1.5]", 1.5, 0.0),
        ("step_down[1.5]", 1.4, 1.0),
        ("hinge[1]", 3.0, 2.0),
        ("hinge_down[1]", -3.0, 4.0),
        ("power[-1]", -4.0, -0.25),
        ("power[-1]", 0.0, np.inf),
        ("power[-0.5]", -4.0, 0.5),
    ],
)
def test_values(name, x, expected):
    assert get_transform(name)(np.array([x]))[0] == pytest.approx(expected, rel=1e-14, abs=1e-300)


def test_relu_works_value_by_value():
    """R's max(0, x) would have returned one number for the column."""
    x = np.array([-2.0, 3.0, 0.0])
    assert TRANSFORMS["relu"](x).tolist() == [0.0, 3.0, 0.0]


def test_slope_of_a_root_is_finite_at_zero():
    assert np.isfinite(TRANSFORMS["troot"].derivative(np.array([0.0, 1e-300, -1e-300]))).all()


def test_one_function_has_one_name():
    assert power("1/3") is TRANSFORMS["troot"]
    assert power(0.5) is TRANSFORMS["sqrt_abs"]
    assert power(2.0) is TRANSFORMS["square"]
    assert hinge(0) is TRANSFORMS["relu"]
    assert hinge_down(-0.0) is TRANSFORMS["relu_mirror"]
    assert step("1.50") is step(1.5)
    assert power(-1.0) is power("-1")
    assert step("q.50").name == "step[q0.5]"
    assert power(2 / 3).name == "power[2/3]"


@pytest.mark.parametrize("exponent", [0, 1, np.nan, "x", "1/0", "1" * 100])
def test_power_refuses_what_is_no_power(exponent):
    with pytest.raises(InvalidSettingError, match="power needs"):
        power(exponent)


@pytest.mark.parametrize("knot", ["q0", "q1", "q-1", "q"])
def test_a_quantile_must_lie_inside(knot):
    with pytest.raises(InvalidSettingError, match="step"):
        step(knot)


def test_users_need_only_a_name_and_a_function():
    cube = Transform("mycube", lambda x: x**3)
    x = np.array([-1.5, 0.3, 20.0])
    np.testing.assert_allclose(cube(x), x**3)
    np.testing.assert_allclose(cube.derivative(x), 3 * x**2, rtol=1e-8)


def test_users_may_put_their_own_knots_at_quantiles():
    bump = Transform("bump[q0.5]", lambda x, c: np.exp(-((x - c) ** 2)), quantile=0.5)
    assert bump(np.array([2.0]), 2.0).tolist() == [1.0]
    np.testing.assert_allclose(bump.derivative(np.array([2.0]), 2.0), 0.0, atol=1e-9)
    feature = parse_feature("bump[q0.5](x)", transforms=[bump])
    fitted = fit_knots(feature, {"x": np.array([1.0, 2.0, 9.0])})
    assert str(fitted) == "bump[q0.5=2.0](x)"
    assert parse_feature(str(fitted), transforms=[bump]) is fitted


def test_values_outside_the_domain_are_undefined():
    log = Transform("mylog", np.log, domain=Interval(0.0))
    values = log(np.array([-1.0, 0.0, 1.0]))
    assert np.isnan(values).tolist() == [True, True, False]
    root = Transform("myroot", np.sqrt, domain=Interval(0.0, 4.0, low_closed=True))
    assert np.isnan(root(np.array([-1.0, 0.0, 4.0, 5.0]))).tolist() == [True, False, True, True]


def test_transforms_are_compared_by_name():
    assert Transform("g", np.sin) == Transform("g", np.cos)
    assert hash(Transform("g", np.sin)) == hash(Transform("g", np.cos))
    assert Transform("g", np.sin) != Transform("h", np.sin)
    assert Transform("g", np.sin) != "g"


def in_place(x):
    x += 1.0
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: 1.0, "same shape"),
        (lambda x: x[:1], "same shape"),
        (lambda x: max(0, x), "must map a NumPy array to an array of the same shape"),
        (lambda x: x + 1j, "complex"),
        (lambda x: x - x.mean(), "each value by itself"),
        (np.cumsum, "each value by itself"),
        (in_place, "must not change its argument"),
        (lambda x: ["a"] * len(x), "must map a NumPy array"),
        (None, "must map a NumPy array"),
    ],
)
def test_a_function_that_is_not_elementwise_is_refused(function, message):
    with pytest.raises(InvalidSettingError, match=message):
        Transform("g", function)


@pytest.mark.parametrize("name", ["", "a b", "2x", "x*y", "a-b", None, 3, "f[", "f[a]b", "f(x)"])
def test_a_name_must_be_an_identifier(name):
    with pytest.raises(InvalidSettingError, match="identifier"):
        Transform(name, np.sin)


@pytest.mark.parametrize(
    "settings",
    [
        {"parity": "even"},
        {"parity": "sideways"},
        {"idempotent": True},
        {"quantile": 1.5},
        {"quantile": 0.5},
    ],
)
def test_false_declarations_are_refused(settings):
    with pytest.raises(InvalidSettingError):
        Transform("g", np.sin, **settings)


@pytest.mark.parametrize("g", [*ALL, *QUANTILES], ids=by_name)
def test_built_in_transforms_pickle_to_themselves(g):
    assert pickle.loads(pickle.dumps(g)) is g  # noqa: S301


def test_users_transforms_travel_by_cloudpickle():
    g = Transform("mine", lambda x: 2 * x + 1, domain=Interval(0.0, 5.0), latex="2 #1 + 1")
    copy = cloudpickle.loads(cloudpickle.dumps(g))
    x = np.array([-1.0, 1.0])
    np.testing.assert_array_equal(copy(x), g(x))
    np.testing.assert_array_equal(copy.derivative(x), g.derivative(x))
    assert (copy.latex, copy.domain) == (g.latex, g.domain)


def test_interval_knows_its_end_points():
    interval = Interval(0.0, 1.0, low_closed=True)
    inside = interval.contains(np.array([-0.1, 0.0, 0.5, 1.0, np.nan]))
    assert inside.tolist() == [False, True, True, False, False]
    assert str(interval) == "[0, 1)"
    for each in (interval, Interval(), Interval(2.0), Interval(high=-3.0)):
        assert each.contains(each.probes()).all()
    with pytest.raises(InvalidSettingError, match="low < high"):
        Interval(1.0, 1.0)
