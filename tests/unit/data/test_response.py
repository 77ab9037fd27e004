"""Tests of `dbrm.data.response`."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning

from dbrm.data import check_response, check_vector, check_weights
from dbrm.errors import InvalidDataError

Y = [1.0, 0.0, 2.5]


@pytest.mark.parametrize(
    "y",
    [
        Y,
        tuple(Y),
        np.array(Y),
        np.array(Y, dtype=np.float32),
        np.array(Y, dtype=object),
        np.repeat(Y, 2)[::2],
        pd.Series(Y, index=[7, 7, 1]),
        pd.Series(Y, dtype="Float64"),
        pl.Series(Y),
        pa.chunked_array([Y]),
    ],
)
def test_every_kind_of_response_gives_the_same_column(y):
    column = check_response(y, 3)
    assert column.dtype == np.float64
    assert column.flags.c_contiguous
    np.testing.assert_array_equal(column, Y)


def test_response_is_a_copy():
    y = np.array(Y)
    assert not np.shares_memory(check_response(y, 3), y)


def test_booleans_and_integers_become_numbers():
    np.testing.assert_array_equal(check_response([True, False], 2), [1.0, 0.0])
    np.testing.assert_array_equal(check_response(pd.array([3, 4], dtype="Int64"), 2), [3.0, 4.0])


@pytest.mark.parametrize(
    "y", [np.array(Y)[:, None], pd.DataFrame({"y": Y}), pl.DataFrame({"y": Y})]
)
def test_column_vectors_are_flattened_with_a_warning(y):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array"):
        np.testing.assert_array_equal(check_response(y, 3), Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (1.0, r"y should be a 1d array, got an array of shape \(\)"),
        (np.ones((3, 2)), r"y should be a 1d array, got an array of shape \(3, 2\)"),
        ([1.0, 2.0], "inconsistent numbers of samples: X has 3 rows, y has 2 values"),
        ([1.0, np.nan, 2.0], "y contains NaN or missing values: 1, at row 1"),
        ([None, np.nan, 2.0], "y contains NaN or missing values: 2, at rows 0, 1"),
        ([1.0, 2.0, -np.inf], "y contains inf.*: 1, at row 2"),
        (["b", "a", "b"], r"y holds text.*\('a', 'b'\).*DBRMClassifier"),
        (pd.Categorical(["b", "a", "b"]), "y holds text.*DBRMClassifier"),
        ([1j, 2, 3], "Complex data not supported"),
        (pd.date_range("2020-01-01", periods=3), "dates or times"),
        ([[1.0], [2.0, 3.0], [1.0]], "cannot be read as an array"),
        (scipy.sparse.eye_array(3), "y is a sparse matrix"),
    ],
)
def test_rejects_what_is_no_response(y, message):
    with pytest.raises(InvalidDataError, match=message):
        check_response(y, 3)


def test_messages_use_the_given_name():
    with pytest.raises(InvalidDataError, match="SemiMajorAxisAU contains NaN"):
        check_response([np.nan], 1, name="SemiMajorAxisAU")


def test_weights_default_to_ones():
    np.testing.assert_array_equal(check_weights(None, 3), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(check_weights(2, 2), [2.0, 2.0])
    np.testing.assert_array_equal(check_weights(pd.Series([0, 2]), 2), [0.0, 2.0])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0], r"sample_weight must not be negative; got -2\.0 at row 1"),
        ([0.0, 0.0, 0.0], "sample_weight must not be zero everywhere"),
        ([1.0, np.nan, 1.0], "sample_weight contains NaN.* at row 1"),
        ([1.0, np.inf, 1.0], "sample_weight contains inf"),
        ([1.0], "inconsistent numbers of samples: X has 3 rows, sample_weight has 1"),
        (np.ones((3, 2)), "sample_weight should be a 1d array"),
    ],
)
def test_rejects_impossible_weights(weights, message):
    with pytest.raises(InvalidDataError, match=message):
        check_weights(weights, 3)


def test_vectors_repeat_a_number():
    np.testing.assert_array_equal(check_vector(4, 3, name="trials"), [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(check_vector([1, 2], 2, name="offset"), [1.0, 2.0])
    np.testing.assert_array_equal(check_vector(pl.Series([1, 2]), 2, name="offset"), [1.0, 2.0])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "exposure must be a number, or one number per row; got None"),
        ([1.0, 2.0], "inconsistent.*exposure has 2 values"),
        (np.nan, "exposure contains NaN"),
        ("log", "exposure holds text"),
    ],
)
def test_rejects_impossible_vectors(value, message):
    with pytest.raises(InvalidDataError, match=message):
        check_vector(value, 3, name="exposure")


@pytest.mark.parametrize("name", ["sample_weight", "trials"])
def test_more_rows_than_can_be_counted_are_refused(name):
    check = check_weights if name == "sample_weight" else partial(check_vector, name=name)
    check([1.0, 2.0**53 - 1], 2)
    for huge in ([1.0, 2.0**54], [1.0, 1e300], [1e308, 1e308]):
        with pytest.raises(InvalidDataError, match=rf"{name} must add to at most 2\*\*53"):
            check(huge, 2)


def test_an_offset_whose_square_overflows_is_refused():
    check_vector([1e150, -1e150], 2, name="offset")
    with pytest.raises(InvalidDataError, match=r"offset must lie within 1e\+150 of zero.*at row 1"):
        check_vector([0.0, -1e300], 2, name="offset")
