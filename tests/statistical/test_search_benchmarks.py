"""Benchmarks of the search measure what they say: `search_goals`, `mass_found` in miniature."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = ("page", "mass_found", "laws", "memory", "tall_data", "search_goals_page", "search_goals")
QUICK = {"n_chains": 1, "n_populations": 2, "sweep": 2}


@pytest.fixture
def modules(monkeypatch, tmp_path):
    """The programs, which write into a folder of their own here."""
    if not FOLDER.is_dir():
        pytest.skip("the benchmarks are not here")
    monkeypatch.syspath_prepend(str(FOLDER))
    page = import_module("page")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "NUMBERS", tmp_path / "numbers")
    yield SimpleNamespace(**{name: import_module(name) for name in NAMES})
    for name in NAMES:
        sys.modules.pop(name, None)


def curve(seconds, log_mass):
    return pd.DataFrame({"cpu_seconds": seconds, "log_mass": log_mass})


def test_a_search_is_ahead_where_it_finds_more_in_the_same_time(modules):
    old = curve([1.0, 2.0, 4.0], [-3.0, -2.0, -1.0])
    ahead, ratio = modules.mass_found.compare(old, curve([0.5, 1.0, 2.0], [-3.0, -2.0, -1.0]))
    np.testing.assert_allclose(ahead, [1.0, 1.0, 0.0])
    assert ratio == 2.0
    # Later to the first point, and never as far.
    ahead, ratio = modules.mass_found.compare(old, curve([2.0, 4.0], [-2.5, -1.5]))
    np.testing.assert_array_equal(ahead, [-np.inf, -0.5, -0.5])
    assert np.isnan(ratio)


def test_goals_are_held_or_missed_by_so_much(modules):
    judge = {name: goal.judge for name, goal in modules.search_goals_page.GOALS.items()}
    fits = {str(10**k): {"seconds": seconds} for k, seconds in ((3, 1.0), (4, 2.0), (5, 6.0))}
    assert judge["gaussian"](fits) == ("1 / 2 / 6 s", [])
    fits["10000"] = {"seconds": 7.5}
    assert judge["gaussian"](fits)[1] == ["3.00 × 2.5 s", "1.25 × the time of ten times the rows"]
    found = {"found": 18, "runs": 20, "seconds": 1.0, "spread": 0.1}
    assert judge["deep_law"](found)[1] == []
    assert judge["parity"](found)[1] == ["2 seeds short"]
    checks = {"seconds": 30.0, "checks": 50, "failed": ["check_fit2d_1sample"]}
    assert judge["regressor_checks"](checks)[1] == ["fails check_fit2d_1sample"]
    fits = [
        {"family": "gaussian", "unit": "MB", "measured": 300.0, "limit": 400.0},
        {"family": "poisson", "unit": "tables", "measured": 4.5, "limit": 3.0},
    ]
    assert judge["memory"]({"fits": fits}) == (
        "300 MB (gaussian) / 4.5 tables (poisson)",
        ["1.50 × 3 tables"],
    )
    mass = {"99 %": 2e-3, "most": 0.1, "populations": 300, "data": ["spam"], "share": 0.98}
    assert judge["missed_mass"](mass)[1] == ["98.0% of the populations"]


def test_every_goal_is_measured(modules):
    assert list(modules.search_goals_page.GOALS) == list(modules.search_goals.MEASUREMENTS)


@pytest.mark.slow
def test_mass_is_measured_once_and_compared(modules, tmp_path):
    """The same search as old and as new finds the same mass; a run goes on where it ended."""
    program = modules.mass_found
    for search in program.SEARCHES:
        path = tmp_path / f"mass_found_{search}.csv"
        program.measure(path, ["parity of five signs"], (2,), n_seeds=1)
        program.measure(path, ["parity of five signs"], (2, 3), n_seeds=1)
    runs = {name: pd.read_csv(tmp_path / f"mass_found_{name}.csv") for name in program.SEARCHES}
    assert list(runs["new"]["populations"]) == [2, 3]
    np.testing.assert_array_equal(runs["new"]["log_mass"], runs["old"]["log_mass"])
    program.write_page()
    assert (tmp_path / "mass_found.png").stat().st_size > 10_000
    assert "| parity of five signs |" in (tmp_path / "mass_found.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_rows_are_measured_one_by_one_and_written(modules, tmp_path):
    goals = modules.search_goals
    found = {
        "candidates": goals.candidates(1, n=200, settings=QUICK | {"n_populations": 4}),
        "gaussian": goals.gaussian(1, sizes=(200,)),
        "logistic": goals.logistic(1, sizes=(200,)),
        "latent": goals.latent(1, n=60, settings={**QUICK, "n_iter": 20}),
        "exoplanets": goals.exoplanets(1, settings=QUICK),
        "parity": goals.parity(1, settings=QUICK | {"max_complexity": 3}),
        "deep_law": goals.deep_law(2, settings=QUICK),
    }
    assert found["exoplanets"]["SemiMajorAxisAU"]["found"] == 1
    assert found["candidates"]["candidates"] > 100
    assert goals.BEST_EVER.parent == tmp_path
    assert found["parity"]["found"] == 0
    given = {"start": ["x0*x1*x2*x3*x4"]}
    assert goals.parity(1, settings=QUICK | given)["found"] == 1
    for name, numbers in found.items():
        kept = modules.page.kept().get("search_goals", {})
        modules.page.keep("search_goals", kept | {name: {**numbers, "measured": "here"}})
    text = goals.write_page().read_text(encoding="utf-8")
    assert text.count("not measured") == len(goals.MEASUREMENTS) - len(found)
    assert "| 0 of 1, " in text
