"""Tests of `dbrm.features.sets`."""

import numpy as np
import pytest

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.features import (
    TRANSFORM_SETS,
    TRANSFORMS,
    Transform,
    get_transform,
    power,
    resolve_transforms,
    transform_names,
)


def names(spec):
    return [g.name for g in resolve_transforms(spec)]


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("paper-classification", "gauss tanh atan sin"),
        ("paper-g1", "sigmoid sin tanh atan troot"),
        ("paper-g2", "sigmoid sin exp_neg_abs log1p_abs troot pow2_3 pow3_5"),
        ("paper-g1-code", "sigmoid sin_degrees cos_degrees tanh atan troot"),
        ("paper-g2-code", "sigmoid sin_degrees exp_neg_abs log1p_abs troot pow2_3 pow3_5"),
        ("logic", "not"),
        (
            "fractional-polynomials",
            "power[-2] power[-1] power[-0.5] log_abs sqrt_abs square cube",
        ),
        (
            "steps",
            "step[q0.25] step_down[q0.25] step[q0.5] step_down[q0.5] step[q0.75] step_down[q0.75]",
        ),
        ("free-knots", "hinge hinge_down step step_down"),
    ],
)
def test_named_sets(name, members):
    assert names(name) == members.split()


@pytest.mark.parametrize("name", TRANSFORM_SETS)
def test_every_set_resolves_to_itself(name):
    assert tuple(names(name)) == TRANSFORM_SETS[name]


def test_smooth_means_without_kinks():
    assert all(not g.kinks and g.knot is None for g in resolve_transforms("smooth"))


def test_names_sets_and_objects_mix_and_repeat():
    mine = Transform("mine", lambda x: x**5)
    assert names(["sin", mine, "logic", "sin", mine, "power[2]"]) == [
        "sin",
        "mine",
        "not",
        "square",
    ]
    assert names("sin") == ["sin"]
    assert names(mine) == ["mine"]
    assert resolve_transforms([]) == ()
    assert resolve_transforms(power(-1)) == (power(-1),)


def test_the_identity_is_not_among_them():
    x = np.linspace(-2, 2, 50)
    assert not any(np.allclose(g(x), x) for g in TRANSFORMS.values())


def test_an_unknown_name_lists_close_and_known_ones():
    with pytest.raises(
        UnknownNameError, match=r"'sine'.*Did you mean 'sin'.*Known.*tanh.*step\[c\]"
    ):
        resolve_transforms("sine")
    with pytest.raises(UnknownNameError, match=r"Did you mean .*'paper-g1'"):
        resolve_transforms(["paper-g"])
    with pytest.raises(KeyError, match=r"Write its parameter: power\[1.5\]"):
        get_transform("power")
    with pytest.raises(InvalidSettingError, match="step needs a finite number"):
        resolve_transforms("step[much]")


@pytest.mark.parametrize("spec", [None, 3, [3], [None]])
def test_other_things_are_refused(spec):
    with pytest.raises(InvalidSettingError, match="names or Transform objects"):
        resolve_transforms(spec)


def test_two_functions_of_one_name_are_refused():
    with pytest.raises(InvalidSettingError, match="Two different functions are called 'sin'"):
        resolve_transforms([Transform("sin", np.cos)])
    with pytest.raises(InvalidSettingError, match="Two different functions are called 'g'"):
        resolve_transforms([Transform("g", np.cos), Transform("g", np.sin)])


def test_transform_names_show_the_families():
    assert {"sin", "not", "step[c]", "power[r]"} <= set(transform_names())


def test_a_family_without_a_parameter_has_free_knots():
    (hinge,) = resolve_transforms("hinge")
    assert hinge.free_knot
    assert hinge is get_transform("hinge")
    assert not get_transform("hinge[1.5]").free_knot
    with pytest.raises(InvalidSettingError, match="already has a parameter"):
        resolve_transforms("hinge[z]")
