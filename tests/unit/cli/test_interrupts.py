"""Ctrl-C and resuming, as the program's user meets them."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dbrm
from dbrm.cli.app import app

PROGRAM = [sys.executable, "-c", "from dbrm.cli import main; main()"]
# Long enough that it can only end by being interrupted.
LONG = ["--n-chains", "2", "--n-populations", "1000000", "--seed", "1", "--transforms", "tanh"]


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame["y"] = np.tanh(frame["a"]) + 0.1 * rng.normal(size=60)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def start(*arguments):
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize(
    "kind", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupt_ends_with_what_was_found(table, tmp_path, kind):
    """The checkpoint tells when the chains are under way."""
    folder, saved = tmp_path / "run", tmp_path / "run.dbrm"
    options = ["--checkpoint", folder, "--out", saved, "--json"]
    program = start("fit", table, "--response", "y", *LONG, *options)
    wait_for(lambda: any(folder.glob("chain-*")))
    program.send_signal(kind)
    printed, told = program.communicate(timeout=120)
    assert program.returncode == 128 + kind, told
    assert f"Interrupted ({kind.name})" in told
    assert "Traceback" not in told
    facts = json.loads(printed)
    assert facts["best_model"]["formula"] == dbrm.load(saved).best_model.formula


def test_resume_goes_on_from_a_folder(table, tmp_path):
    """A run that had ended is only read; the same numbers come out."""
    folder = tmp_path / "run"
    effort = ["--n-chains", "1", "--n-populations", "3", "--seed", "1", "--transforms", "tanh"]
    command = ["fit", table, "--response", "y", *effort, "--checkpoint", folder, "--json"]
    first = CliRunner().invoke(app, [str(part) for part in command])
    assert first.exit_code == 0, first.output
    again = CliRunner().invoke(app, ["fit", "--resume", str(folder), "--json"])
    assert again.exit_code == 0, again.output
    one, two = json.loads(first.stdout), json.loads(again.stdout)
    assert one["models"] == two["models"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["fit", "data.csv", "--response", "y", "--resume", "run"],
            2,
            "leave DATA, --response and",
        ),
        (["fit", "--resume", "nowhere"], 1, "nowhere"),
        (["fit"], 2, "give a table and --response"),
        (["fit", "data.csv", "--response", "y", "--checkpoint", "data.csv"], 1, "data.csv"),
    ],
)
def test_mistakes_are_told_in_a_line(table, monkeypatch, arguments, code, message):
    monkeypatch.chdir(table.parent)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output
