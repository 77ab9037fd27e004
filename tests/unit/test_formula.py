"""Tests of `dbrm.formula`: a formula says what the table and the response are."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dbrm
from dbrm.errors import DBRMWarning, FormulaError, InvalidDataError, UnknownNameError

QUICK = {"n_chains": 1, "n_populations": 2, "random_state": 1, "transforms": ["tanh"]}


@pytest.fixture
def frame(rng):
    n = 60
    frame = pd.DataFrame(rng.uniform(0.5, 2.0, size=(n, 3)), columns=["x1", "x2", "area m2"])
    frame["site"] = rng.choice(["north", "south", "west"], n)
    frame["plot"] = rng.integers(1, 4, n)
    frame["y"] = 2 * frame["x1"] + (frame["site"] == "west") + 0.1 * rng.normal(size=n)
    return frame


def names_of(posterior):
    return set(posterior.recipe.input_names)


def test_plain_columns_are_the_same_as_a_table(frame):
    posterior = dbrm.fit("y ~ x1 + x2 + site", data=frame, **QUICK)
    same = dbrm.fit(frame[["x1", "x2", "site"]], frame["y"], **QUICK)
    pd.testing.assert_frame_equal(posterior.models, same.models)
    np.testing.assert_array_equal(posterior.predict(frame), same.predict(frame))
    assert posterior.best_model.formula.startswith("y = ")


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, dict])
def test_any_table_will_do(frame, convert):
    formula = "y ~ x1 + x2 + C(site)"
    posterior = dbrm.fit(formula, data=frame, **QUICK)
    other = dbrm.fit(formula, data=convert(frame), **QUICK)
    np.testing.assert_array_equal(other.predict(convert(frame)), posterior.predict(frame))


def test_numbers_become_levels_on_request(frame):
    posterior = dbrm.enumerate_models("y ~ x1 + C(plot)", data=frame)
    assert set(posterior.features["feature"]) == {
        "x1",
        "`plot[1]`",
        "`plot[2]`",
        "`plot[3]`",
    }
    new = frame.assign(plot=[1.0, 2, 3] * 20)
    assert np.all(np.isfinite(posterior.predict(new)))
    with pytest.warns(DBRMWarning, match="'plot' has levels that did not occur in training: '9'"):
        posterior.predict(frame.assign(plot=9))


def test_dates_may_be_levels_on_request(frame):
    frame["day"] = np.tile(["2020-01-01", "2020-01-02", "2020-01-03"], 20)
    with pytest.raises(InvalidDataError, match="'day' holds dates as text"):
        dbrm.enumerate_models("y ~ x1 + day", data=frame)
    posterior = dbrm.enumerate_models("y ~ x1 + C(day)", data=frame)
    assert "`day[2020-01-02]`" in set(posterior.features["feature"])
    assert np.isfinite(posterior.predict(frame)).all()


def test_a_dot_is_everything_else(frame):
    assert names_of(dbrm.enumerate_models("y ~ . - x2", data=frame)) == {
        "x1",
        "area m2",
        "site",
        "plot",
    }


def test_expressions_and_interactions_are_replayed(frame):
    formula = "log(y) ~ x1 + I(x1**2) + x1:x2 + `area m2`:C(site)"
    posterior = dbrm.enumerate_models(formula, data=frame)
    by_hand = pd.DataFrame({"x1": frame["x1"], "I(x1 ** 2)": frame["x1"] ** 2})
    by_hand["x1:x2"] = frame["x1"] * frame["x2"]
    for site in ("north", "south", "west"):
        by_hand[f"area m2:C(site)[{site}]"] = frame["area m2"] * (frame["site"] == site)
    same = dbrm.enumerate_models(by_hand, np.log(frame["y"]))
    assert names_of(posterior) == names_of(same)
    np.testing.assert_allclose(posterior.predict(frame), same.predict(by_hand), rtol=1e-8)
    half = frame.iloc[:7].drop(columns="y")
    np.testing.assert_allclose(posterior.predict(half), posterior.predict(frame)[:7], rtol=1e-12)
    again = pickle.loads(pickle.dumps(posterior))  # noqa: S301 (our own)
    np.testing.assert_array_equal(again.predict(half), posterior.predict(half))


def test_an_offset_is_replayed(frame):
    formula = "y ~ x1 + offset(log(`area m2`)) + offset(x2)"
    posterior = dbrm.enumerate_models(formula, data=frame)
    offset = np.log(frame["area m2"]) + frame["x2"]
    same = dbrm.enumerate_models(frame[["x1"]], frame["y"], offset=offset)
    np.testing.assert_allclose(posterior.predict(frame), same.predict(frame, offset=offset))
    np.testing.assert_allclose(
        posterior.predict(frame, offset=1.0), same.predict(frame, offset=offset) + 1.0
    )
    more = dbrm.enumerate_models(formula, data=frame, offset=np.ones(60))
    np.testing.assert_allclose(more.predict(frame, offset=1.0), posterior.predict(frame))


@pytest.mark.parametrize("formula", ["y ~ x1 + site", "y ~ x1 + C(site)", "y ~ x1:C(site)"])
def test_unseen_levels_are_none_of_those_known(frame, formula):
    posterior = dbrm.enumerate_models(formula, data=frame)
    with pytest.warns(DBRMWarning, match=r"levels that did not occur in training: .*'east'.*none"):
        posterior.predict(frame.assign(site="east"))
    strict = dbrm.enumerate_models(formula, data=frame, unseen="error")
    with pytest.raises(InvalidDataError, match=r"levels that did not occur in training.*'east'"):
        strict.predict(frame.assign(site="east"))


def test_every_combination_of_levels_has_a_column(frame):
    posterior = dbrm.fit("y ~ site:C(plot)", data=frame, **QUICK)
    pairs = {f"site[{a}]:C(plot)[{b}]" for a in ("north", "south", "west") for b in (1, 2, 3)}
    assert names_of(posterior) == pairs
    with pytest.warns(DBRMWarning, match="none of the known"):
        table = posterior.recipe.apply(frame.assign(site="east"))
    np.testing.assert_array_equal(table.values, 0.0)


@pytest.mark.parametrize(
    ("formula", "error", "message"),
    [
        ("y ~ x1 +* 2", FormulaError, "is not a formula: Operator `\\+\\*` is incorrectly used"),
        ("x1 + x2", FormulaError, "one response and one right-hand side"),
        ("y + x2 ~ x1", FormulaError, "one response and one right-hand side"),
        ("y ~ x1 + x3", UnknownNameError, "names 'x3', but the columns of the data are"),
        ("site ~ x1", InvalidDataError, "y holds text"),
        ("y ~ nosuch(x1)", InvalidDataError, "cannot be evaluated on these data"),
    ],
)
def test_bad_formulas_say_what_is_wrong(frame, formula, error, message):
    with pytest.raises(error, match=message):
        dbrm.enumerate_models(formula, data=frame)


def test_formula_and_data_go_together(frame):
    with pytest.raises(InvalidDataError, match="needs data="):
        dbrm.fit("y ~ x1")
    with pytest.raises(InvalidDataError, match="leave y out"):
        dbrm.fit("y ~ x1", frame["y"], data=frame)
    with pytest.raises(InvalidDataError, match="data= belongs to a formula"):
        dbrm.fit(frame[["x1"]], frame["y"], data=frame)


@pytest.mark.parametrize("formula", ["y ~ x1:x2", "y ~ x1 + x2"])
def test_missing_values_do_not_make_a_smaller_table(frame, formula):
    frame.loc[3, "x2"] = np.nan
    with pytest.raises(InvalidDataError):
        dbrm.enumerate_models(formula, data=frame, missing="error")
    posterior = dbrm.enumerate_models(formula, data=frame)
    assert posterior.n_rows == len(frame)
    assert "x2_missing" in " ".join(posterior.recipe.apply(frame).names)
    with pytest.raises(InvalidDataError, match="y "):
        dbrm.enumerate_models("y ~ x1", data=frame.assign(y=np.nan))


def test_plain_formulas_are_saved_and_code_is_not(frame, tmp_path):
    posterior = dbrm.enumerate_models("y ~ x1 + C(plot)", data=frame)
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    np.testing.assert_array_equal(loaded.predict(frame), posterior.predict(frame))
    with pytest.raises(FormulaError, match="code, which is never saved"):
        dbrm.enumerate_models("y ~ x1 + I(x1**2)", data=frame).save(tmp_path / "code.dbrm")


@pytest.mark.parametrize(
    "term",
    [
        "(x1 + x2 + site)**50",
        "(x1 + x2)^99999999999999999999",
        "x1**1000000000",
        "((x1 + x2 + site)**6)**6",
        "*".join(f"I(x1 + {j})" for j in range(40)),
    ],
)
def test_absurd_powers_are_refused_before_anything_is_multiplied(frame, term):
    with pytest.raises(FormulaError, match="has too many products: its operator"):
        dbrm.fit(f"y ~ {term}", data=frame, **QUICK)


def test_usual_powers_and_long_sums_are_no_blow_up(frame):
    """Negative control: the count of products lets honest formulas through."""
    terms = " + ".join(f"I(x1 + {j})" for j in range(1500))
    from dbrm.data.intake import read_table
    from dbrm.formula import _parse

    assert len(_parse(f"y ~ {terms}", read_table(frame))[1]) == 1500
    assert len(_parse("y ~ (x1 + x2 + site + plot)**3", read_table(frame))[1]) == 14


@pytest.mark.parametrize(
    ("term", "error", "message"),
    [
        ("log()", InvalidDataError, r"cannot be evaluated .*`log\(\)`"),
        ("C()", InvalidDataError, r"cannot be evaluated .*`C\(\)`"),
        ("C(plot, 1)", InvalidDataError, r"cannot be evaluated .* C\(plot, 1\): IndexError"),
        ("C(site, contr.custom([1]))", InvalidDataError, "cannot be evaluated .*IndexError"),
        ("I(x1 x2)", FormulaError, "is not a formula: invalid syntax"),
        ("{x1 +}", FormulaError, "is not a formula: invalid syntax"),
        ("offset(x1 x2)", FormulaError, "is not a formula: invalid syntax"),
    ],
)
def test_python_that_fails_gives_our_error(frame, term, error, message):
    with pytest.raises(error, match=message):
        dbrm.fit(f"y ~ {term}", data=frame, **QUICK)


def test_a_formula_without_covariates_is_refused():
    data = pd.DataFrame({"y": np.arange(20.0), "x": np.arange(20.0) ** 2})
    with pytest.raises(FormulaError, match=r"'y ~ 1' has no covariates.*'y ~ \.'"):
        dbrm.fit("y ~ 1", data=data)
