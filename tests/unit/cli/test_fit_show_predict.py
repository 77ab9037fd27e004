"""Tests of `dbrm fit`, `dbrm show` and `dbrm predict`."""

import csv
import json
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dbrm
from dbrm.cli.app import app
from dbrm.cli.console import in_options

EFFORT = ["--n-chains", "1", "--n-populations", "2", "--seed", "1", "--transforms", "tanh, sin"]


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(part) for part in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table in every format, and a saved run."""
    folder = tmp_path_factory.mktemp("cli")
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(draw.normal(size=(50, 3)), columns=["a", "b b", "id"])
    frame["y"] = 3 * np.sin(frame["a"]) + 0.1 * draw.normal(size=50)
    frame["n"] = draw.poisson(np.exp(0.5 * frame["a"]))
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_csv(folder / "data.tsv", index=False, sep="\t")
    frame.to_csv(folder / "semicolons.csv", index=False, sep=";")
    frame.to_csv(folder / "data.csv.gz", index=False)
    frame.to_parquet(folder / "data.parquet")
    frame.to_feather(folder / "data.feather")
    arrow = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(str(folder / "stream.arrow"), arrow.schema) as stream:
        stream.write_table(arrow)
    result = run(
        *("fit", folder / "data.csv", "--response", "y", "--ignore", "id, n"),
        *(*EFFORT, "--out", folder / "run.dbrm", "--json"),
    )
    assert result.exit_code == 0, result.output
    (folder / "fit.json").write_text(result.stdout)
    return folder


def test_fit_finds_what_the_function_finds(folder):
    frame = pd.read_csv(folder / "data.csv")
    posterior = dbrm.fit(
        frame[["a", "b b"]],
        frame["y"],
        n_chains=1,
        n_populations=2,
        random_state=1,
        transforms=["tanh", "sin"],
    )
    facts = json.loads((folder / "fit.json").read_text())
    assert facts["best_model"]["formula"] == posterior.best_model.formula
    assert facts["features"][0] == posterior.features.head(1).to_dict("records")[0]
    assert facts["response"] == "y"
    assert facts["seed"] == 1


@pytest.mark.parametrize(
    "name",
    ["data.tsv", "semicolons.csv", "data.csv.gz", "data.parquet", "data.feather", "stream.arrow"],
)
def test_other_formats_give_the_same(folder, name):
    command = ["fit", folder / name, "--response", "y", "--ignore", "id,n", *EFFORT, "--json"]
    facts, expected = (
        json.loads(run(*command).stdout),
        json.loads((folder / "fit.json").read_text()),
    )
    assert facts["best_model"] == expected["best_model"]


def test_fit_prints_a_summary(folder):
    options = ["--family", "poisson", "--penalty", "2.5", "--time-budget", "1m"]
    options += ["--report", folder / "counts.html"]
    result = run("fit", folder / "data.csv", "--response", "n", "--ignore", "id", *EFFORT, *options)
    assert result.exit_code == 0, result.output
    assert "Best model (probability" in result.output
    assert "Which formula explains n?" in (folder / "counts.html").read_text("utf-8")


def test_columns_that_belong_to_rows(folder, tmp_path):
    """Trials, exposure and weights are taken out of the table and reach the fit."""
    draw = np.random.default_rng(5)
    frame = pd.DataFrame({"x": draw.normal(size=60), "t": draw.integers(1, 9, size=60)})
    frame["w"] = 1 + draw.integers(0, 2, size=60)
    frame["k"] = draw.binomial(frame["t"], 1 / (1 + np.exp(-frame["x"])))
    frame.to_csv(tmp_path / "k.csv", index=False)
    effort = {"n_chains": 1, "n_populations": 2, "random_state": 1, "transforms": ["tanh", "sin"]}
    saved = tmp_path / "k.dbrm"
    for family, option, argument in (
        ("binomial", "--trials", "trials"),
        ("poisson", "--exposure", "exposure"),
    ):
        result = run(
            *("fit", tmp_path / "k.csv", "--response", "k", "--family", family, option, "t"),
            *("--weights", "w", *EFFORT, "--out", saved, "--json"),
        )
        assert result.exit_code == 0, result.output
        rows = {argument: frame["t"], "sample_weight": frame["w"]}
        expected = dbrm.fit(frame[["x"]], frame["k"], family=family, **rows, **effort)
        formula = json.loads(result.stdout)["best_model"]["formula"].replace("[k]", "[y]")
        assert formula == expected.best_model.formula.replace("[k]", "[y]")
        result = run("predict", saved, tmp_path / "k.csv", option, "t", "--json")
        means = [row["mean"] for row in json.loads(result.stdout)]
        assert means == expected.predict(frame, **{argument: frame["t"]}).tolist()


def test_latent_effects_are_offered(folder, tmp_path):
    frame = pd.read_csv(folder / "data.csv").assign(t=range(50), site=list("pqrst") * 10)
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(
        *("fit", tmp_path / "t.csv", "--response", "y", "--ignore", "id,n,b b", *EFFORT),
        *("--algorithm", "mjmcmc", "--latent", "RW1(t)", "--latent", " RandomIntercept( site )"),
        "--json",
    )
    assert result.exit_code == 0, result.output
    models = json.loads(result.stdout)["models"]
    named = {name for model in models for name in model["latent"]}
    assert named <= {"RW1(t)", "RandomIntercept(site)"}


def test_show(folder):
    result = run("show", folder / "run.dbrm")
    assert result.exit_code == 0, result.output
    summary = dbrm.load(folder / "run.dbrm").summary()
    assert result.stdout == summary.replace("n_chains=4", "--n-chains 4") != summary
    facts = json.loads(run("show", folder / "run.dbrm", "--json", "--top", "2").stdout)
    assert len(facts["features"]) == 2


def test_predict(folder):
    frame = pd.read_csv(folder / "data.csv")
    posterior = dbrm.load(folder / "run.dbrm")
    result = run("predict", folder / "run.dbrm", folder / "data.parquet", "--level", "0.8")
    assert result.exit_code == 0, result.output
    header, *rows = csv.reader(StringIO(result.stdout))
    assert header == ["mean", "lower", "upper"]
    table = np.array(rows, dtype=float)
    np.testing.assert_array_equal(table[:, 0], posterior.predict(frame))
    np.testing.assert_array_equal(table[:, 1:], posterior.predict_interval(frame, 0.8))
    result = run("predict", folder / "run.dbrm", folder / "data.csv", "--of-mean")
    table = np.array(list(csv.reader(StringIO(result.stdout)))[1:], dtype=float)
    np.testing.assert_array_equal(table[:, 1:], posterior.predict_interval(frame, of="mean"))
    shifted = run("predict", folder / "run.dbrm", folder / "data.csv", "--offset", "id", "--json")
    np.testing.assert_allclose(
        [row["mean"] for row in json.loads(shifted.stdout)], posterior.predict(frame) + frame["id"]
    )


def test_json_has_null_where_there_is_no_number(tmp_path):
    """A logarithm is undefined at zero; NaN would be no JSON."""
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"a": draw.uniform(-9.0, 9.0, size=80)})
    frame["y"] = np.log(np.abs(frame["a"])) + 0.01 * draw.normal(size=80)
    frame.to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "new.csv").write_text("a\n1\n0\n")
    effort = ["--n-chains", "1", "--n-populations", "3", "--seed", "1", "--transforms", "log_abs"]
    saved = tmp_path / "log.dbrm"
    fitted = run("fit", tmp_path / "log.csv", "--response", "y", *effort, "--out", saved, "--json")
    assert "log_abs(a)" in json.loads(fitted.stdout)["best_model"]["formula"]
    result = run("predict", saved, tmp_path / "new.csv", "--json")
    known, unknown = json.loads(result.stdout, parse_constant=pytest.fail)
    assert abs(known["mean"]) < 0.1
    assert unknown == {"mean": None, "lower": None, "upper": None}


@pytest.mark.parametrize(
    "command",
    [[], ["fit"], ["show"], ["predict"], ["report"], ["demo"], ["data"], ["data", "list"]],
)
def test_help_says_what_a_command_does(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_rows_far_outside_are_told_once(folder, tmp_path):
    pd.DataFrame({"a": [100.0], "b b": [0.0]}).to_csv(tmp_path / "far.csv", index=False)
    result = run("predict", folder / "run.dbrm", tmp_path / "far.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("Warning: 1 of 1 rows are far outside")
    assert result.stderr.count("\n") == 1


def test_predict_writes_a_file(folder, tmp_path):
    out = tmp_path / "new.csv"
    result = run("predict", folder / "run.dbrm", folder / "data.csv", "--out", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert len(pd.read_csv(out)) == 50


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "data.csv"], 2, "give a table and --response"),
        (["fit", "data.csv", "--response", "zz"], 2, "no column 'zz'"),
        (["fit", "data.csv", "--response", "y", "--time-budget", "soon"], 2, "a time such as"),
        (["fit", "data.csv", "--response", "y", "--n-chains", "0"], 2, "--n-chains"),
        (["fit", "data.csv", "--response", "y", "--family", "cauchy"], 1, "no family 'cauchy'"),
        (["fit", "data.csv", "--response", "y", "--transforms", "zin"], 1, "zin"),
        (["fit", "nothing.csv", "--response", "y"], 1, "cannot be read: No such file"),
        (["fit", "nothing.parquet", "--response", "y"], 1, "nothing.parquet"),
        (["fit", "run.dbrm", "--response", "y"], 1, "files that end in .csv"),
        (["fit", "broken.parquet", "--response", "y"], 1, "does not hold a table"),
        (["fit", "empty.csv", "--response", "y"], 1, "cannot be read as a table"),
        (["fit", "broken.arrow", "--response", "y"], 1, "does not hold a table"),
        (["fit", "broken.csv.gz", "--response", "y"], 1, "broken.csv.gz"),
        (["fit", "data.csv", "--response", "y", "--exposure", "zz"], 2, "no column 'zz'"),
        (["fit", "data.csv", "--response", "y", "--link", "square"], 1, "square"),
        (["fit", "data.csv", "--response", "y", "--prior", "vague"], 1, "vague"),
        (["fit", "data.csv", "--response", "y", "--preset", "mine"], 1, "preset must be one of"),
        (["fit", "data.csv", "--response", "y", "--algorithm", "luck"], 1, "algorithm must be"),
        (
            ["fit", "data.csv", "--response", "y", "--missing", "lose"],
            1,
            "--missing must be one of 'err",
        ),
        (["fit", "data.csv", "--response", "y", "--penalty", "dic"], 1, "dic"),
        (["fit", "text.csv", "--response", "y"], 1, "y"),
        (["fit", "gaps.csv", "--response", "y", "--missing", "error"], 1, "missing"),
        (["fit", "data.csv", "--response", "y", "--out", "no/folder/x.dbrm"], 1, "No such file"),
        (["show", "run.dbrm", "--top", "0"], 2, "--top"),
        (["fit", "data.csv", "--response", "y", "--latent", "RW1"], 2, "or texts such as"),
        (["fit", "data.csv", "--response", "y", "--latent", "XY(a)"], 2, "no latent effect"),
        (["fit", "data.csv", "--response", "y", "--latent", "AR1(zz)"], 2, "no column 'zz'"),
        (["show", "data.csv"], 1, "was not written by dbrm"),
        (["show", "nothing.dbrm"], 1, "cannot be read"),
        (["predict", "run.dbrm", "other.csv"], 1, "lacks columns of the training data"),
        (["predict", "run.dbrm", "data.csv", "--level", "95"], 1, "level must be strictly"),
        (["predict", "run.dbrm", "data.csv", "--offset", "zz"], 2, "no column 'zz'"),
        (["predict", "run.dbrm", "data.csv", "--out", "no/folder/x.csv"], 1, "No such file"),
        (["report", "nothing.dbrm"], 1, "cannot be read"),
        (["report", "run.dbrm", "no/folder/x.html"], 1, "No such file"),
        (["report", "run.dbrm", "--data", "other.csv"], 2, "no column 'y', the response"),
        (["report", "run.dbrm", "--data", "nothing.csv"], 1, "cannot be read"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_mistakes_are_told_in_a_line(folder, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    (folder / "broken.parquet").write_bytes(b"PAR1 but no more")
    (folder / "broken.arrow").write_bytes(b"ARROW1 but no more")
    (folder / "broken.csv.gz").write_bytes(b"not compressed")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "text.csv").write_text("x,y\n1,a\n2,b\n3,c\n")
    (folder / "gaps.csv").write_text("x,y\n1,1\n,2\n3,3\n4,4\n")
    (folder / "other.csv").write_text("c\n1\n2\n")
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_report(folder, tmp_path):
    page = tmp_path / "page.html"
    options = ["--data", folder / "data.csv", "--title", "Why y?"]
    result = run("report", folder / "run.dbrm", page, *options)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"Report: {page}\n"
    text = page.read_text("utf-8")
    assert "<title>Why y?</title>" in text
    assert "Predicted against observed" in text


def test_the_report_lies_beside_the_run(folder):
    result = run("report", folder / "run.dbrm")
    assert result.exit_code == 0, result.output
    assert "Which formula explains y?" in (folder / "run.html").read_text("utf-8")


def test_labels_are_classes(tmp_path):
    """Two texts are two classes: the second is 1, and the user is told."""
    draw = np.random.default_rng(7)
    frame = pd.DataFrame(draw.normal(size=(80, 2)), columns=["a", "b"])
    frame["state"] = np.where(frame["a"] + draw.normal(size=80) > 0, "well", "ill")
    frame.to_csv(tmp_path / "t.csv", index=False)
    saved, page = tmp_path / "t.dbrm", tmp_path / "t.html"
    command = ["fit", tmp_path / "t.csv", "--response", "state", *EFFORT, "--out", saved]
    result = run(*command, "--json")
    assert result.exit_code == 0, result.output
    assert "two classes: 1 is 'well', 0 is 'ill' (--family binomial)" in result.stderr
    assert json.loads(result.stdout)["response"] == "logit(E[state[well]])"
    expected = dbrm.load(saved).predict(frame)
    assert np.corrcoef(expected, frame["state"] == "well")[0, 1] > 0.4
    assert run("report", saved, page, "--data", tmp_path / "t.csv").exit_code == 0


def test_more_labels_are_more_classes(tmp_path):
    draw = np.random.default_rng(7)
    frame = pd.DataFrame(draw.normal(size=(90, 2)), columns=["a", "b"])
    kinds = np.digitize(frame["a"] + 0.5 * draw.normal(size=90), [-0.5, 0.5])
    frame["kind"] = np.array(["low", "mid", "top"])[kinds]
    frame.to_csv(tmp_path / "t.csv", index=False)
    saved = tmp_path / "t.dbrm"
    command = ["fit", tmp_path / "t.csv", "--response", "kind", *EFFORT, "--out", saved]
    result = run(*command, "--no-check")
    assert result.exit_code == 0, result.output
    assert "has 3 classes: 'low', 'mid', 'top' (--family multinomial)" in result.stderr
    rows = list(csv.DictReader(StringIO(run("predict", saved, tmp_path / "t.csv").stdout)))
    assert rows[0].keys() == {"class", "low", "mid", "top"}
    assert np.mean([row["class"] for row in rows] == frame["kind"]) > 0.6
    assert sum(float(rows[0][name]) for name in ("low", "mid", "top")) == pytest.approx(1.0)
    frame["kind"] = [f"k{j}" for j in range(90)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(*command)
    assert result.exit_code == 1
    assert "holds 90 different texts ('k0', 'k1', 'k10', 'k11' and 86 more)" in result.stderr


def test_formula_option(folder):
    command = ["fit", folder / "data.csv", "--formula", "y ~ a + `b b`", *EFFORT, "--json"]
    expected = json.loads((folder / "fit.json").read_text())["best_model"]
    assert json.loads(run(*command).stdout)["best_model"] == expected


def test_warnings_are_in_terms_of_options(folder, tmp_path):
    frame = pd.read_csv(folder / "data.csv")[["a", "b b"]].assign(id=range(50), won=[0, 1] * 25)
    frame["code"] = [f"k{j}-x" for j in range(50)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "--response", "won", *EFFORT)
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("Warning: ") for line in lines)
    text = " ".join(lines)
    assert "--family binomial" in text
    assert "--ignore id" in text
    assert '--latent "RandomIntercept(column)"' in text
    assert "=" not in text
    result = run("fit", tmp_path / "t.csv", "--response", "won", "--no-check", *EFFORT)
    assert "--family" not in result.stderr


def test_check(folder, tmp_path):
    frame = pd.read_csv(folder / "data.csv").assign(id=range(50))
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    for command in (["check", tmp_path / "t.csv"], ["fit", tmp_path / "t.csv", "--check"]):
        result = run(*command, "--response", "n")
        assert result.exit_code == 0, result.output
        assert "identifier: Column 'id' looks like" in result.stdout
        assert "response: The response holds whole numbers" in result.stdout
        assert result.stdout.endswith("50 rows, 5 columns: 2 found.\n")
    result = run("check", tmp_path / "t.csv", "--ignore", "id", "--json")
    facts = json.loads(result.stdout)
    assert facts["findings"] == []
    assert "decimal commas" in facts["notes"][0]


def test_messages_in_options():
    told = in_options("time_budget must be positive; got n_jobs=0. Try missing='error'.")
    assert told == "--time must be positive; got --jobs 0. Try --missing error."
    told = in_options("Leave it out, ignore=['a b', 'c'].")
    assert told == "Leave it out, --ignore 'a b,c'."


def test_survival_times(tmp_path):
    """Events and strata are columns that are no covariates."""
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(draw.normal(size=(60, 2)), columns=["a", "b"])
    frame["time"] = draw.exponential(np.exp(-frame["a"]))
    frame["died"] = draw.integers(0, 2, 60)
    frame["site"] = draw.choice(["north", "south"], 60)
    frame.to_csv(tmp_path / "times.csv", index=False)
    saved = tmp_path / "run.dbrm"
    options = ["--response", "time", "--event", "died", "--strata", "site", "--family", "cox"]
    done = run("fit", tmp_path / "times.csv", *options, "--algorithm", "enumerate", "--out", saved)
    assert done.exit_code == 0, done.output
    assert "log hazard ratio of time" in run("show", saved).output
    assert dbrm.load(saved).recipe.input_names == ("a", "b")
    answer = run("predict", saved, tmp_path / "times.csv", "--strata", "site")
    assert answer.exit_code == 0, answer.output
    assert len(answer.output.splitlines()) == 61
    page = tmp_path / "page.html"
    command = ["report", saved, page, "--data", tmp_path / "times.csv"]
    assert "give --event" in run(*command).stderr
    assert "no column 'dead'" in run(*command, "--event", "dead").stderr
    assert run(*command, "--event", "died").exit_code == 0
    assert "concordance" in page.read_text(encoding="utf-8")


def test_laws(tmp_path, rng):
    """A pendulum: the constant with its interval, and what simpler formulas explain."""
    length, mass = rng.uniform(0.2, 2.0, 60), rng.uniform(0.1, 1.0, 60)
    period = 2.006 * np.sqrt(length) + 0.005 * rng.normal(size=60)
    pd.DataFrame({"length": length, "mass": mass, "period": period}).to_csv(
        tmp_path / "pendulum.csv", index=False
    )
    short = ("--n-chains", "1", "--n-populations", "2", "--seed", "1", "--no-check")
    arguments = ("fit", tmp_path / "pendulum.csv", "--response", "period", "--laws", *short)
    result = run(*arguments, "--units", "length=m, mass=kg", "--out", tmp_path / "run.dbrm")
    assert result.exit_code == 0, result.output
    assert "2.00" in result.stdout
    assert "*sqrt_abs(length)" in result.stdout
    assert "Constants of the best formula, with 95 % intervals" in result.stdout
    assert "short number  probable" in result.stdout
    assert "The most probable formula of every complexity" in result.stdout
    assert "Probability that the best formula is the law: 0.9" in result.stdout
    assert "Nothing is left beside the best formula" in run("show", tmp_path / "run.dbrm").stdout
    assert dbrm.load(tmp_path / "run.dbrm").record.extrapolate == "follow"
    mistaken = run(*arguments, "--units", "length")
    assert mistaken.exit_code == 2
    assert "as period=day,mass=kg" in mistaken.output
