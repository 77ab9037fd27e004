"""Tests of `dbrm.evolution.registry`: one column, one number, whatever the spelling."""

import numpy as np
import pytest

import dbrm
from dbrm.data import Table
from dbrm.evolution import registry as module
from dbrm.evolution.registry import Registry, affine_mark, same_up_to_affine, simpler
from dbrm.search import split_key


@pytest.fixture
def table(rng):
    values = rng.uniform(0.2, 3.0, size=(80, 3))
    values[:, 2] = rng.random(80) < 0.4
    return Table(("x", "z", "b"), values)


def number(registry, table, text):
    feature = dbrm.parse_feature(text)
    return registry.number(feature, feature.evaluate(table))


def test_numbers_count_up_and_are_remembered(table):
    registry = Registry(table)
    assert [number(registry, table, text) for text in ("x", "z", "x*z", "x")] == [0, 1, 2, 0]
    assert len(registry) == 3
    assert registry.known(dbrm.parse_feature("z*x")) == 2
    assert registry.known(dbrm.parse_feature("sin(x)")) is None


@pytest.mark.parametrize(
    ("simple", "complicated"),
    [
        ("x", "troot(x*x*x)"),  # equal on positive values
        ("b", "not(b)"),  # affine: 1 - b
        ("b", "b*b"),  # equal on zeros and ones
        ("x*z", "z*troot(x*x*x)"),
        ("sin(x)", "sin(troot(x*x*x))"),
    ],
)
@pytest.mark.parametrize("simple_first", [True, False])
def test_affine_copies_are_one_feature_under_the_simplest_spelling(
    table, simple, complicated, simple_first
):
    registry = Registry(table)
    order = (simple, complicated) if simple_first else (complicated, simple)
    assert [number(registry, table, text) for text in order] == [0, 0]
    assert [str(feature) for feature in registry.features] == [simple]
    assert [str(alias) for alias in registry.aliases[0]] == [complicated]
    for text in order:
        assert registry.known(dbrm.parse_feature(text)) == 0


def test_the_key_of_a_number_never_changes(table):
    """Models recorded under the first spelling stay found after a simpler one arrives."""
    registry = Registry(table)
    number(registry, table, "troot(x*x*x)")
    before = registry.keys.copy()
    number(registry, table, "x")
    np.testing.assert_array_equal(registry.keys, before)
    assert tuple(before[0]) == split_key(dbrm.parse_feature("troot(x*x*x)").key)


def test_ties_in_complexity_go_by_the_alphabet():
    first, second = dbrm.parse_feature("a*b"), dbrm.parse_feature("sin(a)")
    assert simpler(first, second)
    assert not simpler(second, first)
    assert simpler(dbrm.parse_feature("z"), first)
    assert not simpler(first, first)


def test_different_columns_with_one_fingerprint_stay_apart(table, monkeypatch):
    """Collisions are confirmed on all rows."""
    monkeypatch.setattr(module, "affine_mark", lambda column: b"same")
    registry = Registry(table)
    texts = ("x", "z", "x*z", "sin(x)", "troot(x*x*x)")
    assert [number(registry, table, text) for text in texts] == [0, 1, 2, 3, 0]


@pytest.mark.parametrize("scale", [1e-200, 1.0, -3.0, 1e200])
@pytest.mark.parametrize("shift", [0.0, 17.0])
def test_the_fingerprint_ignores_affine_maps(rng, scale, shift):
    column = rng.normal(size=200)
    moved = (column + shift) * scale
    assert affine_mark(moved) == affine_mark(column)
    assert same_up_to_affine(moved, column)


def test_the_fingerprint_sees_differences(rng):
    column = rng.normal(size=200)
    other = column + 1e-3 * rng.normal(size=200)
    assert affine_mark(other) != affine_mark(column)
    assert not same_up_to_affine(other, column)


def test_a_difference_between_the_sampled_rows_is_seen(rng):
    """The mark looks at some rows only; the confirmation looks at all."""
    column = rng.normal(size=1000)
    other = column.copy()
    other[1] += 0.1
    assert not same_up_to_affine(other, column)
