"""Tests of `dbrm.data.standardize`."""

import numpy as np
import pytest

from dbrm.data.standardize import moments, to_unit_length


@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e300])
def test_columns_of_any_size_become_centred_columns_of_unit_length(rng, unit):
    columns = unit * rng.normal(3.0, 2.0, size=(50, 4))
    made = to_unit_length(columns)
    np.testing.assert_allclose(made.mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(made, axis=0), 1.0, rtol=1e-12)
    plain = columns / unit
    expected = (plain - plain.mean(axis=0)) / (plain.std(axis=0) * np.sqrt(50))
    np.testing.assert_allclose(made, expected, atol=1e-12)


def test_constant_and_infinite_columns_are_filled(rng):
    columns = np.column_stack([np.full(9, 0.1), np.r_[np.inf, np.ones(8)], rng.normal(size=9)])
    assert np.isnan(to_unit_length(columns)[:, :2]).all()
    assert (to_unit_length(columns, fill=0.0)[:, :2] == 0.0).all()


def test_a_column_that_varies_too_little_is_constant(rng):
    columns = 1.0 + 1e-7 * rng.normal(size=(20, 1))
    assert np.isfinite(to_unit_length(columns, smallest=1e-9)).all()
    assert np.isnan(to_unit_length(columns, smallest=1e-6)).all()


def test_the_columns_change_only_on_request(rng):
    columns = np.asfortranarray(rng.normal(size=(20, 3)))
    before = columns.copy()
    made = to_unit_length(columns)
    np.testing.assert_array_equal(columns, before)
    assert to_unit_length(columns, in_place=True) is columns
    np.testing.assert_array_equal(columns, made)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("unit", [1.0, 2.0**-1000, 2.0**1000])
def test_moments_do_not_overflow(rng, unit, exact):
    column = rng.normal(5.0, 2.0, size=40)
    mean, deviation = moments(unit * column, ddof=1, exact=exact)
    assert mean / unit == pytest.approx(column.mean(), rel=1e-13)
    assert deviation / unit == pytest.approx(column.std(ddof=1), rel=1e-13)


def test_largest_doubles_have_moments():
    column = np.array([1.7e308, -1.7e308, 1.7e308])
    for exact in (True, False):
        mean, deviation = moments(column, exact=exact)
        assert mean == pytest.approx(1.7e308 / 3.0, rel=1e-12)
        assert deviation == pytest.approx(1.7e308 * (np.sqrt(8.0) / 3.0), rel=1e-12)
