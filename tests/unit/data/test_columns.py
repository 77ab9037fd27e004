"""Tests of `dbrm.data.columns`: what the types of the data-frame libraries become."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dbrm.data import learn_recipe
from dbrm.errors import DBRMWarning, InvalidDataError

SITES = ["oak", "ash", "elm", "ash"]


def one_column(values):
    return {"site": values}


TEXT = {
    "list": one_column(SITES),
    "numpy": one_column(np.array(SITES)),
    "numpy object": one_column(np.array(SITES, dtype=object)),
    "pandas": pd.DataFrame(one_column(SITES)),
    "pandas object": pd.DataFrame(one_column(pd.Series(SITES, dtype=object))),
    "pandas string": pd.DataFrame(one_column(SITES), dtype="string"),
    "polars": pl.DataFrame(one_column(SITES)),
    "pyarrow": pa.table(one_column(SITES)),
}


@pytest.mark.parametrize("kind", TEXT)
def test_text_becomes_one_indicator_per_level(kind):
    """The most frequent level first, then as they occur; the levels themselves are sorted."""
    recipe, table = learn_recipe(TEXT[kind])
    assert table.names == ("site[ash]", "site[oak]", "site[elm]")
    np.testing.assert_array_equal(table.values, [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]])
    assert recipe.columns[0].levels == ("ash", "elm", "oak")
    assert table.binary == (True, True, True)


CATEGORIES = {
    "pandas": pd.DataFrame(one_column(pd.Categorical(SITES, ["oak", "fir", "ash", "elm"]))),
    "polars": pl.DataFrame(one_column(pl.Series(SITES, dtype=pl.Categorical))),
    "pyarrow": pa.table(one_column(pa.array(SITES).dictionary_encode())),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_keep_their_own_order_without_unused_ones(kind):
    recipe, table = learn_recipe(CATEGORIES[kind])
    assert recipe.columns[0].levels == ("oak", "ash", "elm")
    assert table.names == ("site[ash]", "site[oak]", "site[elm]")


ORDERED = {
    "pandas": pd.DataFrame(one_column(pd.Categorical(SITES, ["oak", "ash", "elm"], ordered=True))),
    "polars": pl.DataFrame(one_column(pl.Series(SITES, dtype=pl.Enum(["oak", "ash", "elm"])))),
}


@pytest.mark.parametrize("kind", ORDERED)
def test_ordered_categories_are_numbers_and_steps(kind):
    recipe, table = learn_recipe(ORDERED[kind])
    assert recipe.columns[0].kind == "ordered"
    assert table.names == ("site", "site[>=ash]", "site[>=elm]")
    np.testing.assert_array_equal(table.values, [[1, 0, 0], [2, 1, 0], [3, 1, 1], [2, 1, 0]])


def test_numbers_and_intervals_can_be_levels():
    frame = pd.DataFrame({"grade": pd.Categorical([2, 1, 3, 3]), "age": pd.cut([5, 25, 8, 6], 2)})
    with pytest.warns(DBRMWarning, match=r"affine copies .*'age\[>=\(15"):
        recipe, table = learn_recipe(frame)
    assert recipe.columns[0].levels == ("1", "2", "3")
    assert table.names == ("grade[3]", "grade[2]", "grade[1]")
    assert dict(recipe.dropped) == {"age[>=(15.0, 25.0]]": "copy of 'grade[1]'"}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [True, False, True]}),
        pd.DataFrame({"a": pd.array([True, False, True], dtype="boolean")}),
        pd.DataFrame({"a": pd.Series([True, False, True], dtype=object)}),
        pl.DataFrame({"a": [True, False, True]}),
        pa.table({"a": [True, False, True]}),
    ],
)
def test_booleans_are_zero_and_one(frame):
    recipe, table = learn_recipe(frame)
    assert recipe.columns[0].kind == "boolean"
    np.testing.assert_array_equal(table.column("a"), [1, 0, 1])


@pytest.mark.parametrize(
    "frame",
    [
        {"a": [1.0, None, 4.0]},
        {"a": np.ma.masked_array([1.0, 0.0, 4.0], [False, True, False])},
        pd.DataFrame({"a": [1.0, np.nan, 4.0]}),
        pd.DataFrame({"a": pd.array([1, None, 4], dtype="Int64")}),
        pd.DataFrame({"a": pd.Series([1, pd.NA, 4], dtype=object)}),
        pl.DataFrame({"a": [1, None, 4]}),
        pl.DataFrame({"a": [1.0, float("nan"), 4.0]}),
        pa.table({"a": [1, None, 4]}),
    ],
)
def test_missing_is_missing_in_every_library(frame):
    with pytest.raises(InvalidDataError, match=r"NaN or missing.*column 'a' has 1, at row 1"):
        learn_recipe(frame)
    _, table = learn_recipe(frame, missing="indicator")
    assert table.names == ("a", "a_missing")
    np.testing.assert_array_equal(table.values, [[1, 0], [2.5, 1], [4, 0]])


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2020-01-01", periods=2),
        pd.to_timedelta([1, 2], unit="s"),
        pl.Series([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([datetime.datetime(2020, 1, 1), None], dtype=object),
    ],
)
def test_dates_are_refused_by_name(values):
    with pytest.raises(InvalidDataError, match=r"'when' holds dates or times.*t\.dt\.month"):
        learn_recipe({"x": [1.0, 2.0], "when": values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pl.Series([[1], [2]]), "Column 'odd' is of type List"),
        (np.array([b"a", b"b"]), "Column 'odd' is of type"),
        (pd.Series([1, "two"], dtype=object), "Column 'odd' mixes text such as 'two'"),
        (pd.Series([1j, 2]), "Complex data not supported: column 'odd'"),
        (pd.Series([10**400, 1], dtype=object), "Column 'odd' has an entry that is not a number"),
        (pd.Categorical(["1", 1]), "'odd' has categories that read the same"),
    ],
)
def test_odd_types_are_refused_by_name(values, message):
    frame = {"odd": pd.Series(values) if isinstance(values, pd.Categorical) else values}
    with pytest.raises(InvalidDataError, match=message):
        learn_recipe(frame)
