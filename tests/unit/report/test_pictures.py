"""Tests of pictures inside the page."""

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from dbrm.report.html import inline_svg

NAME = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def axes():
    axes = Figure(figsize=(3, 2)).add_subplot()
    axes.plot([0, 1, 2], [0.123456789, 1, 0], color="#0072B2")
    axes.plot([0, 1, 2], [0.5, 1, 0], color="#999999")
    axes.text(0.5, 0.5, "0.123456789 <b>", parse_math=False)
    return axes


def read(text):
    return ElementTree.fromstring(text)


def test_letters_stay_as_they_are(axes):
    texts = [node.text for node in read(inline_svg(lambda: axes, "a", "alt")).iter(f"{NAME}text")]
    assert "0.123456789 <b>" in texts


def test_colours_follow_the_page(axes):
    text = inline_svg(lambda: axes, "a", "alt")
    assert "var(--accent)" in text
    assert "color-mix(in srgb, var(--ink) 40%, var(--card))" in text
    assert re.findall(r"#(?:([0-9a-f])\1{5}|0072b2)", text) == []


def test_it_has_words_for_those_who_do_not_see_it(axes):
    root = read(inline_svg(lambda: axes, "a", 'A "line" & more'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A "line" & more'


def test_ids_of_two_pictures_do_not_meet(axes):
    first, second = (set(re.findall(r'id="(.*?)"', inline_svg(lambda: axes, n, ""))) for n in "ab")
    assert first
    assert not first & second


def test_the_size_is_left_to_the_page(axes):
    root = read(inline_svg(lambda: axes, "a", ""))
    assert root.get("width") is root.get("height") is None
    assert root.get("viewBox")
