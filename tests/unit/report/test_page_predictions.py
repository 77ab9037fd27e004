"""Tests of what the page is given to predict with, and of the words beside it."""

import re
from importlib.resources import files

import numpy as np
import pandas as pd

import dbrm
from dbrm.report.what_if import describe_path, describe_what_if


def test_names_cannot_end_the_script(vague):
    data = describe_what_if(vague).data
    assert "alert(1)" in data
    assert not set("<>&").intersection(data)


def test_programs_of_the_page_compile_no_text():
    """Data are interpreted: no eval, no Function, no markup made from strings, no network."""
    forbidden = (
        r"\beval\b|\bFunction\s*\(|innerHTML|document\.write|fetch\(|XMLHttpRequest|import\("
    )
    folder = files("dbrm.report").joinpath("templates")
    programs = [file for file in folder.iterdir() if file.name.endswith(".js")]
    assert len(programs) > 4
    for file in programs:
        assert not re.search(forbidden, file.read_text("utf-8")), file.name


def test_the_page_says_which_models_predict(kepler):
    found = describe_what_if(kepler)
    assert found.has_formulas
    # Those with a remainder of weak effects among them.
    count = len(kepler._predictive.models)
    assert count >= kepler.n_averaged
    assert f"all {count:,} formulas" in found.words or "the formula" in found.words


def test_a_page_without_predictions_says_why():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=40), "g": ["u", "v"] * 20})
    effort = {"n_chains": 1, "n_populations": 1, "n_iter": 20, "random_state": 1}
    posterior = dbrm.fit(
        table, table["x"] + rng.normal(size=40), latent=["RandomIntercept(g)"], **effort
    )
    found = describe_what_if(posterior)
    assert found.data == ""
    assert "latent effects" in found.words


def test_the_path_says_what_is_lost(kepler):
    rows = describe_path(kepler)
    best = next(row for row in rows if row["best"])
    assert best["lost"] == 0.0
    assert all(row["ratio"] >= 1.0 for row in rows)
    assert [row["complexity"] for row in rows] == kepler.path["complexity"].tolist()
