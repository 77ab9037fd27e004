"""Tests of `dbrm_paper.runs`."""

from dataclasses import dataclass

import pytest

from dbrm.errors import InvalidDataError
from dbrm_paper.runs import AbstractStudy, Options, Results, carry_out


@dataclass(frozen=True)
class Squares(AbstractStudy):
    """Squares of seeds; notes which were computed."""

    computed: list

    name = "squares"
    key_columns = ("seed",)
    value_columns = ("square", "seconds")

    def plan(self, options, methods=None):
        return [{"seed": str(seed)} for seed in range(options.runs)]

    def run(self, key):
        self.computed.append(key["seed"])
        return {"square": str(int(key["seed"]) ** 2)}


def run(folder, runs):
    study = Squares([])
    results = Results(folder, study)
    done = list(carry_out(study, study.plan(Options(runs)), results))
    return study.computed, done, results.records


def test_a_run_in_the_file_is_not_repeated(tmp_path):
    computed, done, _ = run(tmp_path, 2)
    assert (computed, done) == (["0", "1"], [0, 1, 2])
    computed, done, records = run(tmp_path, 4)
    assert (computed, done) == (["2", "3"], [2, 3, 4])
    assert [(one["seed"], one["square"]) for one in records] == [
        (str(seed), str(seed**2)) for seed in range(4)
    ]
    assert run(tmp_path, 3)[0] == []


def test_a_line_cut_off_is_dropped_and_its_run_repeated(tmp_path):
    run(tmp_path, 3)
    path = tmp_path / "squares.csv"
    whole = path.read_text()
    path.write_text(whole[: whole.rindex(",") - 1])
    computed, _, records = run(tmp_path, 3)
    assert computed == ["2"]
    assert [one["square"] for one in records] == ["0", "1", "4"]
    assert path.read_text().count("\n") == 4


def test_a_header_cut_off_starts_anew(tmp_path):
    (tmp_path / "squares.csv").write_text("seed,sq")
    assert run(tmp_path, 1)[0] == ["0"]


def test_records_of_another_version_are_refused(tmp_path):
    (tmp_path / "squares.csv").write_text("seed,cube\n0,0\n")
    with pytest.raises(InvalidDataError, match=r"expected seed, square, seconds.*another --out"):
        run(tmp_path, 1)


def test_what_was_done_is_kept_when_a_run_fails(tmp_path):
    study = Squares([])
    results = Results(tmp_path, study)
    keys = [{"seed": "1"}, {"seed": "none"}, {"seed": "2"}]
    with pytest.raises(ValueError, match="none"):
        list(carry_out(study, keys, results))
    assert [one["square"] for one in Results(tmp_path, study).records] == ["1"]
