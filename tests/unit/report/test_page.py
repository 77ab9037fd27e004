"""Tests of the report page, as text; tests/browser opens it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import dbrm
from dbrm.report import FORMATS
from dbrm.report.contents import describe
from dbrm.report.html import to_html

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects attributes and words."""

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.words, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(kepler):
    return to_html(describe(kepler, kepler.rows()))


def test_the_page_is_well_formed(page):
    parsed = Page(page)
    assert parsed.open == []
    ids = [value for _, name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    pointed = re.findall(r'(?:href="|url\()#([\w-]+)', page)
    assert pointed
    assert set(pointed) <= set(ids)


def test_the_page_needs_nothing_from_elsewhere(page):
    """Addresses occur only as names of XML vocabularies."""
    used = [v for _, name, v in Page(page).attributes if name in ("src", "href", "xlink:href")]
    assert all(value.startswith(("#", "data:")) for value in used)
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert all(address.startswith("http://www.w3.org/") for address in addresses)
    assert "@import" not in page


def test_all_parts_are_there_in_order(page):
    sections = [v for tag, name, v in Page(page).attributes if (tag, name) == ("section", "id")]
    assert sections == [
        *("verdict", "formula", "sure", "scores", "whatif", "simpler", "covariates"),
        *("features", "models", "pictures"),
        *("checks", "data", "reproduce", "cite", "reading"),
    ]


def test_the_page_tells_what_the_posterior_says(page, kepler):
    text = Page(page).text
    assert "Which formula explains SemiMajorAxisAU?" in text
    assert kepler.best_model.to_latex() in text
    assert kepler.best_model.to_text() in text
    assert kepler.best_model.to_sql() in text
    assert "60 rows" in text
    assert "3 covariates" in text
    assert "random_state=1" in text
    assert "transforms=['troot']" in text
    assert "arXiv:1806.02160" in text
    assert re.findall("<[a-z/]", text) == []


def test_doubts_are_said_before_the_formula(kepler, with_diagnostics):
    doubtful = Page(to_html(describe(with_diagnostics(kepler, disagreements=[0]), None))).text
    assert 0 < doubtful.index("The chains disagree") < doubtful.index("The most probable formula")
    calm = Page(to_html(describe(kepler, None))).text
    assert "disagree" not in calm


def test_names_are_text_never_markup(vague, tmp_path):
    vague.report(tmp_path / "vague.html")
    page = (tmp_path / "vague.html").read_text("utf-8")
    parsed = Page(page)
    assert parsed.tags.count("script") == 4
    assert "<script>alert" not in page
    assert "Which formula explains <i>y</i>?" in parsed.text
    assert "a & b" in parsed.text
    assert "i" not in {tag for tag, name, _ in parsed.attributes if name == "id"}


def test_the_same_posterior_gives_the_same_page(kepler, page):
    assert to_html(describe(kepler, kepler.rows())) == page


def test_the_title_can_be_given(kepler, tmp_path):
    kepler.report(tmp_path / "run.html", title="What makes an orbit large?")
    assert "<title>What makes an orbit large?</title>" in (tmp_path / "run.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"random_state": 1}, "gives the same numbers"),
        ({}, "No seed was given"),
        ({"random_state": 1, "time_budget": 30.0}, "ended by the clock"),
    ],
)
def test_it_says_whether_the_run_can_be_repeated(planets, options, words):
    table = planets[0].assign(axis=planets[1])
    effort = {"transforms": [], "n_chains": 1, "n_populations": 1, "scale": "standard"}
    posterior = dbrm.fit("axis ~ PeriodDays + RadiusJpt", data=table, **effort, **options)
    text = Page(to_html(describe(posterior, None))).text
    assert words in text
    assert "dbrm.fit( 'axis ~ PeriodDays + RadiusJpt', data=table," in text
    assert "covariates are standardised" in text


def test_a_saved_run_gives_the_same_page(kepler, tmp_path):
    kepler.save(tmp_path / "run.dbrm")
    again = dbrm.load(tmp_path / "run.dbrm")
    assert to_html(describe(again, None)) == to_html(describe(kepler, None))


def test_a_function_without_program_text_is_no_obstacle(rng):
    bend = dbrm.Transform("bend", lambda x: x / (1.0 + np.abs(x)))
    x = rng.normal(size=(60, 1))
    y = bend.function(x[:, 0]) + 0.01 * rng.normal(size=60)
    posterior = dbrm.fit(x, y, transforms=[bend], n_chains=1, n_populations=2, random_state=1)
    assert "bend" in posterior.best_model.formula
    text = Page(to_html(describe(posterior, None))).text
    assert "As text, LaTeX" in text
    assert "SQL" not in text
    assert "Replace what is in angle brackets" in text


def test_the_code_on_the_page_repeats_the_run(kepler, planets, page):
    from dbrm.report.rerun import rerun_code

    namespace = {"X": planets[0], "y": planets[1]}
    exec(rerun_code(kepler), namespace)
    assert namespace["posterior"].best_model.formula == kepler.best_model.formula


def test_another_format_is_a_function_of_the_contents(kepler, tmp_path, monkeypatch):
    """Chosen by the ending of the file; anything else is HTML."""
    monkeypatch.setitem(FORMATS, ".md", lambda contents: f"# {contents.title}\n")
    kepler.report(tmp_path / "run.md", title="Why?")
    assert (tmp_path / "run.md").read_text() == "# Why?\n"
    kepler.report(tmp_path / "run.txt", title="Why?")
    assert (tmp_path / "run.txt").read_text().startswith("<!DOCTYPE html>")
