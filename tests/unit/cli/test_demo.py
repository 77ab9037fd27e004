"""Tests of `dbrm.cli`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.test_code_blocks import missing_lines
from typer.testing import CliRunner

import dbrm
from dbrm.cli.app import app

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One run of the demo: its result and the folder it wrote to."""
    folder = tmp_path_factory.mktemp("demo") / "made" / "on the way"
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["demo", "--out", str(folder)]), folder


def test_demo_finds_the_law_and_says_so(demo):
    result, _ = demo
    assert result.exit_code == 0, result.output
    assert "a ∝ (P² M)^(1/3), has posterior probability 0.97" in result.output
    assert "Its constant is 0.01958; the orbit of the Earth gives 0.01957." in result.output
    assert "troot(PeriodDays*PeriodDays*HostStarMassSlrMass)" in result.output
    assert "not found" not in result.output


def test_demo_writes_a_report_and_a_picture(demo):
    _, folder = demo
    report, picture = sorted(folder.iterdir())
    assert "Which formula explains SemiMajorAxisAU?" in report.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(PNG)


def test_demo_fits_a_terminal(demo):
    result, _ = demo
    paths = ("Report", "Picture")
    lines = [line for line in result.output.splitlines() if not line.startswith(paths)]
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= 30


def test_the_readme_shows_what_the_demo_prints(demo):
    """Words everywhere; numbers on Linux, to one percent: other systems take other steps."""
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("dbrm demo\n```\n\n```text\n")[2].partition("```")[0]
    if sys.platform == "linux":
        results = shown.partition("Report:")[0]
        assert missing_lines(results, demo[0].output) == []
    shown, printed = (set(re.findall(r"[A-Za-z_]{2,}", text)) for text in (shown, demo[0].output))
    assert "Kepler" in shown
    assert shown <= printed


def test_demo_refuses_a_negative_seed():
    result = CliRunner().invoke(app, ["demo", "--seed", "-1"])
    assert result.exit_code == 2


def test_the_installed_program_knows_its_version():
    done = subprocess.run(
        [sys.executable, "-c", "from dbrm.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.stdout == f"dbrm {dbrm.__version__}\n"


def test_without_a_command_the_help_is_shown():
    result = CliRunner().invoke(app, [])
    assert "demo" in result.output
