"""Tests of `dbrm.evolution.population`: no column that says nothing new."""

import numpy as np
import pytest

from dbrm.evolution.population import Basis


def test_independent_columns_are_admitted_up_to_the_capacity(rng):
    basis = Basis(np.empty((20, 0)), 3)
    assert [basis.admit(column) for column in rng.normal(size=(5, 20))] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_combinations_are_refused(rng, scale):
    basis = Basis(np.empty((30, 0)), 9)
    first, second = rng.normal(size=(2, 30))
    assert basis.admit(first)
    assert basis.admit(second)
    assert not basis.admit((2 * first - second + 5.0) * scale)
    assert not basis.admit(np.full(30, scale))
    assert not basis.admit(np.zeros(30))
    assert basis.admit(rng.normal(size=30) * scale)


@pytest.mark.parametrize(("noise", "admitted"), [(1e-6, False), (1e-3, True)])
def test_the_border_is_a_billionth_of_the_variance(rng, noise, admitted):
    basis = Basis(np.empty((50, 0)), 2)
    column = rng.normal(size=50)
    assert basis.admit(column)
    assert basis.admit(column + noise * rng.normal(size=50)) is admitted


def test_fixed_columns_count(rng):
    fixed = rng.normal(size=(20, 2))
    basis = Basis(fixed, 5)
    assert not basis.admit(fixed @ [1.0, -2.0])
    assert basis.admit(rng.normal(size=20))


def test_rows_limit_the_basis(rng):
    """Five rows: an intercept and four columns."""
    basis = Basis(np.empty((5, 0)), 20)
    assert sum(basis.admit(column) for column in rng.normal(size=(10, 5))) == 4


def test_the_order_decides_between_dependent_columns(rng):
    first, second = rng.normal(size=(2, 20))
    for order in ([first, second, first + second], [first + second, first, second]):
        basis = Basis(np.empty((20, 0)), 5)
        assert [basis.admit(column) for column in order] == [True, True, False]
