"""Tests of `dbrm.features.evaluation`, `tables` and `knots`."""

import numpy as np
import pandas as pd
import pytest

from dbrm.errors import InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.features import (
    Transform,
    column_status,
    covariate,
    evaluate,
    fit_knots,
    modify,
    parse_feature,
    step,
)
from dbrm.status import Status


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    return {"x": rng.normal(size=50), "y": rng.normal(size=50), "a b": rng.normal(size=50)}


class Columns:
    """A table that only offers a method."""

    def __init__(self, table):
        self.table = table

    def column(self, name):
        return self.table[name]


def parsed(*texts):
    return [parse_feature(text) for text in texts]


def test_values(table):
    x, y = table["x"], table["y"]
    features = parsed("x", "x*x*y", "tanh(0.5 - 2.0*x + y)", "gauss(`a b`)*troot(x*y)")
    values, statuses = evaluate(features, table)
    assert values.flags.f_contiguous
    assert values.dtype == np.float64
    assert statuses.dtype == np.uint8
    assert statuses.tolist() == [0, 0, 0, 0]
    expected = [
        x,
        x * x * y,
        np.tanh(0.5 - 2 * x + y),
        np.exp(-(table["a b"] ** 2)) * np.cbrt(np.abs(x * y)),
    ]
    np.testing.assert_allclose(values, np.column_stack(expected), rtol=1e-13)


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        Columns,
        lambda t: pd.DataFrame(t).to_records(index=False),
        lambda t: pd.DataFrame(t).assign(column=1.0),
        lambda t: {k: v.tolist() for k, v in t.items()},
    ],
)
def test_any_table_will_do(table, convert):
    feature = parse_feature("sin(x)*`a b`")
    expected = np.sin(table["x"]) * table["a b"]
    np.testing.assert_allclose(feature.evaluate(convert(table)), expected)
    np.testing.assert_allclose(feature.to_callable()(convert(table)), expected)


def test_polars_and_pyarrow_tables(table):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for frame in (polars.DataFrame(table), pyarrow.table(table)):
        np.testing.assert_allclose(parse_feature("x*y").evaluate(frame), table["x"] * table["y"])
        with pytest.raises(UnknownNameError, match=r"Unknown column 'xx'.*'x'"):
            covariate("xx").evaluate(frame)


def test_missing_columns_are_named(table):
    for each in (table, pd.DataFrame(table), Columns(table)):
        with pytest.raises(UnknownNameError, match="Unknown column 'xx'"):
            parse_feature("sin(xx)").evaluate(each)
    with pytest.raises(UnknownNameError, match="Did you mean 'x'"):
        evaluate(parsed("xx"), table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"x": np.ones((3, 2))}, "one-dimensional"),
        ({"x": ["a", "b"]}, "not numeric"),
        (None, "A table must be"),
        (3.0, "A table must be"),
    ],
)
def test_unusable_tables_are_refused(table, message):
    with pytest.raises(InvalidDataError, match=message):
        covariate("x").evaluate(table)


def test_a_table_that_fails_otherwise_says_so_itself():
    class Broken(Columns):
        def column(self, name):
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        covariate("x").evaluate(Broken({}))


def test_columns_of_unequal_length_are_refused():
    table = {"x": np.ones(3), "y": np.ones(4)}
    with pytest.raises(InvalidDataError, match="same number of rows"):
        evaluate(parsed("x", "y"), table)
    with pytest.raises(InvalidDataError, match="same number of rows"):
        evaluate(parsed("x*y"), table)
    with pytest.raises(InvalidDataError, match="same number of rows"):
        evaluate(parsed("x*y"), {"x": np.ones(3), "y": np.ones(1)})
    cache = {}
    evaluate(parsed("x"), table, cache)
    with pytest.raises(InvalidDataError, match="only be used with one table"):
        evaluate(parsed("sin(x)", "x"), {"x": np.ones(5)}, {**cache, "sin(x)": np.ones(5)})


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.uint8])
def test_other_number_types_become_floats(dtype):
    table = {"x": np.array([0, 1, 1], dtype=dtype)}
    assert parse_feature("not(x)").evaluate(table).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("x", Status.OK),
        ("exp(exp(large))", Status.OVERFLOW),
        ("large*large", Status.OVERFLOW),
        ("log_abs(zero)", Status.OVERFLOW),
        ("power[-1](zero)", Status.OVERFLOW),
        ("sin(exp(exp(large)))", Status.NOT_A_NUMBER),
        ("tanh(huge - huge2)", Status.NOT_A_NUMBER),
        ("missing*x", Status.NOT_A_NUMBER),
        ("step[5](missing)", Status.NOT_A_NUMBER),
        ("gauss(exp(exp(large)))", Status.CONSTANT),
        ("one", Status.CONSTANT),
        ("nothing", Status.CONSTANT),
        ("tenth", Status.CONSTANT),
        ("step[99](x)", Status.CONSTANT),
        ("almost", Status.CONSTANT),
        ("shifted", Status.OK),
        ("tiny", Status.OK),
        ("spike", Status.OK),
        ("below", Status.OK),
        ("above", Status.OVERFLOW),
        ("minus", Status.OVERFLOW),
    ],
)
def test_statuses(text, status):
    n = 100
    x = np.linspace(-1, 1, n)
    table = {
        "x": x,
        "large": 1e80 * (2 + x),
        "zero": np.where(x > 0, x, 0.0),
        "huge": np.full(n, np.inf),
        "huge2": np.full(n, np.inf),
        "missing": np.where(x > 0.9, np.nan, x),
        "one": np.ones(n),
        "nothing": np.zeros(n),
        "tenth": np.full(n, 0.1),
        "almost": 1.0 + 1e-11 * x,
        "shifted": 1e6 + 1e-2 * x,
        "tiny": 1e-310 * x,
        "spike": np.where(np.arange(n) == 7, 1.0, 0.0),
        "below": 1e150 * x,
        "above": 1.01e150 * x,
        "minus": -1.01e150 * (2 + x),
    }
    feature = parse_feature(text)
    values, statuses = evaluate([feature], table)
    assert Status(statuses[0]) is status
    assert column_status(feature.evaluate(table)) is status
    np.testing.assert_array_equal(values[:, 0], feature.evaluate(table))


