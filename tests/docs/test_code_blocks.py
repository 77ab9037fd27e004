"""The code in README.md and the documentation runs, and what it is said to print is printed."""

import logging
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tutorials", "how-to")
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(page for name in FOLDERS for page in sorted((ROOT / "docs" / name).glob("*.md"))),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def blocks(text):
    """Return the fenced blocks of a page as pairs of language and content."""
    return BLOCK.findall(text)


# Words with their signs, and numbers.
TOKEN = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?|[^\W\d]\w*")
# A printed number may differ by this share of it, and by one unit of its last digit: fits are
# the same on one machine, but their last digits are not on all.
SHARE = 0.01


def tokens(text):
    """Words and numbers of a text, without its signs and frames."""
    return TOKEN.findall(text.replace("\u2212", "-"))


def number(token):
    """The value of a token that has digits; NaN and inf are words."""
    try:
        return float(token.replace(",", "")) if token[-1].isdigit() else None
    except ValueError:
        return None


def close(said, found):
    """Whether a printed token is the one the page shows, numbers up to the tolerance."""
    first, second = number(said), number(found)
    if first is None or second is None:
        return said == found
    digits = len(said.partition("e")[0].partition(".")[2])
    unit = 10.0**-digits * (10.0 ** int(said.partition("e")[2] or 0))
    return abs(first - second) <= SHARE * abs(second) + 1.001 * unit


def find_line(line, printed):
    """Position of the tokens of a line among those printed, one after the other, or None."""
    wanted = tokens(line)
    for start in range(len(printed) - len(wanted) + 1):
        if all(map(close, wanted, printed[start : start + len(wanted)])):
            return start
    return None


# What depends on the machine: seconds, and how many models were evaluated until a time.
TIMED = re.compile(r"\d s\b|\d s;|seconds|\bMB\b|evaluations")


def missing_lines(content, printed):
    """Lines of a page's output that the code did not print."""
    known = tokens(printed)
    lines = [line for line in content.splitlines() if tokens(line) and not TIMED.search(line)]
    return [line for line in lines if find_line(line, known) is None]


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
    "laws.md",
    "logic.md",
    "model-classes.md",
    "own-family.md",
    "predict-well.md",
    "report.md",
    "run-longer.md",
    "scikit-learn.md",
    "survival.md",
}
# Blocks of text that no Python code prints: the demo, compared in tests/unit/cli/test_demo.py, the
# tree of the package, in test_architecture.py, and commands.
NOT_PRINTED = {"README.md": 1, "architecture.md": 1, "benchmarks.md": 2}
MARKED = [
    pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in LONG))
    for page in PAGES
]


@pytest.mark.usefixtures("quiet_again")
@pytest.mark.parametrize("page", MARKED)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    """Blocks of one page run in order in one namespace; a ``text`` block is what was printed.

    Every line of it must have been printed, its words exactly and its numbers to one percent and
    one unit of the last digit; lines with seconds or counts of evaluations are left out.
    """
    monkeypatch.chdir(tmp_path)
    namespace, printed, n_unchecked = {"__name__": "__main__"}, "", 0
    for language, content in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(content, str(page), "exec"), namespace)
            printed = capsys.readouterr().out
        elif language == "text":
            n_unchecked += not printed
            assert not printed or missing_lines(content, printed) == []
    # A block that nothing printed is a mistake, unless it is known not to be output of Python.
    assert n_unchecked == NOT_PRINTED.get(page.name, 0)


# Decimal numbers in sentences; those in code, formulas and links are not.
DECIMAL = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)")
NO_SENTENCE = re.compile(
    r"^```.*?^```$|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", flags=re.MULTILINE | re.DOTALL
)
# Numbers that a page does not compute: versions, settings, limits, and what was measured elsewhere.
FROM_ELSEWHERE = {
    "README.md": {"3.11", "3.14", "1806.02160"},
    "how-sure.md": {"0.1", "0.2", "0.7", "0.8", "0.99"},
    "latent.md": {"2.4", "0.6"},
    "kepler.md": {"0.002"},
    "check-your-data.md": {"99.95"},
    "gpu.md": {"0.4", "0.2", "0.06", "0.3", "1.5", "1.3"},
    "long-runs.md": {"1.05", "0.2"},
    "report.md": {"0.01", "1.5"},
    "tall-data.md": {"2201.13198", "0.1"},
}


def stray_numbers(text):
    """Decimal numbers in the sentences of a page that no block of it has."""
    shown = " ".join(content for _, content in blocks(text))
    said = set(DECIMAL.findall(NO_SENTENCE.sub("", text)))
    return {number for number in said if number.lstrip("0") not in shown}


READ = [page for page in PAGES if page.parent.name in FOLDERS or page.name in FROM_ELSEWHERE]


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_sentences_repeat_numbers_of_the_output(page):
    """What a sentence says was found is in a block, and blocks are compared with the code."""
    text = page.read_text(encoding="utf-8")
    assert stray_numbers(text) <= FROM_ELSEWHERE.get(page.name, set())


def test_a_stray_number_would_be_noticed():
    """Negative control."""
    page = "```text\nprobability 0.1029\n```\nIts probability is {}.\n"
    assert stray_numbers(page.format("0.1029")) == set()
    assert stray_numbers(page.format("0.7697")) == {"0.7697"}


def test_blocks_are_found():
    """Negative control: the pattern above sees the code."""
    languages = [language for page in PAGES for language, _ in blocks(page.read_text("utf-8"))]
    assert languages.count("python") >= 3
    assert languages.count("text") >= 1


def test_a_wrong_number_would_be_noticed():
    """Negative control, with a number that is close enough."""
    assert missing_lines("probability 0.7697", "The probability 0.7701 of this") == []
    assert missing_lines("probability 0.7697", "The probability 0.1029 of this") != []
    assert missing_lines("12,000 rows", "12,010 rows") == []
    assert missing_lines("chains agree", "chains disagree") != []
    assert missing_lines("1,000 models, 3.1 s", "900 models, 4 s") == []


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
