"""Every export of a fitted model says what the model predicts, on new rows, to 1e-10."""

import importlib.util
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.special

import dbrm
from dbrm.errors import ExportError, InvalidSettingError
from dbrm.features import TRANSFORMS, Transform, evaluate, parse_feature, transform_names

sympy = pytest.importorskip("sympy")
_spec = importlib.util.spec_from_file_location("latex", Path(__file__).with_name("latex_reader.py"))
_latex = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_latex)

ODD = ["char_freq_[", "a b", "sin", 'say "x"', "50%_{a}"]
# One spelling of each family of transforms, with a knot, and all without.
KNOTTED = [
    "step[0.3]",
    "step_down[-0.2]",
    "hinge[0.5]",
    "hinge_down[0.5]",
    "power[-1]",
    "power[2/3]",
]
NO_SQL = ("erf", "gelu")


def rows(seed, n=40):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(draw.normal(size=(n, len(ODD))) * 1.5, columns=ODD)


def fitted(features, family="gaussian", link=None, **options):
    """The model of exactly these features."""
    X, draw = rows(1, 80), np.random.default_rng(2)
    mean = 0.3 * np.tanh(X["a b"].to_numpy())
    y = {
        "gaussian": mean + draw.normal(size=80),
        "binomial": (draw.random(80) < 0.5 + 0.3 * mean).astype(float),
        "poisson": draw.poisson(np.exp(mean)).astype(float),
        "gamma": draw.gamma(3.0, np.exp(mean) / 3.0),
    }[family]
    settings = {"always": features, "algorithm": "enumerate", "penalty": "uniform"}
    posterior = dbrm.fit(X, y, family=family, link=link, **settings, **options)
    return posterior._fit(np.arange(0), np.zeros(0, dtype=bool), 1.0)


def by_python(model, table):
    scope = {}
    exec(model.to_python(), scope)
    return np.array([scope["predict"](row) for row in table.to_dict("records")])


def by_numpy(model, table):
    scope = {"np": np, "scipy": scipy, "table": table}
    return np.asarray(eval(model.to_numpy(), scope)) * np.ones(len(table))  # noqa: S307


def by_sql(model, table):
    connection = sqlite3.connect(":memory:")
    for name, function in {
        "exp": np.exp,
        "ln": np.log,
        "sqrt": np.sqrt,
        "sin": np.sin,
        "cos": np.cos,
        "atan": np.arctan,
    }.items():
        connection.create_function(name, 1, lambda x, f=function: float(f(x)))
    connection.create_function("power", 2, lambda x, r: float(x**r))
    table.to_sql("data", connection, index=False)
    found = connection.execute(f"SELECT {model.to_sql()} FROM data").fetchall()
    return np.array([row[0] for row in found], dtype=float)


def by_sympy(model, table):
    # A symbol may be called like a function; lambdify would take one for the other.
    arguments = {sympy.Symbol(name): sympy.Dummy() for name in table.columns}
    expression = model.to_sympy(scale="response").xreplace(arguments)
    function = sympy.lambdify(list(arguments.values()), expression, "scipy")
    return np.asarray(function(*(table[name].to_numpy() for name in table.columns)))


def by_text(model, table):
    inner = parse_feature(f"tanh({model.to_text()})", ODD)
    columns = {child.text: evaluate([child], table)[0][:, 0] for child in inner.children}
    return inner.argument(columns)


WAYS = {"python": by_python, "numpy": by_numpy, "sql": by_sql, "sympy": by_sympy}


def agree(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*TRANSFORMS, *KNOTTED])
def test_every_transform_exports(way, name):
    model = fitted([f"{name}(`a b`)", f"{name}(0.3 + 0.5*`sin` - 0.2*`char_freq_[`)"])
    if way == "sql" and name in NO_SQL:
        with pytest.raises(ExportError, match=r"There is no erf\(\) in SQL"):
            model.to_sql()
        return
    table = rows(3)
    agree(WAYS[way](model, table), model.predict(table))


def test_no_transform_is_forgotten():
    named = {name.partition("[")[0] for name in (*TRANSFORMS, *KNOTTED)}
    assert {name.partition("[")[0] for name in transform_names()} <= named


