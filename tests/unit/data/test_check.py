"""Tests of the data check: each finding is made, and clean data are passed in silence."""

import warnings
from time import process_time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import datasets

import dbrm
from dbrm.data import check_table, read_table
from dbrm.errors import DataCheckWarning, InvalidDataError

N_ROWS = 60


def clean():
    draw = np.random.default_rng(2)
    X = pd.DataFrame(draw.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
    X["site"] = draw.choice(["north", "south"], N_ROWS)
    y = X["a"] - X["b"] + draw.normal(size=N_ROWS)
    return X, y


def findings(column, y=None, name="q"):
    X, usual = clean()
    X[name] = column
    found = check_table(read_table(X), usual if y is None else y)
    return {finding.column: finding for finding in found}


DRAW = np.random.default_rng(4)
SUSPECT = {
    "identifier": [
        ("q", np.arange(N_ROWS)),
        ("customer_id", DRAW.permutation(9000)[:N_ROWS]),
        ("Unnamed: 0", np.arange(1, N_ROWS + 1)),
    ],
    "dates": [
        ("q", pd.date_range("2024-01-01", periods=N_ROWS).strftime("%d %b %Y")),
        ("q", pd.date_range("2024-01-01", periods=N_ROWS).strftime("%Y%m%d").astype(int)),
        ("q", [*pd.date_range("2024-01-01", periods=N_ROWS - 1).strftime("%d.%m.%Y"), "later"]),
    ],
    "nearly constant": [("q", np.r_[np.zeros(N_ROWS - 2), 3.0, 4.0])],
    "code of missing values": [("q", np.r_[[-99.0] * 5, DRAW.uniform(0, 9, N_ROWS - 5)])],
    "numbers as text": [
        ("q", ["1,5", "2,25", "3,0"] * 20),
        ("q", [f"{value:.1f} kg" for value in DRAW.uniform(0, 9, N_ROWS)]),
        ("q", [str(value) for value in DRAW.integers(1, 40, N_ROWS)]),
    ],
    "numbers and text": [("q", ["1.5", "2.5", "3.5", "4.5", "5.5", "unclear value"] * 10)],
    "many levels": [("q", [f"level {j % 23}" for j in range(N_ROWS)])],
    "spellings": [("q", ["Yes", "yes", "no ", "no"] * 15)],
    "scales": [("q", 1e13 * DRAW.uniform(size=N_ROWS))],
}


@pytest.mark.parametrize(
    ("kind", "name", "column"),
    [(kind, *example) for kind, examples in SUSPECT.items() for example in examples],
)
def test_what_looks_wrong_is_found(kind, name, column):
    found = findings(column, name=name)
    assert {column: finding.kind for column, finding in found.items()} == {name: kind}
    assert repr(name) in found[name].message
    assert found[name].advice.endswith(".")


ORDINARY = {
    "ranks": DRAW.permutation(N_ROWS) + 1,
    "years": 1960 + np.arange(N_ROWS),
    "few levels as numbers": [str(j % 4) for j in range(N_ROWS)],
    "postal codes": [f"0{1000 + j % 12}" for j in range(N_ROWS)],
    "codes of groups": [f"{1 + j % 8}" if j % 9 else "3A" for j in range(N_ROWS)],
    "rare zeros and ones": (np.arange(N_ROWS) < 5).astype(float),
    "large counts": DRAW.poisson(3000.0, N_ROWS),
    "a mark within its range": DRAW.integers(900, 1100, N_ROWS),
    "missing values": np.where(np.arange(N_ROWS) < 9, np.nan, DRAW.normal(size=N_ROWS)),
    "booleans": DRAW.uniform(size=N_ROWS) < 0.5,
}


@pytest.mark.parametrize("what", ORDINARY)
def test_ordinary_columns_are_passed_in_silence(what):
    assert not findings(ORDINARY[what])


def test_time_may_count_the_rows():
    assert not findings(np.arange(N_ROWS), name="week")


@pytest.mark.parametrize("make", [lambda y: 3 * y + 1, np.exp, lambda y: -(y**3)])
def test_a_column_made_from_the_response_is_questioned(make):
    _, y = clean()
    found = findings(make(y))
    assert found["q"].kind == "leakage"
    assert "or made from it?" in found["q"].advice


def test_levels_and_thresholds_that_give_the_response_are_questioned():
    y = np.tile([0.0, 1.0, 1.0], N_ROWS // 3)
    assert findings(np.where(y > 0, "paid", "open"), y)["q"].kind == "leakage"
    separated = y + DRAW.uniform(0, 0.9, N_ROWS)
    assert "apart in every row" in findings(separated, y)["q"].seen


def test_a_noisy_copy_is_no_leak():
    _, y = clean()
    assert not findings(y + 0.1 * DRAW.normal(size=N_ROWS))


def test_a_single_covariate_may_be_a_law():
    x = np.linspace(1.0, 2.0, 50)
    assert not check_table(read_table({"x": x}), x**2)


@pytest.mark.parametrize(
    ("y", "advice"),
    [
        (np.tile([0, 1], 30), "family='binomial'"),
        (np.tile([True, False], 30), "family='binomial'"),
        (np.tile([1.0, 2.0], 30), "y == 2 with family='binomial'"),
        (np.random.default_rng(1).poisson(2.0, N_ROWS), "family='poisson'"),
        (np.random.default_rng(1).poisson(2.0, N_ROWS) * 4, "family='negative_binomial'"),
        (np.random.default_rng(1).integers(1, 6, N_ROWS), "family='ordinal'"),
    ],
)
def test_a_response_of_another_family_is_told(y, advice):
    X, _ = clean()
    (found,) = check_table(read_table(X), y)
    assert advice in found.advice
    assert not check_table(read_table(X), y, family="binomial")


@pytest.mark.parametrize("y", [np.arange(5.0, 65.0), 25 + DRAW.poisson(90.0, N_ROWS)])
def test_whole_numbers_may_be_measured(y):
    X, _ = clean()
    assert not check_table(read_table(X), y)


def test_few_rows_are_told():
    (found,) = check_table(read_table({"a": [1.0, 2.0, 4.0], "b": [1.0, 0.0, 5.0]}))
    assert found.message.startswith("The table has only 3 rows. ")


def test_the_tables_of_scikit_learn_are_clean():
    for load in (datasets.load_diabetes, datasets.load_wine, datasets.load_breast_cancer):
        table = load(as_frame=True)
        family = "gaussian" if load is datasets.load_diabetes else "binomial"
        assert not check_table(read_table(table.data), table.target, family=family)
    planets = dbrm.datasets.load_exoplanets()
    axis = planets.pop("SemiMajorAxisAU")
    assert not check_table(read_table(planets), axis)


def test_many_rows_take_little_time():
    draw = np.random.default_rng(1)
    X = pd.DataFrame(draw.normal(size=(100_000, 50)).astype(np.float64))
    X.columns = [f"c{j}" for j in range(50)]
    X["c9"] = draw.choice(["a", "b"], len(X))
    start = process_time()
    assert not check_table(read_table(X), draw.normal(size=len(X)))
    assert process_time() - start < 0.8


def test_a_fit_warns_once_for_each_finding():
    X, y = clean()
    quick = {"n_chains": 1, "n_populations": 1, "transforms": ["sin"], "sweep": 0}
    X["id"] = np.arange(N_ROWS)
    X["when"] = ["1,5", "2,5"] * 30
    with pytest.warns(DataCheckWarning) as told:
        dbrm.fit(X, y > 0, **quick)
    kinds = sorted(str(warning.message).partition(" looks")[0][:20] for warning in told)
    assert kinds == ["Column 'id'", "Column 'when' holds ", "The response holds T"]
    assert all("check=False" in str(warning.message) for warning in told)
    assert {warning.filename for warning in told} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dbrm.fit(X, y > 0, check=False, **quick)
        dbrm.fit(*clean(), **quick)


def test_a_formula_is_checked_in_its_own_columns():
    X, y = clean()
    X["id"], X["n"] = np.arange(N_ROWS), (y > 0).astype(float)
    quick = {"n_chains": 1, "n_populations": 1, "transforms": ["sin"], "sweep": 0}
    with pytest.warns(DataCheckWarning, match="only 0 and 1") as told:
        dbrm.fit("n ~ a + b", data=X, **quick)
    assert len(told) == 1


def test_many_columns_are_told_in_one_warning():
    X = pd.DataFrame(DRAW.normal(size=(N_ROWS, 8))).add_prefix("c")
    for j in range(5):
        X[f"few{j}"] = (np.arange(N_ROWS) == j).astype(float)
    with pytest.warns(DataCheckWarning) as told:
        dbrm.data.warn_findings(check_table(read_table(X)))
    assert len(told) == 1
    assert "The same holds for 4 more columns: 'few1', 'few2', 'few3'" in str(told[0].message)


def test_the_table_of_findings(tmp_path):
    X, y = clean()
    X = X.assign(id=range(N_ROWS), same=1.0, again=2 * X["a"], y=y)
    X["when"] = pd.date_range("2024-01-01", periods=N_ROWS)
    table = dbrm.check(X, "y")
    assert table["column"].tolist() == ["id", "when", "same", "again"]
    assert table["finding"].tolist() == ["identifier", "refused", "left out", "left out"]
    assert dbrm.check(X, "y", ignore=["id", "when", "same", "again"]).empty
    X.drop(columns="when").to_csv(tmp_path / "t.csv", index=False)
    assert dbrm.check(tmp_path / "t.csv", "y")["column"].tolist() == ["id", "same", "again"]
    with pytest.raises(InvalidDataError, match=r"no column 'z'.*Columns: a, b, c"):
        dbrm.check(X, "z")


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, dict])
def test_other_tables_and_samples_of_their_rows(convert):
    draw = np.random.default_rng(1)
    X = pd.DataFrame({"a": draw.normal(size=12_000), "n": np.arange(12_000)})
    X["text"] = draw.choice(["1,5", "2,5", "3,5"], len(X))
    found = check_table(read_table(convert(X)), draw.normal(size=len(X)))
    kinds = [(finding.column, finding.kind) for finding in found]
    assert kinds == [("n", "identifier"), ("text", "numbers as text")]


def test_a_file_that_is_not_tall_is_checked(tmp_path):
    X, y = clean()
    X.assign(y=y, id=range(N_ROWS)).to_parquet(tmp_path / "t.parquet")
    quick = {"n_chains": 1, "n_populations": 1, "transforms": ["sin"], "sweep": 0}
    with pytest.warns(DataCheckWarning, match="'id' looks like an identifier"):
        dbrm.fit(tmp_path / "t.parquet", "y", **quick)
