"""Tests of `dbrm.data.intake`: every kind of table gives the same numbers, or a clear error."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from dbrm.data import learn_recipe, read_table
from dbrm.data.columns import read_column
from dbrm.errors import InvalidDataError

NAMES = ["a", "sin", "char_freq_["]
# Exact in float32, so that every type below can hold them.
VALUES = np.array([[1.0, 2.5, 0.0], [4.0, -1.0, 1.0], [2.0, 8.25, 1.0], [7.0, 0.5, 0.0]])
COLUMNS = dict(zip(NAMES, VALUES.T.tolist(), strict=True))


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


class ArrayLike:
    """What scikit-learn's checks hand over: no ndarray, but it can become one."""

    def __array__(self, dtype=None, copy=None):
        return VALUES.copy() if dtype is None else VALUES.astype(dtype)


ARRAYS = {
    "C-ordered": np.ascontiguousarray(VALUES),
    "F-ordered": np.asfortranarray(VALUES),
    "strided": np.repeat(np.repeat(VALUES, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": VALUES[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only(VALUES),
    "float32": VALUES.astype(np.float32),
    "longdouble": VALUES.astype(np.longdouble),
    "big-endian": VALUES.astype(">f8"),
    "object": VALUES.astype(object),
    "lists": VALUES.tolist(),
    "tuples": tuple(map(tuple, VALUES)),
    "array-like": ArrayLike(),
    "masked": np.ma.masked_array(VALUES),
}
FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas object": pd.DataFrame(COLUMNS, dtype=object),
    "pandas index": pd.DataFrame(COLUMNS, index=[9, 9, 2, 1]),
    "polars": pl.DataFrame(COLUMNS),
    "polars decimal": pl.DataFrame(COLUMNS).cast(pl.Decimal(10, 2)),
    "pyarrow": pa.table(COLUMNS),
    "dict of lists": COLUMNS,
    "dict of arrays": {name: np.array(column) for name, column in COLUMNS.items()},
    "dict of series": {name: pl.Series(column) for name, column in COLUMNS.items()},
    "record array": np.array(
        [tuple(row) for row in VALUES], dtype=[(name, float) for name in NAMES]
    ),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_every_array_gives_the_same_values(kind):
    recipe, table = learn_recipe(ARRAYS[kind])
    assert table.names == ("x1", "x2", "x3")
    np.testing.assert_array_equal(table.values, VALUES)
    np.testing.assert_array_equal(recipe.apply(ARRAYS[kind]).values, VALUES)
    assert not recipe.named


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_values_and_names(kind):
    recipe, table = learn_recipe(FRAMES[kind])
    assert table.names == tuple(NAMES)
    assert table.binary == (False, False, True)
    np.testing.assert_array_equal(table.values, VALUES)
    np.testing.assert_array_equal(recipe.apply(FRAMES[kind]).values, VALUES)
    assert recipe.named


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, bool])
def test_integers_and_booleans_become_floats(dtype):
    whole = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    _, table = learn_recipe(whole)
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values, whole)


def test_input_is_neither_changed_nor_kept():
    X = np.asfortranarray(VALUES)
    _, table = learn_recipe(X, scale="standard")
    np.testing.assert_array_equal(X, VALUES)
    assert X.flags.writeable
    assert not np.shares_memory(X, table.values)


@pytest.mark.parametrize(
    "name", ["two words", "größe ∂", "char_freq_[", "sin", "x*y", "`", '"', "1"]
)
def test_names_are_kept_exactly(name):
    _, table = learn_recipe(pd.DataFrame({name: [1.0, 2.0]}))
    assert table.names == (name,)


def test_names_can_be_given_to_an_array():
    recipe, table = learn_recipe(VALUES, names=NAMES)
    assert table.names == tuple(NAMES)
    assert recipe.named


def test_names_that_are_no_strings_become_text():
    _, table = learn_recipe(pd.DataFrame(VALUES, columns=[0, ("a", 1), 2.5]))
    assert table.names == ("0", "('a', 1)", "2.5")


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame(VALUES, columns=["a", "b", "a"]),
        pa.table([[1.0, 2.0], [3.0, 5.0]], names=["a", "a"]),
        {"1": [1, 2], 1: [3, 4], "a": [5, 6]},
    ],
)
def test_repeated_names_are_named(X):
    with pytest.raises(InvalidDataError, match=r"unique.*repeated: '(a|1)'"):
        learn_recipe(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (1.0, "Expected 2D array, got a single float"),
        (None, "Expected 2D array, got a single NoneType"),
        ("y ~ x", "Expected 2D array, got a single str"),
        (np.arange(3.0), r"Reshape your data.*reshape\(-1, 1\)"),
        ([1, 2, 3], "Reshape your data"),
        (pd.Series([1.0, 2.0]), "Reshape your data"),
        (pl.Series([1.0, 2.0]), "Reshape your data"),
        (np.ones((2, 2, 2)), r"array with dim 3.*shape \(2, 2, 2\)"),
        ([[1.0, 2.0], [3.0]], "cannot be read as an array"),
        (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.empty((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        ({}, r"0 feature\(s\)"),
        (scipy.sparse.csr_matrix(VALUES), r"sparse.*toarray\(\)"),
        (scipy.sparse.coo_array(VALUES), r"sparse.*toarray\(\)"),
        (pl.DataFrame(COLUMNS).lazy(), r"lazy frame.*collect\(\)"),
        ("data.csv", "X is a path, 'data.csv'.*read it first"),
        (VALUES * 1j, "Complex data not supported: column 'x1'"),
        (np.array([[1, 1j]], dtype=object), "Complex data not supported: column 'x2'"),
        (np.array([["a", "b"], ["c", "d"]]), "holds text, such as 'a'.*Use a DataFrame"),
        (np.array([["a", 1], ["b", 2]], dtype=object), "holds text, such as 'a'.*Use a DataFrame"),
        ({"a": [1, 2], "b": [1, 2, 3]}, r"same number of rows; got \{'a': 2, 'b': 3\}"),
        ({"a": [[1], [2]]}, r"Column 'a' must be one-dimensional; got shape \(2, 1\)"),
    ],
)
def test_rejects_what_is_no_table(X, message):
    with pytest.raises(InvalidDataError, match=message):
        learn_recipe(X)


def test_object_that_is_no_number_is_also_a_type_error():
    """scikit-learn's `check_dtype_object` asks for this type and these words."""
    X = VALUES.astype(object)
    X[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"'x1'.*argument must be .* string.* number"):
        learn_recipe(X)


def test_names_must_fit_the_array():
    with pytest.raises(InvalidDataError, match="one name per column; got 2 for 3 columns"):
        learn_recipe(VALUES, names=["a", "b"])
    with pytest.raises(InvalidDataError, match="repeated: 'a'"):
        learn_recipe(VALUES, names=["a", "b", "a"])
    with pytest.raises(InvalidDataError, match="names= is for arrays"):
        learn_recipe(pd.DataFrame(COLUMNS), names=NAMES)


def test_a_list_of_texts_may_have_gaps():
    """NumPy alone would read None and NaN beside texts as the texts 'None' and 'nan'."""
    raw = read_table({"site": ["n", None, "s", float("nan")], "a": [1, 2, 3, 4]})
    column = read_column("site", raw.contents[0])
    assert column.levels == ("n", "s")
    assert column.missing.tolist() == [False, True, False, True]
