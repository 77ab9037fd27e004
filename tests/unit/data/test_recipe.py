"""Tests of `dbrm.data.recipe` and `dbrm.data.learning`: what is learned, and its replay."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrm.data import Recipe, learn_recipe
from dbrm.data.rules import ColumnRule
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidSettingError

TRAIN = pd.DataFrame(
    {
        "PeriodDays": [1.5, 3.0, 10.0, 4.0],
        "site": ["b", "a", "c", "b"],
        "hot": [True, True, False, False],
    }
)


BARE = {"levels": [], "fill": None, "indicator": False}


@pytest.fixture
def recipe():
    return learn_recipe(TRAIN)[0]


def test_replay_gives_the_training_table(recipe):
    table = recipe.apply(TRAIN)
    assert table.names == ("PeriodDays", "site[b]", "site[a]", "site[c]", "hot")
    assert recipe.input_names == ("PeriodDays", "site", "hot")
    np.testing.assert_array_equal(table.values, learn_recipe(TRAIN)[1].values)


def test_order_and_extra_columns_do_not_matter(recipe):
    when = pd.date_range("2020-01-01", periods=4)
    shuffled = TRAIN.assign(when=when)[["hot", "when", "site", "PeriodDays"]]
    expected = recipe.apply(TRAIN).values
    np.testing.assert_array_equal(recipe.apply(shuffled).values, expected)
    np.testing.assert_array_equal(recipe.apply(pl.from_pandas(shuffled)).values, expected)


def test_levels_are_those_of_training(recipe):
    """New rows with fewer levels, or with a category of another order, keep their meaning."""
    new = {"PeriodDays": [1, 2], "site": ["c", "c"], "hot": [0, 1]}
    expected = [[1, 0, 0, 1, 0], [2, 0, 0, 1, 1]]
    np.testing.assert_array_equal(recipe.apply(new).values, expected)
    new["site"] = pd.Series(pd.Categorical(["c", "c"], categories=["z", "c", "a"]))
    np.testing.assert_array_equal(recipe.apply(new).values, expected)


def test_unseen_level_is_named(recipe):
    new = TRAIN.assign(site=["a", "z", "b", "z"])
    with pytest.raises(InvalidDataError, match=r"'site' has levels.*: 'z'. Known.* 'a', 'b', 'c'"):
        recipe.apply(new)


def test_numbers_can_stand_for_numeric_levels():
    recipe, _ = learn_recipe({"grade": pd.Series(pd.Categorical([1, 2, 3, 1]))})
    for grades in ([2, 3], [2.0, 3.0], ["2", "3"]):
        np.testing.assert_array_equal(
            recipe.apply({"grade": grades}).values, [[0, 1, 0], [0, 0, 1]]
        )
    with pytest.raises(InvalidDataError, match=r"'2.5'.*Known levels are '1', '2', '3'"):
        recipe.apply({"grade": [2.5]})


def test_missing_columns_are_named_with_near_ones(recipe):
    new = TRAIN.rename(columns={"PeriodDays": "Period_Days"}).drop(columns="hot")
    with pytest.raises(
        InvalidDataError,
        match=r"lacks.*'PeriodDays' \(did you mean 'Period_Days'\?\), 'hot'. It has",
    ):
        recipe.apply(new)


def test_many_missing_columns_are_counted():
    recipe, _ = learn_recipe(np.eye(9), names=[f"gene{j}" for j in range(9)])
    with pytest.raises(InvalidDataError, match="'gene4' and 4 more"):
        recipe.apply({"other": [1.0]})


def test_arrays_are_taken_by_position():
    recipe, _ = learn_recipe(TRAIN[["PeriodDays", "hot"]])
    np.testing.assert_array_equal(recipe.apply([[2.0, 1.0]]).values, [[2.0, 1.0]])
    with pytest.raises(
        ValueError, match="X has 3 features, but Me is expecting 2 features as input"
    ):
        recipe.apply(np.ones((1, 3)), caller="Me")


def test_frames_for_a_recipe_without_names():
    """By name if the names are there, by position if they are not."""
    recipe, _ = learn_recipe(np.eye(3)[:, :2])
    np.testing.assert_array_equal(recipe.apply({"x2": [2.0], "x1": [1.0]}).values, [[1, 2]])
    np.testing.assert_array_equal(recipe.apply({"b": [2.0], "a": [1.0]}).values, [[2, 1]])
    with pytest.raises(InvalidDataError, match="X has 1 features, but dbrm is expecting 2"):
        recipe.apply({"x1": [1.0]})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_values_at_prediction_are_located(recipe, bad):
    new = TRAIN.assign(PeriodDays=[1.0, 2.0, bad, 3.0])
    with pytest.raises(InvalidDataError, match=r"(NaN|inf).*'PeriodDays' has 1, at row 2"):
        recipe.apply(new)


def test_changed_kinds_are_refused(recipe):
    with pytest.raises(InvalidDataError, match=r"'PeriodDays' held numbers.*such as 'long'"):
        recipe.apply(TRAIN.assign(PeriodDays="long"))
    with pytest.raises(InvalidDataError, match=r"'hot' was boolean.*has 2\.5"):
        recipe.apply(TRAIN.assign(hot=2.5))


def test_constant_new_data_are_fine(recipe):
    assert recipe.apply(TRAIN.iloc[[0, 0, 0]]).n_rows == 3
    assert recipe.apply(TRAIN.iloc[[1]]).n_rows == 1


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, np.nan], [2, 3], [4, np.nan]], "X contains NaN.*'x2' has 2, at rows 0, 2"),
        ([[1, 2], [np.inf, 3]], "X contains inf.*'x1' has 1, at row 1"),
        ([[1, 2], [-np.inf, 3]], "X contains inf.*'x1' has 1, at row 1"),
        (np.full((9, 7), np.nan), r"at rows 0, 1, 2, 3, 4, \.\.\.; .*and 2 more columns"),
        ({"site": ["a", None]}, "NaN.*'site' has 1, at row 1"),
        ({"all": [None, None]}, "NaN.*'all' has 2"),
        (np.array([[1, np.longdouble("1e4000")]]), "inf.*'x2' has 1, at row 0"),
    ],
)
def test_bad_training_values_are_located(X, message):
    with pytest.raises(InvalidDataError, match=message):
        learn_recipe(X)


def test_scaling_uses_the_training_rows():
    X = np.random.default_rng(1).normal(5.0, 3.0, size=(40, 3))
    X[:, 2] = X[:, 2] > 5.0
    recipe, table = learn_recipe(X, scale="standard")
    np.testing.assert_allclose(table.values[:, :2].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(table.values[:, :2].std(axis=0, ddof=1), 1.0)
    assert table.binary == (False, False, True)
    new = recipe.apply(X[:5] + 1.0).values
    expected = (X[:5, :2] + 1.0 - X[:, :2].mean(axis=0)) / X[:, :2].std(axis=0, ddof=1)
    np.testing.assert_allclose(new[:, :2], expected)
    np.testing.assert_array_equal(new[:, 2], X[:5, 2] + 1.0)


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e150])
def test_extreme_values_are_scaled_without_warnings(size):
    X = np.array([[1.0], [-2.0], [4.0]]) * size
    _, table = learn_recipe(X, scale="standard")
    np.testing.assert_allclose(table.values[:, 0], [0.0, -1.0, 1.0], atol=1e-12)
    np.testing.assert_array_equal(learn_recipe(X)[1].values, X)


@pytest.mark.parametrize("size", [1.7e308, 5e-324])
def test_what_double_precision_cannot_scale_is_an_error(size):
    X = np.array([[1.0], [-1.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0]]) * size
    with pytest.raises(InvalidDataError, match="'x1' cannot be standardised"):
        learn_recipe(X if size < 1 else X[:2], scale="standard")


def test_missing_values_get_the_median_and_an_indicator():
    X = pd.DataFrame({"a": [1.0, np.nan, 2.0, 7.0], "b": [3.0, 1.0, 4.0, 2.0]})
    recipe, table = learn_recipe(X, missing="indicator")
    assert table.names == ("a", "a_missing", "b")
    np.testing.assert_array_equal(table.column("a"), [1.0, 2.0, 2.0, 7.0])
    np.testing.assert_array_equal(table.column("a_missing"), [0, 1, 0, 0])
    new = recipe.apply({"a": [np.nan, 9.0], "b": [1.0, 2.0]})
    np.testing.assert_array_equal(new.values, [[2.0, 1.0, 1.0], [9.0, 0.0, 2.0]])
    with pytest.warns(DBRMWarning, match="had none in training: 'b'"):
        new = recipe.apply({"a": [1.0], "b": [None]})
    np.testing.assert_array_equal(new.values, [[1.0, 0.0, 2.5]])


def test_missing_categories_and_switches():
    X = {
        "site": ["b", None, "a", "a", "b"],
        "on": [True, False, None, False, False],
        "z": [1.0, 2.0, 5.0, 3.0, 9.0],
    }
    recipe, table = learn_recipe(X, missing="indicator")
    assert table.names == ("site[b]", "site[a]", "site_missing", "on", "on_missing", "z")
    sites = [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(table.values[:, :3], sites)
    np.testing.assert_array_equal(table.values[:, 3:5], [[1, 0], [0, 0], [0, 1], [0, 0], [0, 0]])
    assert [rule.n_missing for rule in recipe.columns] == [1, 1, 0]
    new = recipe.apply({"site": [None], "on": [None], "z": [1.0]})
    np.testing.assert_array_equal(new.values, [[0, 0, 1, 0, 1, 1]])


def test_zeros_and_ones_stay_binary_when_filled():
    _, table = learn_recipe(np.array([[0.0], [1.0], [np.nan]]), missing="indicator")
    assert table.binary == (True, True)


def test_columns_without_any_value():
    with pytest.warns(DBRMWarning, match=r"Constant columns .*: 'a'"):
        recipe, table = learn_recipe({"a": [None, None], "b": [1, 2]}, missing="indicator")
    assert table.names == ("b",)
    assert recipe.apply({"b": [3]}).names == ("b",)


def test_made_names_must_not_clash():
    with pytest.raises(InvalidDataError, match="share a name with another column: 'a_missing'"):
        learn_recipe({"a": [1, None, 3], "a_missing": [1, 0, 0]}, missing="indicator")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("scale", "robust"), ("scale", True), ("missing", "drop"), ("missing", None)],
)
def test_unknown_settings_are_refused(setting, value):
    with pytest.raises(
        InvalidSettingError, match=f"{setting} must be one of .*got {setting}={value!r}"
    ):
        learn_recipe(TRAIN, **{setting: value})


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
texts = st.text(min_size=1, max_size=8)


@st.composite
def frames(draw):
    n = draw(st.integers(2, 6))
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    kinds = {
        "numeric": numbers | st.none(),
        "boolean": st.booleans() | st.none(),
        "text": texts | st.none(),
    }
    return {
        name: pd.Series(
            draw(st.lists(kinds[draw(st.sampled_from(sorted(kinds)))], min_size=n, max_size=n)),
            dtype=object,
        )
        for name in names
    }


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
@given(frame=frames())
def test_recipe_survives_json(frame):
    """Also: replaying either recipe on the training rows gives the training table."""
    recipe, table = learn_recipe(frame, missing="indicator")
    back = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert back == recipe
    replayed = back.apply(frame)
    assert replayed.names == table.names
    np.testing.assert_array_equal(replayed.values, table.values)


@given(columns=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3))
def test_scaling_survives_json_exactly(columns):
    names = tuple(f"x{j}" for j in range(len(columns)))
    recipe = Recipe(
        columns=tuple(ColumnRule(name, "numeric") for name in names),
        names=names,
        scale="standard",
        means=tuple(mean for mean, _ in columns),
        sds=tuple(sd for _, sd in columns),
    )
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_recipe_pickles(recipe):
    assert pickle.loads(pickle.dumps(recipe)) == recipe  # noqa: S301


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": 99}, "Not a recipe .*: format must be .* from 1 to 1; got 99"),
        ({"columns": [{"name": "a"}]}, r"Not a recipe .*: columns\[0\].kind is missing"),
        ({"dropped": [["a"]]}, r"Not a recipe .*: dropped\[0\] must have length 2; got 1"),
        ({"names": ["other"]}, "Not a recipe .*: its parts do not fit together"),
        (
            {"names": [], "columns": [{"name": "a", "kind": "ordered", **BARE}]},
            "its parts do not fit together",
        ),
        (
            {"names": [], "columns": [{"name": "a", "kind": "numeric", **BARE} | {"n_missing": 1}]},
            "do not fit",
        ),
        (
            {
                "names": [],
                "columns": [{"name": "a", "kind": "categorical", **BARE} | {"fill": 1.0}],
            },
            "not fit",
        ),
        (
            {
                "names": [],
                "columns": [{"name": "a", "kind": "categorical", **BARE} | {"pooled": ["z"]}],
            },
            "not fit",
        ),
        ({"means": [0.0]}, "Not a recipe .*: its parts do not fit together"),
        ({"sds": [float("nan")]}, r"Not a recipe .*: sds\[0\] must be a finite number"),
        ({"names": None}, "Not a recipe .*: names must be a list; got None"),
    ],
)
def test_damaged_recipes_are_refused(recipe, damage, message):
    with pytest.raises(InvalidDataError, match=message):
        Recipe.from_dict(recipe.to_dict() | damage)
