"""Tests of `dbrm data`; nothing is downloaded."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from dbrm import datasets
from dbrm.cli.app import app
from dbrm_paper.datasets import CATALOGUE, DataUnavailableError, authors_files

SHIPPED = Path(datasets.__file__).parent


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["data", *map(str, arguments)])


def test_list_says_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("DBRM_DATA", str(tmp_path))
    facts = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
    assert list(facts) == list(CATALOGUE)
    here = facts.pop("exoplanets")["place"]
    assert here == str(SHIPPED)
    assert all(entry["place"] is None for entry in facts.values())
    for name in CATALOGUE["spam"].files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    facts = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
    assert facts["spam"]["place"] == str(tmp_path / "spam")
    assert facts["asteroids"]["place"] is None
    table = run("list").stdout
    assert table.count("not yet") == len(CATALOGUE) - 2


def test_every_file_belongs_to_one_data_set():
    files = [name for entry in CATALOGUE.values() for name in entry.files]
    assert sorted(files) == sorted(authors_files.SHA256)


def test_without_pooch_nothing_is_here(monkeypatch):
    monkeypatch.delenv("DBRM_DATA", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    assert CATALOGUE["spam"].place is None


def test_fetch_prints_paths(raw):
    result = run("fetch", "exoplanets", "spam")
    assert result.exit_code == 0, result.output
    shipped, *downloaded = result.stdout.splitlines()
    assert shipped == str(SHIPPED / "exoplanets.csv")
    assert downloaded == [str(raw / name) for name in CATALOGUE["spam"].files]


def test_export_writes_what_the_loaders_give(raw, tmp_path):
    result = run("export", "exoplanets", "--folder", tmp_path / "new")
    assert result.exit_code == 0, result.output
    assert "223 rows; response SemiMajorAxisAU" in result.stdout
    written = pd.read_csv(tmp_path / "new" / "exoplanets.csv")
    pd.testing.assert_frame_equal(written, CATALOGUE["exoplanets"].load())
    assert run("export", "breast-cancer", "--folder", tmp_path).exit_code == 0
    assert len(pd.read_csv(tmp_path / "breast-cancer-train.csv")) == 143
    assert len(pd.read_csv(tmp_path / "breast-cancer-test.csv")) == 426


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_is_right(raw, name):
    entry = CATALOGUE[name]
    tables = entry.tables()
    assert [f"{len(table):,}" for table in tables.values()] == entry.rows.split(" + ")
    assert all(entry.response in table.columns for table in tables.values())
    assert entry.place == (SHIPPED if name == "exoplanets" else raw / entry.folder)


def test_what_cannot_be_had_is_told_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DBRM_DATA", str(tmp_path))
    result = run("fetch", "spam")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: DBRM_DATA=")
    assert issubclass(DataUnavailableError, OSError)


@pytest.mark.parametrize("arguments", [["fetch", "iris"], ["export", "iris"], ["nonsense"]])
def test_unknown_names(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
