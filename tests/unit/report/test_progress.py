"""Tests of the progress bar."""

import re
from io import StringIO

import pytest
from rich.console import Console

from dbrm.evolution import ChainProgress
from dbrm.report import progress_bar


def last_frame(n_chains, updates, *, width=100, time_budget=None, phase=""):
    """What the bar shows after some updates, without colours."""
    console = Console(file=StringIO(), force_terminal=True, width=width)
    with progress_bar(n_chains, 10, time_budget, console) as board:
        if phase:
            board.show_phase(phase)
        for chain, chain_progress in updates:
            board.update_chain(chain, chain_progress)
        frame = Console(file=StringIO(), width=width)
        frame.print(board.get_renderable())
        return frame.file.getvalue()


def chain_progress(population, evaluated, log_posterior, formula):
    return ChainProgress(population, 10, evaluated, log_posterior, formula)


def test_it_counts_chains_populations_and_models():
    updates = [
        (0, chain_progress(10, 500, -3.0, "x")),
        (0, None),
        (1, chain_progress(4, 1000, -5.0, "y")),
    ]
    text = last_frame(3, updates)
    assert "1/3 chains done" in text
    assert "14/30 populations" in text
    assert "1,500 models" in text
    assert re.search(r"\d:\d\d:\d\d left", text)


def test_it_shows_the_best_formula_of_all_chains():
    updates = [(0, chain_progress(1, 1, -3.0, "sin(x)")), (1, chain_progress(1, 1, -5.0, "y"))]
    assert "best so far: sin(x)" in last_frame(2, updates)
    assert "best so far: z" in last_frame(2, [*updates, (1, chain_progress(2, 1, -1.0, "z"))])


def test_it_says_what_the_run_does():
    assert "testing simple features" in last_frame(1, [], phase="testing simple features")
    updates = [(0, chain_progress(1, 1, -3.0, "sin(x)"))]
    assert "searching; best so far: sin(x)" in last_frame(1, updates, phase="searching")


@pytest.mark.parametrize("width", [60, 100])
def test_a_long_formula_is_cut_to_one_line(width):
    text = last_frame(1, [(0, chain_progress(1, 1, -3.0, "x*" * 200))], width=width)
    lines = [line for line in text.splitlines() if "x*" in line]
    assert len(lines) == 1
    assert lines[0].rstrip().endswith("…")


def test_the_time_left_is_at_most_the_budget():
    slow = [(0, chain_progress(1, 1, -3.0, "x"))]
    assert "0:00:07 left" in last_frame(1, [], time_budget=7.2)
    assert "left" not in last_frame(1, [])
    assert "left" in last_frame(1, slow)


def test_brackets_in_names_are_no_markup():
    assert "`price [$]`" in last_frame(1, [(0, chain_progress(1, 1, -3.0, "`price [$]`"))])
