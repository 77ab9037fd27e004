"""Tests of `dbrm.data.out_of_core`: batches and blocks of rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import dbrm.data.out_of_core.batches as blocks
from dbrm.data import (
    MemoryRows,
    Table,
    choose_sample,
    learn_from_batches,
    open_batches,
    take_sample,
)
from dbrm.errors import DBRMWarning, InvalidDataError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 10)


def describe(block):
    return block.start, block.n_rows, block.columns["a"].tolist(), block.extras["response"].tolist()


def frame(n=37):
    return pd.DataFrame({"a": np.arange(n) * 1.0, "b": np.arange(n) ** 2.0, "y": np.arange(n) % 2})


def test_blocks_cover_all_rows_once_and_in_order():
    given = frame()
    table = Table(("a", "b"), given[["a", "b"]].to_numpy())
    rows = MemoryRows(table, {"response": given["y"].to_numpy(float)})
    found = list(rows.map(describe, ["a"]))
    assert [part[:2] for part in found] == [(0, 10), (10, 10), (20, 10), (30, 7)]
    assert [value for part in found for value in part[2]] == given["a"].tolist()
    assert [value for part in found for value in part[3]] == given["y"].tolist()


@pytest.mark.parametrize("row_group", [3, 10, 14, 100])
def test_files_are_cut_at_the_same_rows_whatever_their_row_groups(tmp_path, row_group):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(frame()), path, row_group_size=row_group)
    _, rows = learn_from_batches(open_batches(path, {"response": "y"}))
    assert [part[:2] for part in rows.map(describe, ["a"])] == [
        (0, 10),
        (10, 10),
        (20, 10),
        (30, 7),
    ]
    assert rows.names == ("a", "b")


def test_partitions_keep_the_numbers_of_their_rows():
    dd = pytest.importorskip("dask.dataframe")
    lazy = dd.from_pandas(frame(), npartitions=2)
    _, rows = learn_from_batches(open_batches(lazy, {"response": "y"}))
    found = list(rows.map(describe, ["a"]))
    assert [value for part in found for value in part[2]] == frame()["a"].tolist()
    assert [part[0] for part in found] == np.cumsum([0, *(part[1] for part in found)])[:-1].tolist()


@pytest.mark.parametrize(("n", "wanted"), [(10, 20), (10, 10), (1_000, 7), (1_003, 100)])
def test_the_sample_has_one_row_of_every_strip(n, wanted):
    chosen = choose_sample(n, wanted)
    assert chosen.size == min(n, wanted)
    strips = np.searchsorted(np.linspace(0, n, chosen.size + 1)[1:], chosen, side="right")
    assert np.abs(strips - np.arange(chosen.size)).max() <= 1
    np.testing.assert_array_equal(chosen, choose_sample(n, wanted))
    assert np.all(np.diff(chosen) > 0)


def test_the_sample_is_those_rows():
    given = frame()
    table = Table(("a", "b"), given[["a", "b"]].to_numpy())
    rows = MemoryRows(table, {"response": given["y"].to_numpy(float)})
    chosen = np.array([0, 9, 10, 36])
    sample, extras = take_sample(rows, chosen)
    np.testing.assert_array_equal(sample.values, table.values[chosen])
    np.testing.assert_array_equal(extras["response"], given["y"][chosen])


def test_constants_and_copies_are_left_out_and_rare_values_are_not():
    given = frame().assign(one=1.0, twice=lambda f: 3.0 - 2.0 * f["a"], rare=0.0)
    given.loc[36, "rare"] = 1.0
    with pytest.warns(DBRMWarning) as told:
        recipe, rows = learn_from_batches(
            open_batches(pa.dataset.dataset(pa.Table.from_pandas(given)), {"response": "y"})
        )
    assert rows.names == ("a", "b", "rare")
    assert dict(recipe.dropped) == {"one": "constant", "twice": "copy of 'a'"}
    assert rows.binary == (False, False, True)
    assert len(told) == 2


def test_ranges_of_numbers_are_ordered_though_a_block_has_only_some():
    given = frame(40).assign(age=np.repeat(["5-9", "10-14", "15-19", "20+"], 10).astype(object))
    recipe, rows = learn_from_batches(open_batches(_dataset(given), {"response": "y"}))
    assert recipe.columns[-1].levels == ("5-9", "10-14", "15-19", "20+")
    codes = np.concatenate(list(rows.map(lambda block: block.columns["age"], ["age"])))
    assert codes.tolist() == np.repeat([1.0, 2.0, 3.0, 4.0], 10).tolist()


def test_infinite_values_and_responses_that_are_no_numbers_are_refused():
    given = frame()
    given.loc[30, "b"] = np.inf
    with pytest.raises(InvalidDataError, match="column 'b' has 1"):
        learn_from_batches(open_batches(_dataset(given), {"response": "y"}))
    text = frame().assign(y="no")
    with pytest.raises(InvalidDataError, match="y holds text"):
        learn_from_batches(open_batches(_dataset(text), {"response": "y"}))
    with pytest.raises(InvalidDataError, match="must be the name of a column"):
        open_batches(_dataset(frame()), {"response": np.zeros(37)})


def _dataset(given):
    return pa.dataset.dataset(pa.Table.from_pandas(given))
