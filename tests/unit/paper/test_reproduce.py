"""Tests of `dbrm reproduce`: a miniature of every table through the command line."""

import csv
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

from dbrm.cli.app import app
from dbrm_paper import epigenetic, runs
from dbrm_paper.runs import Options
from dbrm_paper.tables import TABLES


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["reproduce", *map(str, arguments)])


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["kepler", "appendix-b"])
def test_a_miniature_of_the_laws(name, tmp_path):
    tiny = ("--runs", 1, "--chains", 1, "--populations", 1, "--jobs", 1, "--out", tmp_path)
    result = run(name, *tiny)
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    page = (tmp_path / f"{name}.md").read_text()
    assert "paper_code" in page
    assert "## Remarks" in page
    before = read(tmp_path / f"{name}.csv")
    again = run(name, *tiny)
    assert again.exit_code == 0, again.output
    assert read(tmp_path / f"{name}.csv") == before


@pytest.mark.slow
def test_the_mass_page_has_both_numbers(tmp_path):
    """At the chains of the paper its numbers stand beside ours."""
    options = ("--runs", 1, "--chains", 4, "--populations", 3, "--jobs", 1, "--out", tmp_path)
    assert run("mass", *options).exit_code == 0
    rows = read(tmp_path / "mass-table.csv")
    (first,) = [r for r in rows if r["method"] == "DBRM_G" and r["section"].endswith("G1")]
    assert (first["power"], first["paper power"], first["runs"]) == ("1.00", "0.79", "1")
    text = (tmp_path / "mass.md").read_text()
    assert "| DBRM_G | 4 | 1.00 | 0.79 |" in text
    (second,) = [r for r in rows if r["method"] == "DBRM_G" and r["section"].endswith("G2")]
    assert second["power"] == "0.00"


@pytest.mark.slow
def test_example_6_in_miniature(tmp_path):
    options = ("--runs", 1, "--chains", 1, "--populations", 1, "--jobs", 1, "--out", tmp_path)
    result = run("example6", *options)
    assert result.exit_code == 0, result.output
    rows = read(tmp_path / "example6.csv")
    assert [row["method"] for row in rows] == ["DBRM_G", "DBRM_R", "LOGIC"]
    assert "overall power" in (tmp_path / "example6.md").read_text()


def test_an_unknown_table_is_named(tmp_path):
    result = run("table9", "--out", tmp_path)
    assert result.exit_code != 0
    assert "no table 'table9'" in result.output
    assert "appendix-b" in result.output


def test_an_unknown_preset_is_named(tmp_path):
    result = run("mass", "--preset", "paper", "--out", tmp_path)
    assert result.exit_code != 0
    assert "paper_text, paper_code, both" in result.output


def test_without_the_data_one_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("DBRM_DATA", str(tmp_path))
    result = run("table2", "--runs", 1, "--chains", 1, "--jobs", 1, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "DBRM_DATA" in result.output
    assert "Traceback" not in result.output


def test_every_table_of_the_paper_is_there():
    tables = {"table1", "table2", "table3", "table4", "mass", "kepler"}
    assert tables | {"appendix-a", "appendix-b", "example6"} <= set(TABLES)


def test_the_page_of_example_7(tmp_path):
    """From records as runs write them: medians over runs, the paper's numbers beside ours."""
    header = "preset,chains,populations,seed,features,latent,seconds\n"
    lines = [
        "paper_text,2,,0,log_total_bases=1.0000; CG=0.9900,RW1(pos)=0.9000; OU(pos)=0.1000,3.0\n",
        "paper_text,2,,1,log_total_bases=1.0000; CG=0.9700; CHG=0.8000,"
        "RW1(pos)=0.8000; OU(pos)=0.2000,5.0\n",
    ]
    (tmp_path / "example7.csv").write_text(header + "".join(lines))
    options = ("--runs", 2, "--chains", 2, "--preset", "paper_text", "--jobs", 1)
    result = run("example7", *options, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "example7.md").read_text()
    assert "| CG | feature | 0.980 (0.970, 0.990) | 0.999 |" in page
    assert "| CHG | feature | 0.400 (0.000, 0.800) | 0.952 |" in page
    assert "| RW1(pos) | latent effect | 0.850 (0.800, 0.900) | 1.000 |" in page


@pytest.mark.parametrize(
    ("preset", "prior"), [("paper_text", "normal-loggamma"), ("paper_code", "normal")]
)
def test_the_model_of_example_7(preset, prior, monkeypatch):
    """The text's slopes have a variance of their own, the script's do not; effects cost the same.

    Walks begin on top of the hill: from the null model two of 100 runs lost a covariate.
    """
    sites = pd.DataFrame({"methylated_bases": [0, 1], "total_bases": [1, 2], "pos": [3, 4]})
    asked = {}

    def remember(X, y, **settings):
        asked.update(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(epigenetic.datasets, "load_arabidopsis", sites.copy)
    monkeypatch.setattr(epigenetic, "fit_completely", remember)
    study = epigenetic.Epigenetic()
    (key,) = study.plan(Options(runs=1, presets=(preset,)))
    with pytest.raises(KeyboardInterrupt):
        study.run(key)
    assert asked["prior"]["name"] == prior
    assert asked["latent_charge"] == "effect"
    assert asked["mjmcmc"]["ascend"]


def test_an_interrupted_run_is_not_kept(tmp_path, monkeypatch):
    """A search that was cut short returns what it has; that is no result of this run."""
    fit = runs.fit

    def cut_short(*arguments, **settings):
        posterior = fit(*arguments, **settings)
        posterior.record = replace(posterior.record, ended="SIGINT")
        return posterior

    monkeypatch.setattr(runs, "fit", cut_short)
    options = ("--runs", 1, "--chains", 1, "--populations", 1, "--jobs", 1, "--out", tmp_path)
    result = run("mass", *options)
    assert result.exit_code == 130
    assert "repeat the command to resume" in result.output
    assert not (tmp_path / "mass.csv").exists()
