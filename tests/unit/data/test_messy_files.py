"""Messy files end in the right numbers, a finding or a message; never in silence."""

import re

import numpy as np
import pytest
from tests.unit.data.messy_files import FILES
from typer.testing import CliRunner

from dbrm.cli.app import app
from dbrm.data.files import read_file
from dbrm.errors import InvalidFileError
from dbrm.run.data_check import find_problems

EFFORT = ["--n-chains", "1", "--n-populations", "1", "--seed", "1", "--transforms", "tanh"]


def write(folder, what):
    messy = FILES[what]
    path = folder / messy.name
    path.write_bytes(messy.text if isinstance(messy.text, bytes) else messy.text.encode())
    return path


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(part) for part in arguments])


@pytest.mark.parametrize("what", FILES)
def test_a_messy_file_is_read_or_refused(what, tmp_path):
    messy, path = FILES[what], write(tmp_path, what)
    if messy.refuses:
        with pytest.raises(InvalidFileError, match=messy.refuses):
            read_file(path)
        return
    file = read_file(path)
    for name, expected in messy.reads.items():
        np.testing.assert_array_equal(np.asarray(file.columns[name], dtype=float), expected)
    assert messy.notes in " ".join(file.notes)
    assert {len(column) for column in file.columns.values()} == {messy.n_rows}
    found = find_problems(file.columns, "price")
    kinds = {finding.column: finding.kind for finding in found}
    assert messy.finds.items() <= kinds.items()
    # Nothing is said about columns that are as they should be.
    assert not set(messy.reads) & set(kinds) - set(messy.finds)


@pytest.mark.parametrize("what", FILES)
def test_the_command_line_tells_the_same(what, tmp_path):
    messy, path = FILES[what], write(tmp_path, what)
    result = run("check", path, "--response", "price")
    assert result.exit_code == (1 if messy.refuses else 0), result.output
    if messy.refuses:
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
    for name, kind in messy.finds.items():
        about = f"Column {name!r}" if name else "The "
        assert f"{kind}: {about}" in result.stdout
    # Nothing is said in terms of Python.
    assert not {"Traceback", "pandas", "X[name]"} & set(result.output.split())
    assert "ignore=[" not in result.output


def test_there_are_many():
    assert len(FILES) >= 70


@pytest.mark.parametrize(
    "what",
    ["semicolons and decimal commas", "units", "a title above", "line breaks in cells", "a total"],
)
def test_a_messy_file_gives_the_right_fit(what, tmp_path):
    result = run("fit", write(tmp_path, what), "--response", "price", *EFFORT)
    assert result.exit_code == 0, result.output
    # The truth is 10 + 3 size.
    slope = float(result.stdout.split("*size")[0].split()[-1])
    assert slope == pytest.approx(3.0, abs=0.3)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no value anywhere", "Remove these rows"),
        ("text among the responses", "'broken'"),
        ("dates", "dates as text"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_line(what, message, tmp_path):
    result = run("fit", write(tmp_path, what), "--response", "price", *EFFORT)
    assert result.exit_code == 1, result.output
    assert re.search(message, result.stderr.splitlines()[-1])
    assert result.stderr.splitlines()[-1].startswith("Error: ")


def test_a_constant_response_is_no_discovery(tmp_path):
    result = run("fit", write(tmp_path, "one value everywhere"), "--response", "price", *EFFORT)
    assert result.stderr.startswith("Warning: The response is 5 in every row.")
    assert "Nothing was found." in result.stdout


def test_a_single_column_has_no_covariates(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("price\n1.5\n2.5\n4.0\n")
    result = run("fit", path, "--response", "price", *EFFORT)
    assert result.exit_code == 1, result.output
    assert "Error: " in result.stderr


def test_what_was_not_recognised_can_be_said(tmp_path):
    path = write(tmp_path, "thousands or decimals")
    for decimal, low, high in ((",", 1.0, 10.0), (".", 1000.0, 10_000.0)):
        size = np.asarray(read_file(path, decimal=decimal).columns["size"], dtype=float)
        assert low < size.min() < size.max() < high
    assert run("check", path, "--decimal", ",").exit_code == 0
    assert "--decimal ','" in run("check", path).stderr
    with pytest.raises(InvalidFileError, match="no encoding 'klingon'"):
        read_file(path, encoding="klingon")
    path.write_text("a:b\n1:2\n3:4\n")
    assert list(read_file(path, separator=":").columns) == ["a", "b"]