@pytest.mark.parametrize("name", [*TRANSFORMS, *KNOTTED])
def test_latex_reads_back(name):
    features = [
        f"{name}(`a b`)*`sin`*`sin`",
        f"{name}(0.3 + 0.5*`sin` - 2e-7*`char_freq_[`)",
        "`50%_{a}`",
    ]
    model, table = fitted(features), rows(4)
    agree(_latex.read_latex(model.to_latex(digits=17), table), model.predict(table))


def test_the_latex_reader_can_tell_a_difference():
    """Negative control."""
    model, table = fitted(["sin(`a b`)"]), rows(4)
    wrong = model.to_latex(digits=17).replace("sin", "cos")
    with pytest.raises(AssertionError, match="Not equal"):
        agree(_latex.read_latex(wrong, table), model.predict(table))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("family", "link"),
    [("binomial", "logit"), ("binomial", "cloglog"), ("poisson", "log"), ("gamma", "inverse")],
)
def test_every_link_exports(way, family, link):
    model = fitted(["tanh(`a b`)"], family, link)
    table = rows(5)
    agree(WAYS[way](model, table), model.predict(table))


def test_probit_exports_but_not_to_sql():
    model, table = fitted(["sin(`a b`)"], "binomial", "probit"), rows(5)
    agree(by_python(model, table), model.predict(table))
    agree(by_numpy(model, table), model.predict(table))
    with pytest.raises(ExportError, match=r"no erf\(\) in SQL"):
        model.to_sql()
    assert "erf" not in model.to_sql(scale="link")


def test_text_reads_back():
    model, table = (
        fitted(["sin(`a b`)*`sin`", "troot(`char_freq_[`)", 'tanh(0.1 + 0.7*`say "x"`)']),
        rows(6),
    )
    agree(by_text(model, table), model.predict(table))


def test_predict_is_what_the_posterior_predicts_from_one_model():
    X, y = rows(1, 60), np.random.default_rng(0).normal(size=60)
    posterior = dbrm.fit(X, y, always=ODD, algorithm="enumerate", max_model_size=0)
    agree(posterior.best_model.predict(rows(7)), posterior.predict(rows(7)))


@pytest.mark.parametrize("way", ["python", "numpy", "sql"])
def test_raw_columns_are_scaled_filled_and_coded(way):
    """Factors, booleans, missing values and scaling, on the user's own columns."""
    draw = np.random.default_rng(8)
    X = pd.DataFrame(
        {
            "x y": draw.normal(5.0, 2.0, 90),
            "it's": draw.choice(["north", "o'hara", "east"], 90),
            "flag": draw.random(90) < 0.4,
        }
    )
    X.loc[::7, "x y"] = np.nan
    y = draw.normal(size=90) + X["flag"]
    names = ["`x y`", "`x y_missing`", "`it's[north]`", "`it's[o'hara]`", "flag"]
    posterior = dbrm.fit(
        X, y, always=names, algorithm="enumerate", missing="indicator", scale="standard"
    )
    model = posterior._fit(np.arange(0), np.zeros(0, dtype=bool), 1.0)
    agree(WAYS[way](model, X.head(30)), model.predict(X.head(30)))


@pytest.mark.parametrize("way", ["python", "numpy", "sql"])
def test_levels_are_pooled_ordered_missing_or_unseen(way):
    draw = np.random.default_rng(8)
    X = pd.DataFrame({"site": draw.choice(["north", "o'hara"], 120)}, dtype=object)
    X.loc[3:6, "site"] = ["w1", "w2", "w1", None]
    grades = ["low", "mid", "top"]
    X["grade"] = pd.Categorical(draw.choice(grades, 120), grades, ordered=True)
    X.loc[[7, 8], "grade"] = None
    made = ["site[north]", "site[2 rare levels]", "site_missing"]
    made += ["grade", "grade[>=top]", "grade_missing"]
    posterior = dbrm.fit(
        X, draw.normal(size=120), always=[f"`{name}`" for name in made], algorithm="enumerate"
    )
    model = posterior._fit(np.arange(0), np.zeros(0, dtype=bool), 1.0)
    new = X.head(20).astype(object).where(X.head(20).notna(), None)
    new.loc[0, "site"] = "elsewhere"
    with pytest.warns(dbrm.errors.DBRMWarning, match="'elsewhere'"):
        expected = model.predict(new)
    agree(WAYS[way](model, new), expected)


