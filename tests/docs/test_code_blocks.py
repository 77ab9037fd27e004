"""The code in README.md and the tutorials runs, and what it is said to print is printed."""

import logging
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tutorials", "how-to")
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "how-sure.md",
    *(page for name in FOLDERS for page in sorted((ROOT / "docs" / name).glob("*.md"))),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def blocks(text):
    """Return the fenced blocks of a page as pairs of language and content."""
    return BLOCK.findall(text)


def words(text):
    return set(re.findall(r"[A-Za-z_]{2,}", text))


@pytest.fixture
def quiet_again():
    """What a page changes in the package's logger is undone."""
    logger = logging.getLogger("dbrm")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


# Pages with long fits, of what other tests check as well.
LONG = {
    "classification.md",
    "counts.md",
    "kepler.md",
    "latent.md",
    "logic.md",
    "model-classes.md",
    "own-family.md",
    "predict-well.md",
    "report.md",
    "run-longer.md",
    "scikit-learn.md",
    "survival.md",
}
MARKED = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in LONG))
    for page in PAGES
]


@pytest.mark.usefixtures("quiet_again")
@pytest.mark.parametrize("page", MARKED)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    """Blocks of one page run in order in one namespace; a ``text`` block is what was printed.

    Only words are compared: times and last digits differ between machines.
    """
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "__main__"}, ""
    for language, content in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(content, str(page), "exec"), namespace)
            printed = capsys.readouterr().out
        elif language == "text" and printed:
            assert words(content) <= words(printed)


def test_blocks_are_found():
    """Negative control: the pattern above sees the code."""
    languages = [language for page in PAGES for language, _ in blocks(page.read_text("utf-8"))]
    assert languages.count("python") >= 3
    assert languages.count("text") >= 1


def test_the_commands_of_the_readme_are_those_that_ci_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [content.strip() for language, content in blocks(readme) if language == "bash"]
    assert commands == ["pip install . && dbrm demo", 'pip install ".[test]" && pytest']
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(command in script for command in commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    # Code may look like a link: step[q0.5](x).
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(((?!https?:|#)[^)#]+)", prose)
    assert [target for target in targets if not (page.parent / target).exists()] == []
