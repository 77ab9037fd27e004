"""Tests of levels that are ranges of numbers."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.data.columns import read_column
from dbrm.data.learning import learn_recipe
from dbrm.data.number_ranges import order_number_ranges, sorted_number_ranges


@pytest.mark.parametrize(
    "levels",
    [
        ["25-34", "35-44", "45-54", "75+"],
        ["0-39g/day", "40-79", "80-119", "120+"],
        ["under 5", "5-9", "10-14", "15 and over"],
        ["<18", "18–24", "25 to 64", ">=65"],
        ["$0-$999", "$1,000-$9,999", "$10,000 or more"],
        ["(-inf,2.5]", "(2.5,10]", "(10,20]", "(20, Inf)"],
        ["0", "1-5", "6-10"],
    ],
)
def test_ranges_are_sorted_by_their_numbers(levels):
    mixed = sorted(levels)
    assert sorted_number_ranges(mixed) == levels


@pytest.mark.parametrize(
    "levels",
    [
        ["25-34", "35-44"],
        ["1-2", "2-1", "3-0"],
        ["2020-01", "2020-02", "2020-03"],
        ["1", "2", "3"],
        ["3-10", "5-12", "8-20"],
        ["5-9 kg", "10-14 lb", "15-20 kg"],
        ["25-34", "35-44", "unknown"],
        ["B-52", "F-16", "A-10"],
        ["under 5+", "5-9", "10-14"],
        [],
    ],
)
def test_other_levels_have_no_order(levels):
    assert sorted_number_ranges(levels) is None


def test_codes_follow_the_order_and_missing_stays_missing():
    column = read_column("age", np.array(["5-9", "10-14", None, "15+", "5-9"], dtype=object))
    ordered = order_number_ranges(column)
    assert ordered.kind == "ordered"
    assert ordered.levels == ("5-9", "10-14", "15+")
    assert ordered.values.tolist() == [0, 1, -1, 2, 0]


def test_declared_categories_stay_without_an_order():
    declared = pd.Series(["5-9", "10-14", "15+"], name="age", dtype="category")
    recipe, _ = learn_recipe(pd.DataFrame({"age": declared, "x": [1.0, 2.0, 4.0]}))
    assert recipe.columns[0].kind == "categorical"


def test_a_trend_over_age_groups_is_one_covariate_in_fit_and_prediction():
    rng = np.random.default_rng(1)
    groups = ["5-9", "10-14", "15-19", "20-24", "25+"]
    codes = rng.integers(0, 5, 200)
    X = pd.DataFrame({"age": np.array(groups, dtype=object)[codes], "x": rng.normal(size=200)})
    y = 2.0 * codes + rng.normal(size=200)
    posterior = dbrm.fit(X, y, algorithm="mjmcmc", random_state=1)
    assert posterior.inclusion("age") > 0.99
    assert "Ordered by the numbers in their levels: age." in posterior.summary()
    # New rows may have any of the levels only.
    alone = pd.DataFrame({"age": ["20-24", "5-9"], "x": [0.0, 0.0]})
    low, high = posterior.predict(alone)[::-1]
    assert high - low == pytest.approx(6.0, abs=0.6)
