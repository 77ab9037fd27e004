"""Tests of `dbrm.features.nodes` and `building`: identity, measures, sharing."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import blake2b

import cloudpickle
import numpy as np
import pytest

from dbrm.errors import InvalidSettingError
from dbrm.features import (
    TRANSFORMS,
    Covariate,
    Modification,
    Product,
    Projection,
    Transform,
    covariate,
    get_transform,
    modify,
    multiply,
    parse_feature,
    project,
    shortened,
    step,
)

SIN, TANH, RELU, GAUSS = (TRANSFORMS[name] for name in ("sin", "tanh", "relu", "gauss"))
X, Y, Z = covariate("x"), covariate("y"), covariate("z")
KEPLER = "troot(PeriodDays*PeriodDays*HostStarMassSlrMass)"


def nested(depth):
    feature = X
    for i in range(depth):
        feature = modify(SIN if i % 2 else TANH, feature)
    return feature


# --- measures -------------------------------------------------------------------------------


def test_worked_example_of_the_paper():
    """Width |a1| + |a2| + |a3| + 3 and depth 2 (paper, Sec. 2.3)."""
    inner1 = project(SIN, [X, Y], [0.5, 2.0], 1.0)
    inner2 = project(SIN, [X, Y, Z], [0.1, 0.2, 0.3], -1.0)
    outer = project(SIN, [inner1, inner2], [1.0, 2.0], 0.0)
    assert outer.width == 2 + 3 + 2 + 3
    assert outer.depth == 2
    assert outer.complexity == 11


@pytest.mark.parametrize(
    ("text", "complexity", "depth"),
    [
        ("x", 1, 0),
        ("sin(x)", 2, 1),
        ("x*z", 2, 1),
        ("R*R*R*rho", 4, 2),
        ("tanh(0.1 + 1.0*x + 2.0*y)", 4, 1),
        ("tanh(1.0*x + 2.0*y)", 3, 1),
        ("sin(tanh(x)*x)", 4, 3),
        ("mysinx*sin_of_tanh", 2, 1),
        ("`sin(x)`", 1, 0),
        (KEPLER, 4, 3),
    ],
)
def test_measures(text, complexity, depth):
    """Worked examples; a name that contains "sin" counts as any other."""
    feature = parse_feature(text)
    assert (feature.complexity, feature.depth) == (complexity, depth)
    assert feature.complexity == feature.width + 1


@cache
def least_depth(depths):
    """Brute force: merge any two factors, in every way."""
    if len(depths) == 1:
        return depths[0]
    best = 10**9
    for i in range(len(depths)):
        for j in range(i):
            rest = [depths[k] for k in range(len(depths)) if k not in (i, j)]
            merged = (*rest, 1 + max(depths[i], depths[j]))
            best = min(best, least_depth(tuple(sorted(merged))))
    return best


@pytest.mark.parametrize(
    "depths",
    [
        (0, 0),
        (0, 0, 0),
        (0, 0, 3),
        (1, 1, 2),
        (0, 1, 2, 3),
        (2, 2, 2, 2, 2),
        (0, 0, 0, 0, 2),
        (3, 3, 0),
    ],
)
def test_depth_of_a_product_is_the_least_over_bracketings(depths):
    assert multiply(*[nested(d) for d in depths]).depth == least_depth(depths)


def test_random_product_depths_match_brute_force():
    rng = np.random.default_rng(3)
    for _ in range(60):
        depths = tuple(sorted(rng.integers(0, 5, size=rng.integers(2, 6)).tolist()))
        product = multiply(*[nested(d) for d in depths])
        assert product.depth == least_depth(depths)
        assert product.depth <= max(depths) + int(np.ceil(np.log2(len(depths))))


def test_product_of_products_is_bracketed_anew():
    assert multiply(multiply(multiply(X, Y), X), Z).depth == 2


# --- canonical form -------------------------------------------------------------------------


def test_products_forget_order_and_bracketing():
    assert multiply(X, multiply(Y, X)) is multiply(X, X, Y)
    assert str(multiply(Y, X, X)) == "x*x*y"
    assert multiply(X, Y) != multiply(X, X, Y)
    assert Product([X, Y, X]).factors == (X, X, Y)


def test_a_product_of_one_is_the_factor():
    assert multiply(X) is X
    with pytest.raises(InvalidSettingError, match="at least one"):
        multiply()
    with pytest.raises(InvalidSettingError, match="two factors or more; got 1"):
        Product([X])


def test_idempotent_transforms_are_applied_once():
    assert modify(RELU, modify(RELU, X)) is modify(RELU, X)
    projection = project(RELU, [X, Y], [1.0, 2.0])
    assert modify(RELU, projection) is projection
    assert modify(SIN, modify(SIN, X)) is not modify(SIN, X)
    assert Modification(RELU, modify(RELU, X)) is modify(RELU, X)


def test_projection_sorts_its_children_and_the_weights_follow():
    left = project(TANH, [Y, X], [2.0, 1.0], 0.5)
    assert left is project(TANH, [X, Y], [1.0, 2.0], 0.5)
    assert left.children == (X, Y)
    assert left.weights == (1.0, 2.0)


def test_projection_adds_the_weights_of_repeated_children():
    merged = project(TANH, [X, Y, X], [0.1, 1.0, 0.2])
    assert merged.children == (X, Y)
    assert merged.weights == (pytest.approx(0.3), 1.0)
    assert merged.complexity == 3
    tiny = project(TANH, [X, X, X], [1e16, 1.0, -1e16])
    assert tiny.weights == (1.0,)
    assert tiny is project(TANH, [X, X, X], [1.0, 1e16, -1e16])


def test_children_of_one_topology_but_other_weights_are_kept_apart():
    """Merging them would change the values."""
    first, second = project(TANH, [X], [1.0]), project(TANH, [X], [2.0])
    outer = project(SIN, [first, second], [1.0, 1.0])
    assert first == second
    assert len(outer.children) == 2
    table = {"x": np.array([0.3, -1.0])}
    expected = np.sin(np.tanh(table["x"]) + np.tanh(2 * table["x"]))
    np.testing.assert_allclose(outer.evaluate(table), expected)


@pytest.mark.parametrize(
    ("children", "weights", "bias"),
    [([], [], 0.0), ([X], [1.0, 2.0], None), ([X], [np.nan], None), ([X], [1.0], np.inf)],
)
def test_projection_refuses_impossible_sums(children, weights, bias):
    with pytest.raises(InvalidSettingError, match=r"one weight per feature|must be finite"):
        project(TANH, children, weights, bias)


def test_projection_refuses_weights_that_add_up_to_infinity():
    with pytest.raises(InvalidSettingError, match="must be finite"):
        project(TANH, [X, X], [1.5e308, 1.5e308])


def test_a_projection_on_one_child_is_not_a_modification():
    assert project(TANH, [X], [1.0]) != modify(TANH, X)
    assert project(TANH, [X], [1.0], 0.0) != project(TANH, [X], [1.0])


def test_weights_belong_to_the_identity_only_on_request():
    free = [project(TANH, [X], [w], 1.0) for w in (1.0, 2.0)]
    fixed = [project(TANH, [X], [w], 1.0, weights_in_identity=True) for w in (1.0, 2.0)]
    assert free[0] == free[1]
    assert free[0] is not free[1]
    assert fixed[0] != fixed[1]
    assert fixed[0] != free[0]
    assert fixed[0].weights_in_identity
    assert not free[0].weights_in_identity
    assert str(fixed[0]) == "tanh{1.0 + 1.0*x}"
    assert free[0].canonical == "tanh(? + ?*x)"


def test_the_sign_of_fixed_weights_does_not_matter_to_an_even_transform():
    minus = project(GAUSS, [X, Y], [-1.0, 2.0], 0.5, weights_in_identity=True)
    assert minus is project(GAUSS, [X, Y], [1.0, -2.0], -0.5, weights_in_identity=True)
    odd = [project(TANH, [X], [w], weights_in_identity=True) for w in (-1.0, 1.0)]
    assert odd[0] != odd[1]


def test_fitted_knots_are_not_part_of_the_identity_but_the_quantile_is():
    bare, fitted = modify(step("q0.5"), X), modify(step("q0.5"), X, 1.25)
    assert bare == fitted
    assert bare is not fitted
    assert str(fitted) == "step[q0.5=1.25](x)"
    assert fitted.canonical == "step[q0.5](x)"
    assert bare != modify(step("q0.25"), X)
    assert modify(step(1.0), X) != modify(step(2.0), X)
    assert (bare.fitted, fitted.fitted) == (False, True)
    with pytest.raises(InvalidSettingError, match="knot"):
        modify(SIN, X, 1.0)


def test_kinds_and_their_parts():
    feature = modify(SIN, multiply(X, Y))
    assert isinstance(feature, Modification)
    assert isinstance(feature.children[0], Product)
    assert isinstance(X, Covariate)
    assert isinstance(project(SIN, [X], [1.0]), Projection)
    assert feature.covariates == ("x", "y")
    assert feature.transform is SIN
    assert X.transform is None
    assert type(covariate(np.str_("from numpy")).name) is str
    with pytest.raises(InvalidSettingError, match="must be text"):
        covariate(3)


# --- keys -----------------------------------------------------------------------------------


def test_key_is_pinned():
    """Saved results rely on it: never change this number."""
    feature = parse_feature("(HostStarMassSlrMass*PeriodDays*PeriodDays)^(1/3)")
    assert feature.canonical == KEPLER
    assert feature.key == int.from_bytes(blake2b(KEPLER.encode(), digest_size=16).digest(), "big")
    assert f"{feature.key:032x}" == "45a89a129d7c5c9967eadc973f87e10b"


def test_key_is_the_same_in_every_process():
    texts = [KEPLER, "tanh(0.3 + 1.2*x1 - 1.0*`a b`)*x1", "step[q0.5=2.0](`é`*y)"]
    code = (
        "from dbrm.features import parse_feature; import sys, json\n"
        "print(json.dumps([parse_feature(t).key for t in json.load(sys.stdin)]))"
    )
    import json

    expected = [parse_feature(text).key for text in texts]
    for seed in ("0", "123"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert json.loads(done.stdout) == expected


# --- objects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["x", "sin(x)", "x*x*y", "tanh(0.1 - 2.0*x*y)", "tanh{1.0*x}", "step[q0.5=1.5](0.5*x)"],
)
def test_copies_and_pickles_are_the_same_object(text):
    feature = parse_feature(text)
    assert pickle.loads(pickle.dumps(feature)) is feature  # noqa: S301
    assert cloudpickle.loads(cloudpickle.dumps(feature)) is feature
    assert copy.deepcopy({"a": [feature]})["a"][0] is feature
    assert copy.copy(feature) is feature


def test_features_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        X.key = 3
    with pytest.raises(AttributeError, match="immutable"):
        del X.text
    with pytest.raises(AttributeError):
        X.anything = 3


def test_unused_features_are_forgotten():
    feature = modify(SIN, covariate("used by nobody else"))
    reference = weakref.ref(feature)
    del feature
    gc.collect()
    assert reference() is None


def test_threads_share_one_object():
    def build(_):
        return [
            multiply(covariate(f"t{i}"), modify(SIN, covariate(f"t{i + 1}"))) for i in range(200)
        ]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(build, range(8)))
    assert all(a is b for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_a_transform_redefined_under_its_old_name_gives_new_values():
    table = {"x": np.array([1.0, 2.0])}
    first = modify(Transform("redefined", lambda x: x + 1), X)
    second = modify(Transform("redefined", lambda x: x + 2), X)
    outer = [multiply(first, Y), multiply(second, Y)]
    assert first.evaluate(table).tolist() == [2.0, 3.0]
    assert second.evaluate(table).tolist() == [3.0, 4.0]
    assert first == second
    assert outer[0].evaluate({**table, "y": np.ones(2)}).tolist() == [2.0, 3.0]
    assert outer[1].evaluate({**table, "y": np.ones(2)}).tolist() == [3.0, 4.0]


def test_users_transforms_survive_cloudpickle_inside_features():
    mine = modify(Transform("mine2", lambda x: x**2 + 1), X)
    other = cloudpickle.loads(cloudpickle.dumps(mine))
    assert other == mine
    assert other.evaluate({"x": np.array([2.0])}).tolist() == [5.0]


def test_deep_features_do_not_exhaust_the_stack():
    feature = nested(600)
    assert feature.depth == 600
    assert pickle.loads(pickle.dumps(feature)) is feature  # noqa: S301
    assert np.isfinite(feature.evaluate({"x": np.array([0.5, 1.0])})).all()
    assert feature.to_latex().count(r"\sin") == 300
    shallower = nested(150)
    assert parse_feature(str(shallower)) is shallower


def test_repr_and_latex_for_notebooks():
    assert repr(modify(SIN, X)) == "<Feature sin(x)>"
    assert modify(SIN, X)._repr_latex_() == r"$\sin\left(x\right)$"
    assert modify(SIN, X) != "sin(x)"


def test_one_function_or_one_factor_less():
    assert shortened(X) == []
    assert shortened(project(SIN, [X, Y], [1.0, 2.0], 0.5)) == []
    assert set(shortened(modify(SIN, multiply(X, Y)))) == {
        multiply(X, Y),
        modify(SIN, X),
        modify(SIN, Y),
    }
    assert set(shortened(multiply(X, X, modify(TANH, Y)))) == {
        multiply(X, modify(TANH, Y)),
        multiply(X, X),
        multiply(X, X, Y),
    }


def test_shortening_forgets_knots_of_what_has_changed():
    """The median of x*y is not that of x."""
    above = get_transform("step[q0.5]")
    fitted = modify(above, multiply(X, Y), 3.0)
    assert set(shortened(fitted)) == {multiply(X, Y), modify(above, X), modify(above, Y)}
    assert all(f.knot is None for f in shortened(fitted) if isinstance(f, Modification))
    (kept,) = (f for f in shortened(multiply(fitted, Z)) if isinstance(f, Modification))
    assert kept.knot == 3.0


@pytest.mark.parametrize(
    ("text", "complexity"),
    [("exp(x)", 2), ("exp{-0.4*x}", 3), ("exp{1.7 - 0.4*x}", 3), ("exp{-0.4*x + 0.2*z}", 4)],
)
def test_a_number_in_the_identity_is_paid_for(text, complexity):
    assert parse_feature(text).complexity == complexity