def test_sympy_of_scaled_data_is_in_the_users_units():
    model = fitted(["tanh(`a b`)", "`sin`"], scale="standard")
    agree(by_sympy(model, rows(9)), model.predict(rows(9)))


def test_a_formulas_own_columns_cannot_be_written():
    draw = np.random.default_rng(3)
    data = pd.DataFrame({"a": draw.random(50) + 1, "y": draw.normal(size=50)})
    posterior = dbrm.fit("y ~ log(a)", data=data, always=["`log(a)`"], algorithm="enumerate")
    model = posterior._fit(np.arange(0), np.zeros(0, dtype=bool), 1.0)
    with pytest.raises(ExportError, match=r"uses 'log\(a\)', which the formula computes"):
        model.to_sql()


def test_own_transforms_need_an_expression():
    plain = Transform("mine", lambda x: np.exp(-np.abs(x)))
    with pytest.raises(ExportError, match="'mine' has no expression"):
        fitted(["mine(`a b`)"], transforms=[plain]).to_sql()
    given = Transform("mine2", lambda x: np.exp(-np.abs(x)), expression="exp(-abs(x))")
    model = fitted(["mine2(`a b`)"], transforms=[given])
    agree(by_sql(model, rows(3)), model.predict(rows(3)))


@pytest.mark.parametrize(
    "expression", ["__import__('os')", "x.real", "[x]", "y + 1", "x @ x", "open(x)"]
)
def test_expressions_are_a_small_language(expression):
    strange = Transform("strange", lambda x: x * 2.0, expression=expression)
    with pytest.raises(ExportError):
        fitted(["strange(`a b`)"], transforms=[strange]).to_numpy()


def test_arguments_are_checked():
    model = fitted(["`a b`"])
    with pytest.raises(InvalidSettingError, match="scale must be 'response' or 'link'"):
        model.to_sql(scale="log")
    with pytest.raises(InvalidSettingError, match="name must be a Python identifier"):
        model.to_python("a b")


LEVELS = ["plain", "o'hara", "C:\\temp", "end\\", "\\' OR 1=1 --", "<0>\\<1>"]


def as_escaping_database_reads_it(sql):
    """Literals as a database reads them to which a backslash is an escape, in standard SQL."""
    out, inside, k = [], False, 0
    while k < len(sql):
        character = sql[k]
        if inside and character == "\\":
            k += 1
            out.append("''" if sql[k] == "'" else sql[k])
        elif inside and sql[k : k + 2] == "''":
            k += 1
            out.append("''")
        else:
            inside ^= character == "'"
            out.append(character)
        k += 1
    assert not inside, "a text has no end"
    return "".join(out)


@pytest.mark.parametrize("database", [str, as_escaping_database_reads_it])
def test_sql_text_survives_databases_where_a_backslash_is_an_escape(database):
    draw = np.random.default_rng(8)
    X = pd.DataFrame({"level": draw.permutation(LEVELS * 15)})
    y = X["level"].map({level: 3.0 * j for j, level in enumerate(LEVELS)}) + draw.normal(size=90)
    model = dbrm.fit(X, y, algorithm="enumerate", penalty=0.1).best_model
    assert len(model.features) == len(LEVELS) - 1
    connection = sqlite3.connect(":memory:")
    X.to_sql("data", connection, index=False)
    found = connection.execute(f"SELECT {database(model.to_sql())} FROM data").fetchall()
    agree(np.array([row[0] for row in found]), model.predict(X))


def test_a_column_name_with_a_backslash_is_not_written_in_sql():
    draw = np.random.default_rng(8)
    X = pd.DataFrame({"a\\b": draw.normal(size=40)})
    model = dbrm.fit(X, X["a\\b"] + 0.1 * draw.normal(size=40), algorithm="enumerate").best_model
    with pytest.raises(ExportError, match=r"column .*has a backslash.*Rename the column"):
        model.to_sql()
    agree(by_python(model, X), model.predict(X))