def test_status_boundary_follows_the_standard_deviation():
    """The shortcut by the range must not decide anything else."""
    rng = np.random.default_rng(6)
    for scale in np.geomspace(1e-12, 1e-8, 60):
        for column in (1 + scale * rng.normal(size=40), 1 + scale * (np.arange(40) == 3)):
            flat = np.std(column) <= 1e-10 * np.abs(column).max()
            assert (column_status(column) is Status.CONSTANT) == flat


def test_few_rows_and_few_features(table):
    assert column_status(np.array([3.0])) is Status.CONSTANT
    assert column_status(np.array([])) is Status.OK
    values, statuses = evaluate([], table)
    assert values.shape == (50, 0)
    assert statuses.shape == (0,)
    assert evaluate([], pd.DataFrame(table))[0].shape == (50, 0)
    assert evaluate(parsed("sin(x)"), {"x": np.array([])})[0].shape == (0, 1)


def test_sub_expressions_are_computed_once(table):
    calls = []
    counting = Transform("counting", lambda x: (calls.append(1), np.sin(x))[1])
    calls.clear()
    inner = modify(counting, covariate("x"))
    text = "tanh(counting(x)*y)"
    features = [
        inner,
        *[parse_feature(t, transforms=[counting]) for t in (text, "counting(x)*counting(x)", text)],
    ]
    cache = {}
    evaluate(features, table, cache)
    assert len(calls) == 1
    assert set(cache) >= {"x", "counting(x)", str(features[1])}
    evaluate(features, table, cache)
    assert len(calls) == 1


def test_features_of_one_topology_do_not_share_columns(table):
    first, second = parsed("tanh(1.0*x)", "tanh(2.0*x)")
    values, _ = evaluate([first, second], table, {})
    assert first == second
    np.testing.assert_allclose(values[:, 1], np.tanh(2 * table["x"]))
    assert not np.allclose(values[:, 0], values[:, 1])


def test_nobody_can_change_the_table_or_the_cache(table):
    before = table["x"].copy()
    cache = {}
    values, _ = evaluate(parsed("x", "sin(x)"), table, cache)
    values[:] = 0.0
    own = covariate("x").evaluate(table)
    own[:] = 0.0
    np.testing.assert_array_equal(table["x"], before)
    np.testing.assert_array_equal(cache["x"], before)
    assert table["x"].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        cache["x"][0] = 1.0


# --- knots at training quantiles ---------------------------------------------------------------


def test_knots_are_fitted_on_the_training_table_and_kept(table):
    bare = parse_feature("step[q0.25](x)*hinge[q0.5](tanh(0.5 + 2.0*x - y))")
    fitted = fit_knots(bare, table)
    assert fitted == bare
    assert fitted.fitted
    assert fit_knots(fitted, {"x": np.zeros(2)}) is fitted
    assert parse_feature(str(fitted)) is fitted
    z = np.tanh(0.5 + 2 * table["x"] - table["y"])
    low, middle = np.quantile(table["x"], 0.25), np.median(z)
    expected = (table["x"] > low) * np.maximum(0.0, z - middle)
    np.testing.assert_allclose(fitted.evaluate(table), expected, rtol=1e-12)
    new = {"x": np.array([low - 1, low + 1]), "y": np.array([0.0, 0.0])}
    expected = (new["x"] > low) * np.maximum(0.0, np.tanh(0.5 + 2 * new["x"]) - middle)
    np.testing.assert_allclose(fitted.evaluate(new), expected, rtol=1e-12)


def test_knots_inside_knots_and_projections_with_a_knot(table):
    bare = parse_feature("step[q0.75](0.5*x + hinge[q0.5](y))")
    fitted = fit_knots(bare, table, {})
    z = 0.5 * table["x"] + np.maximum(0.0, table["y"] - np.median(table["y"]))
    np.testing.assert_allclose(fitted.evaluate(table), z > np.quantile(z, 0.75))
    assert fitted == bare


def test_two_data_sets_do_not_share_knots():
    bare = modify(step("q0.5"), covariate("x"))
    first = fit_knots(bare, {"x": np.array([0.0, 1.0, 2.0])})
    second = fit_knots(bare, {"x": np.array([0.0, 10.0, 20.0])})
    assert (first.knot, second.knot) == (1.0, 10.0)
    assert str(bare) == "step[q0.5](x)"


def test_knots_ignore_what_is_not_finite():
    fitted = fit_knots(parse_feature("step[q0.5](x)"), {"x": np.array([np.nan, np.inf, 1.0, 3.0])})
    assert fitted.knot == 2.0
    nothing = {"x": np.array([np.nan, np.nan])}
    hopeless = fit_knots(parse_feature("step[q0.5](x)"), nothing)
    assert evaluate([hopeless], nothing)[1].tolist() == [Status.NOT_A_NUMBER]


def test_an_unfitted_knot_is_not_guessed(table):
    with pytest.raises(InvalidSettingError, match="fit_knots"):
        parse_feature("sin(step[q0.5](x))").evaluate(table)
