"""Tests of `dbrm.data.table`."""

import pickle

import numpy as np
import pytest

from dbrm.data import Table, fingerprint
from dbrm.errors import InvalidDataError, UnknownNameError

VALUES = np.array([[1.0, 0.0], [2.5, 1.0], [-3.0, 1.0]])


@pytest.fixture
def table():
    return Table(("PeriodDays", "hot"), VALUES)


def test_values_are_a_frozen_fortran_copy(table):
    assert table.values.flags.f_contiguous
    assert table.values.dtype == np.float64
    assert not np.shares_memory(table.values, VALUES)
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 7.0


def test_frozen_fortran_values_are_not_copied():
    values = np.asfortranarray(VALUES)
    values.flags.writeable = False
    assert Table(("a", "b"), values).values is values


def test_looks_up_columns_by_name(table):
    np.testing.assert_array_equal(table.column("hot"), [0.0, 1.0, 1.0])
    assert "hot" in table
    assert "cold" not in table
    assert (table.n_rows, table.n_columns) == (3, 2)
    assert table.binary == (False, True)


def test_binary_looks_at_every_row():
    values = np.zeros((200, 1))
    values[-1] = 0.5
    assert Table(("a",), values).binary == (False,)


def test_unknown_column_suggests_a_near_one(table):
    with pytest.raises(UnknownNameError, match=r"no column 'PeriodDay'.*did you mean 'PeriodDays'"):
        table.column("PeriodDay")


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_rejects_a_wrong_number_of_names(names):
    with pytest.raises(InvalidDataError, match="one name per column"):
        Table(names, VALUES)


def test_rejects_repeated_names():
    with pytest.raises(InvalidDataError, match="unique; repeated: 'a'"):
        Table(("a", "a"), VALUES)


def test_pickle_keeps_values_frozen(table):
    back = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert back.names == table.names
    assert not back.values.flags.writeable
    np.testing.assert_array_equal(back.values, table.values)


def test_no_columns_is_a_table():
    assert Table((), np.empty((4, 0))).n_rows == 4


def test_fingerprint_depends_on_content_only(table):
    same = Table(table.names, np.ascontiguousarray(VALUES[::1]))
    assert fingerprint(table, VALUES[:, 0]) == fingerprint(same, VALUES[:, 0].copy())
    assert len(fingerprint(table)) == 64


def test_fingerprint_sees_every_change(table):
    y = VALUES[:, 0]
    nudged = VALUES.copy()
    nudged[2, 1] = np.nextafter(1.0, 2.0)
    prints = {
        fingerprint(table),
        fingerprint(table, y),
        fingerprint(table, y, y),
        fingerprint(table, np.nextafter(y, 9.0)),
        fingerprint(Table(("a", "hot"), VALUES)),
        fingerprint(Table(table.names, nudged)),
        fingerprint(Table(table.names, VALUES[::-1])),
    }
    assert len(prints) == 7
