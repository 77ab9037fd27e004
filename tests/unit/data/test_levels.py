"""Tests of `dbrm.data.levels`: which columns the levels of a category lead to."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dbrm.data import Recipe, learn_recipe
from dbrm.errors import DBRMWarning, InvalidDataError


def sites(**rows):
    """A table with so many rows of each level, and a number that makes rows different."""
    levels = [level for level, n in rows.items() for _ in range(n)]
    return pd.DataFrame({"site": levels, "x": np.arange(len(levels)) ** 2.0})


def test_every_level_has_a_column():
    _, table = learn_recipe(sites(a=3, b=5, c=4))
    assert table.names == ("site[b]", "site[c]", "site[a]", "x")
    np.testing.assert_array_equal(table.values[:, :3].sum(axis=1), 1.0)


@pytest.mark.parametrize(("rows", "kept"), [({"f": 4, "m": 3}, "m"), ({"f": 3, "m": 4}, "f")])
def test_of_two_levels_the_one_with_fewer_rows_has_a_column(rows, kept):
    recipe, table = learn_recipe(sites(**rows))
    assert table.names == (f"site[{kept}]", "x")
    assert not recipe.dropped


def test_two_levels_and_missing_ones_are_three():
    X = sites(a=4, b=3)
    X.loc[0, "site"] = None
    _, table = learn_recipe(X, missing="indicator")
    assert table.names == ("site[a]", "site[b]", "site_missing", "x")


def test_columns_do_not_depend_on_names_or_order_of_levels():
    """Equal numbers of rows are told apart by where levels occur first."""
    codes = np.random.default_rng(3).integers(0, 6, 120)
    tables = []
    for names in ("abcdef", "zyxwvu", "dacfbe"):
        levels = np.array(list(names))[codes]
        order = sorted(set(names), key=lambda level: hash((level, names)))
        tables.append(learn_recipe({"site": levels})[1].values)
        tables.append(learn_recipe({"site": pd.Series(pd.Categorical(levels, order))})[1].values)
    for values in tables[1:]:
        np.testing.assert_array_equal(values, tables[0])


def test_whole_factors_leave_out_the_most_frequent_level():
    recipe, table = learn_recipe(sites(a=3, b=5, c=4), whole_factors=True)
    assert table.names == ("site[c]", "site[a]", "x")
    assert recipe.factors == [("site[c]", "site[a]")]
    X = sites(a=3, b=5, c=4)
    X.loc[0, "site"] = None
    recipe, _ = learn_recipe(X, whole_factors=True, missing="indicator")
    assert recipe.factors == [("site[c]", "site[a]", "site_missing")]


def test_rare_levels_share_a_column():
    X = sites(a=60, b=40, c=4, d=3, e=1)
    recipe, table = learn_recipe(X)
    assert table.names == ("site[a]", "site[b]", "site[3 rare levels]", "x")
    assert recipe.columns[0].pooled == ("c", "d", "e")
    np.testing.assert_array_equal(table.column("site[3 rare levels]"), X["site"] > "b")
    back = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    np.testing.assert_array_equal(back.apply(X).values, table.values)


def test_one_rare_level_keeps_its_name():
    _, table = learn_recipe(sites(a=60, b=40, c=4))
    assert table.names == ("site[a]", "site[b]", "site[c]", "x")


def test_in_a_short_table_few_rows_are_not_rare():
    _, table = learn_recipe(sites(a=6, b=2, c=2))
    assert table.names == ("site[a]", "site[b]", "site[c]", "x")


def test_hundreds_of_levels_do_not_explode():
    X = sites(**{f"s{j}": 7 + j % 3 for j in range(300)})
    recipe, table = learn_recipe(X)
    assert table.n_columns == 52
    assert table.names[50] == "site[250 rare levels]"
    assert len(recipe.columns[0].levels) == 300


def test_an_identifier_is_left_out_with_advice():
    X = {"id": [f"id{j}" for j in range(200)], "x": np.arange(200.0)}
    with pytest.warns(DBRMWarning, match=r"'id' \(200 levels, all rare\).*RandomIntercept"):
        recipe, table = learn_recipe(X)
    assert table.names == ("x",)
    assert recipe.dropped == (("id", "200 levels, all rare"),)
    assert recipe.apply({"x": [1.0]}).n_rows == 1


def test_whether_an_identifier_is_missing_may_matter():
    X = {"cabin": [f"c{j}" if j % 3 else None for j in range(200)], "x": np.arange(200.0)}
    with pytest.warns(DBRMWarning, match="'cabin'"):
        _, table = learn_recipe(X, missing="indicator")
    assert table.names == ("cabin_missing", "x")


def test_a_single_level_is_constant():
    with pytest.warns(DBRMWarning, match="Constant columns are left out: 'site'"):
        learn_recipe(sites(a=9))


def test_unseen_levels_are_none_of_those_known():
    X = sites(a=3, b=5, c=4)
    recipe, _ = learn_recipe(X, unseen="none-of-these", missing="indicator")
    new = pd.DataFrame({"site": ["b", "z", "y", None], "x": 0.0})
    with pytest.warns(DBRMWarning) as told:
        table = recipe.apply(new)
    np.testing.assert_array_equal(table.values[:, 0], [1, 0, 0, 0])
    np.testing.assert_array_equal(table.values[1:], 0.0)
    messages = sorted(str(warning.message) for warning in told)
    assert "'site' has levels that did not occur in training: 'y', 'z'. They count" in messages[0]
    assert "Missing values in columns that had none in training: 'site'" in messages[1]
    assert len(messages) == 2


def test_categories_that_are_declared_but_do_not_occur_are_not_unseen():
    recipe, _ = learn_recipe(sites(a=3, b=5, c=4), unseen="error")
    new = pd.DataFrame({"site": pd.Categorical(["a", "b"], ["a", "b", "z"]), "x": 0.0})
    assert recipe.apply(new).n_rows == 2


def test_unseen_is_not_missing():
    X = sites(a=3, b=5, c=4)
    X.loc[0, "site"] = None
    recipe, _ = learn_recipe(X, unseen="none-of-these", missing="indicator")
    with pytest.warns(DBRMWarning, match="did not occur in training: 'z'"):
        table = recipe.apply({"site": ["z", None], "x": [0.0, 0.0]})
    np.testing.assert_array_equal(table.column("site_missing"), [0, 1])


def test_recipes_from_before_levels_had_columns_of_their_own():
    """The first level was the reference: zeros in all columns mean it, and nothing unseen."""
    recipe, _ = learn_recipe(sites(a=3, b=5, c=4), unseen="none-of-these")
    old = recipe.to_dict() | {"names": ["site[b]", "site[c]", "x"]}
    del old["unseen"]
    for rule in old["columns"]:
        del rule["pooled"], rule["n_missing"]
    back = Recipe.from_dict(json.loads(json.dumps(old)))
    table = back.apply({"site": ["a", "b", "c"], "x": [0.0, 0.0, 0.0]})
    np.testing.assert_array_equal(table.values[:, :2], [[0, 0], [1, 0], [0, 1]])
    with pytest.raises(InvalidDataError, match=r"'z'\. Known levels are 'a', 'b', 'c'"):
        back.apply({"site": ["z"], "x": [0.0]})


GRADES = ["low", "mid", "high", "top"]


def graded(levels):
    return pd.DataFrame({"grade": pd.Categorical(levels, GRADES, ordered=True)})


def test_an_ordered_category_counts_from_one_and_has_steps():
    recipe, table = learn_recipe(graded(["mid", "top", "low", "mid"]))
    assert table.names == ("grade", "grade[>=mid]", "grade[>=top]")
    np.testing.assert_array_equal(table.values, [[2, 1, 0], [4, 1, 1], [1, 0, 0], [2, 1, 0]])
    new = recipe.apply(pl.DataFrame({"grade": ["high", "top"]}))
    np.testing.assert_array_equal(new.values, [[3, 1, 0], [4, 1, 1]])


def test_an_ordered_category_of_two_levels_is_one_step():
    _, table = learn_recipe(graded(["mid", "top", "mid"]))
    assert table.names == ("grade[>=top]",)


def test_a_missing_or_unseen_level_of_an_order_is_the_median():
    recipe, table = learn_recipe(
        graded(["mid", "top", "low", "mid", None]), missing="indicator", unseen="none-of-these"
    )
    assert table.names == ("grade", "grade[>=mid]", "grade[>=top]", "grade_missing")
    np.testing.assert_array_equal(table.values[4], [2, 1, 0, 1])
    with pytest.warns(DBRMWarning, match="'best'. They count as level 'mid', the median"):
        new = recipe.apply({"grade": ["best"]})
    np.testing.assert_array_equal(new.values, [[2, 1, 0, 0]])


def test_steps_have_enough_rows_on_either_side():
    levels = ["low"] * 2 + ["mid"] * 60 + ["high"] * 60 + ["top"] * 3
    recipe, table = learn_recipe(graded(levels))
    assert table.names == ("grade", "grade[>=high]")
    assert learn_recipe(graded(levels), whole_factors=True)[1].names == (
        "grade[>=mid]",
        "grade[>=high]",
        "grade[>=top]",
    )
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


@pytest.mark.parametrize(
    "text",
    ["2020-01-%02d", "%02d/05/2021", "%d.3.99", "2020-01-%02d 10:30", "2020-01-%02dT10:30:00Z"],
)
def test_dates_as_text_are_refused_with_advice(text):
    days = [text % (1 + j % 28) for j in range(40)]
    with pytest.raises(InvalidDataError, match=r"'day' holds dates as text.*t\.dt\.year.*category"):
        learn_recipe({"day": days})
    _, table = learn_recipe({"day": pd.Series(days, dtype="category")})
    assert table.n_columns == 13
    assert table.names[-1] == "day[16 rare levels]"


def test_other_text_is_not_a_date():
    """Negative control: numbers with dots, and one word among dates."""
    for levels in (["1.2.3-b", "1.2.4-b", "1.2.5-b"], ["2020-01-01", "2020-01-02", "never"]):
        assert learn_recipe({"v": levels * 2})[1].n_columns == 3


def test_a_weight_of_two_is_the_row_twice():
    """In counts of levels and in medians."""
    draw = np.random.default_rng(6)
    X = pd.DataFrame({"site": draw.choice(list("abcdef"), 90), "x": draw.normal(size=90)})
    X["on"] = draw.random(90) < 0.5
    X["grade"] = pd.Categorical(draw.choice(GRADES, 90), GRADES, ordered=True)
    X = X.mask(draw.random(X.shape) < 0.1).astype({"grade": X["grade"].dtype})
    weights = draw.integers(1, 9, 90)
    options = {"missing": "indicator", "unseen": "none-of-these"}
    here, _ = learn_recipe(X, weights=weights, **options)
    there, _ = learn_recipe(X.loc[X.index.repeat(weights)], **options)
    assert here == there
    plain, _ = learn_recipe(X, weights=np.ones(90), **options)
    assert plain == learn_recipe(X, **options)[0]
    assert plain.columns[1].fill == pytest.approx(X["x"].median(), rel=1e-15)
    assert plain != here
