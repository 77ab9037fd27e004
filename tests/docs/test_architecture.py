"""Tests of docs/architecture.md: what it names exists, and no change touches many files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
CHANGES = re.findall(r"^\| (an? [^|]+) \| ([^|]+) \|$", TEXT, flags=re.MULTILINE)
PLACES = (ROOT / "src/dbrm", ROOT)


def files_in(cell):
    return re.findall(r"`([\w/.]+(?:\.py|\.md|/))`", cell)


def test_twelve_changes_are_listed():
    assert len(CHANGES) == 12


@pytest.mark.parametrize(("change", "cell"), CHANGES)
def test_a_change_touches_at_most_three_files(change, cell):
    files = files_in(cell)
    assert 1 <= len(files) <= 3, change
    for name in files:
        assert any((place / name).exists() for place in PLACES), name


def test_the_tree_is_the_tree():
    """Every package and module in the drawing exists, and every package is in the drawing."""
    drawn = set(re.findall(r"(?<![\w/.])(\w+(?:/|\.py))(?=\s)", TEXT.split("```")[1]))
    source = ROOT / "src/dbrm"
    packages = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    assert packages <= drawn
    modules = {name for name in drawn if name.endswith(".py")}
    assert modules
    assert all((source / name).exists() for name in modules)
