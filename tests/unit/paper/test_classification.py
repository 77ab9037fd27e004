"""Tests of the classification studies and their pages."""

import numpy as np
import pandas as pd
import pytest

from dbrm import datasets
from dbrm_paper import competitors
from dbrm_paper.classification import Classification
from dbrm_paper.classification_pages import accuracy_page, complexity_page, strategy_page
from dbrm_paper.pages import write_page
from dbrm_paper.runs import Options


def record(method, counts, *, seed=0, complexities="", preset="paper_code"):
    tp, fn, fp, tn = map(str, counts)
    return {
        "preset": preset,
        "method": method,
        "chains": "1",
        "populations": "",
        "seed": str(seed),
        "tp": tp,
        "fn": fn,
        "fp": fp,
        "tn": tn,
        "log_score": "-0.1",
        "complexities": complexities,
        "nonlinear": "",
        "seconds": "1.0",
    }


def test_methods_without_a_random_outcome_run_once():
    keys = Classification("asteroids").plan(Options(runs=3))
    counts = pd.Series([key["method"] for key in keys]).value_counts()
    assert all(counts[name] == 1 for name in ("LASSO", "RIDGE", "NBAYES", "LR", "LBRM"))
    assert all(counts[name] == 3 for name in ("DBRM_G", "DBRM_R_PAR", "DBRM_G_4", "RFOREST"))
    assert counts.size == 5 + 6 + 8
    assert len({tuple(key.values()) for key in keys}) == len(keys)
    assert {key["chains"] for key in keys if key["method"] == "DBRM_G_PAR"} == {"32"}


def test_without_xgboost_boosting_is_left_out(monkeypatch):
    monkeypatch.setattr(competitors, "find_spec", lambda name: None)
    methods = {key["method"] for key in Classification("spam").plan(Options(runs=1))}
    assert not methods & {"TXGBOOST", "LXGBOOST"}
    assert "LASSO" in methods


@pytest.mark.parametrize(
    "method", ["DBRM_G_PAR", pytest.param("DBRM_R_PAR", marks=pytest.mark.slow), "DBRM_G_3"]
)
def test_a_miniature_of_breast_cancer(raw, method):
    study = Classification("breast-cancer")
    (key,) = study.plan(Options(runs=1, chains=1, populations=1), (method,))
    values = study.run(key)
    assert sum(int(values[name]) for name in ("tp", "fn", "fp", "tn")) == 426
    assert int(values["tp"]) + int(values["fn"]) == 159
    assert (int(values["tp"]) + int(values["tn"])) / 426 > 0.9
    assert values["complexities"].startswith("1:")


def test_spam_is_scaled_by_all_rows(raw):
    train, y, test, truth = Classification("spam")._data(scaled=True)
    split = datasets.load_spam()
    everything = pd.concat([split.train, split.test]).drop(columns="spam")
    expected = (split.test.drop(columns="spam") - everything.mean()) / everything.std()
    np.testing.assert_allclose(test, expected, atol=1e-10)
    assert (len(train), y.sum(), truth.sum()) == (1536, 595, 1218)


def test_a_miniature_of_our_own_setting_for_spam(raw):
    """57 logarithms and 54 steps, those of run lengths being constant, are in every model."""
    study = Classification("spam")
    (key,) = study.plan(Options(runs=1, chains=1, populations=1), ("DBRM_BEST",))
    values = study.run(key)
    assert sum(int(values[name]) for name in ("tp", "fn", "fp", "tn")) == 3065
    assert (int(values["tp"]) + int(values["tn"])) / 3065 > 0.93
    counts = dict(part.split(":") for part in values["complexities"].split())
    assert (int(counts["1"]), int(counts["2"])) == (57, 54)
    assert "step[0](capital_run_length_total)" not in values["nonlinear"]


def test_rates_by_both_definitions(tmp_path):
    """8 of 10 positives and 15 of 20 negatives are found: by the scripts 2/12 and 5/25."""
    runs = [record("DBRM_G", (8, 2, 5, 15)), record("DBRM_G", (10, 0, 0, 20), seed=1)]
    page = accuracy_page("table1", "asteroids", [*runs, record("LBRM", (9, 1, 0, 20))])
    (section,) = page.sections
    assert [row[0] for row in section.rows] == ["LBRM", "DBRM_G"]
    row = dict(zip(section.header, section.rows[1], strict=True))
    assert row["ACC"] == f"{(23 / 30 + 1) / 2:.4f} (0.7667, 1.0000)"
    assert row["FNR"] == f"{1 / 12:.4f} (0.0000, {2 / 12:.4f})"
    assert row["FPR"] == "0.1000 (0.0000, 0.2000)"
    assert (row["true FNR"], row["true FPR"], row["runs"]) == ("0.1000", "0.1250", "2")
    assert section.rows[1][3] == "0.9998 (0.9942, 1.0000)"
    text, table, picture = write_page(page, tmp_path)
    assert "cannot be those that the paper defines" in text.read_text()
    assert "paper ACC" in table.read_text()
    assert picture.stat().st_size > 10_000


def test_complexities_are_averaged_over_runs():
    runs = [
        record("DBRM_G", (1, 0, 0, 1), complexities="1:9 2:3"),
        record("DBRM_G", (1, 0, 0, 1), complexities="1:8 12:1 10:1", seed=1),
    ]
    (section,) = complexity_page({"asteroids": runs}).sections
    ours = {row[0]: row[1:3] for row in section.rows}
    assert ours == {
        "1": ["8.50", "8.96"],
        "2": ["1.50", "2.58"],
        "10 and more": ["1.00", "0.00"],
        "Total": ["11.00", "11.54"],
    }


def test_strategies_have_a_page_of_their_own():
    runs = [record(name, (9, 1, 1, 9)) for name in ("DBRM_G", "DBRM_G_2", "DBRM_G_PAR", "LASSO")]
    (section,) = strategy_page({"spam": runs}).sections
    assert sorted(row[0] for row in section.rows) == ["DBRM_G", "DBRM_G_2"]
    shown = accuracy_page("table3", "spam", runs).sections[0].rows
    assert sorted(row[0] for row in shown) == ["DBRM_G", "DBRM_G_PAR", "LASSO"]
