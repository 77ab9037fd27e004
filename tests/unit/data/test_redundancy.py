"""Tests of `dbrm.data.redundancy` and of how `learn_recipe` reports what it drops."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrm.data import learn_recipe, redundancy
from dbrm.data.redundancy import find_redundant
from dbrm.errors import DBRMWarning


@pytest.fixture
def rng(request):
    return np.random.default_rng(list(request.node.name.encode()))


def test_finds_constants_and_copies(rng):
    a, b = rng.normal(size=(2, 30))
    values = np.column_stack([a, np.full(30, 7.0), b, a, 3.0 - 2.0 * b, a + b])
    assert find_redundant(values) == {1: None, 3: 0, 4: 2}


def test_independent_columns_are_kept(rng):
    assert find_redundant(rng.normal(size=(20, 500))) == {}


def test_nearly_equal_columns_are_not_copies(rng):
    """Negative control: noise of 1e-4 is information, rounding of 1e-9 is not."""
    a, noise = rng.normal(size=(2, 100))
    values = np.column_stack([a, a + 1e-4 * noise, a + 1e-9 * noise])
    assert find_redundant(values) == {2: 0}


@given(
    slope=st.floats(1e-6, 1e6) | st.floats(-1e6, -1e-6),
    shift=st.floats(-1e3, 1e3),
    seed=st.integers(0, 2**32),
)
def test_affine_copies_are_found(slope, shift, seed):
    """Whatever the slope and sign, as long as the shift does not drown the digits."""
    a = np.random.default_rng(seed).normal(size=25)
    values = np.column_stack([a, slope * (a + shift)])
    assert find_redundant(values) == {1: 0}


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324, 1.7e308])
def test_extreme_scales_are_harmless(rng, scale):
    signs = np.array([1.0, -1.0, 0.0, 1.0])
    values = np.column_stack([signs * scale, signs, signs[::-1] * scale])
    assert find_redundant(values) == {1: 0}


def test_many_copies_cost_no_more_than_many_columns(rng):
    values = np.repeat(rng.normal(size=(50, 1)), 3000, axis=1)
    assert find_redundant(values) == dict.fromkeys(range(1, 3000), 0)


def test_warns_once_per_kind_and_names_the_columns():
    frame = pd.DataFrame({"a": [1.0, 2, 4], "k": 3.0, "b": [2.0, 4, 8], "c": [9, 1, 1], "l": 0})
    with pytest.warns(DBRMWarning) as caught:
        recipe, table = learn_recipe(frame)
    assert [str(warning.message) for warning in caught] == [
        "Constant columns are left out: 'k', 'l'.",
        "Columns that are affine copies of an earlier column are left out: 'b' (copy of 'a').",
    ]
    assert table.names == ("a", "c")
    assert recipe.dropped == (("k", "constant"), ("b", "copy of 'a'"), ("l", "constant"))
    np.testing.assert_array_equal(table.values, frame[["a", "c"]])
    assert table.values.flags.f_contiguous


def test_long_lists_are_cut():
    with pytest.warns(DBRMWarning, match="'x11' and 5 more"):
        learn_recipe(np.hstack([np.eye(3)[:, :1], np.ones((3, 15))]))


def test_nothing_left_is_allowed():
    with (
        pytest.warns(DBRMWarning, match="Constant columns"),
        pytest.warns(DBRMWarning, match="only an intercept"),
    ):
        recipe, table = learn_recipe(np.ones((1, 3)))
    assert table.values.shape == (1, 0)
    assert recipe.apply(np.zeros((5, 3))).values.shape == (5, 0)


def test_one_level_is_constant():
    with pytest.warns(DBRMWarning, match="Constant columns .*: 'site'"):
        recipe, table = learn_recipe({"a": [1, 2, 3], "site": ["u", "u", "u"]})
    assert table.names == ("a",)
    assert recipe.dropped == (("site", "constant"),)


def test_dropped_columns_are_not_needed_later():
    with pytest.warns(DBRMWarning, match="'k'"):
        recipe, _ = learn_recipe(pd.DataFrame({"a": [1.0, 2.0, 5.0], "k": 1.0}))
    np.testing.assert_array_equal(recipe.apply({"a": [4.0]}).values, [[4.0]])


def test_work_grows_with_the_columns_not_their_pairs(rng, monkeypatch):
    """Of 50 million pairs only those with equal sketches are compared."""
    compared = []
    monkeypatch.setattr(redundancy, "_are_copies", lambda a, b: compared.append(1))
    find_redundant(rng.normal(size=(200, 10_000)))
    assert len(compared) < 10_000


def test_a_tall_table_is_copied_once(rng):
    X = rng.normal(size=(200_000, 10))
    tracemalloc.start()
    learn_recipe(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * X.nbytes
