"""Pictures inside the page: SVG that follows the page's colours, light or dark."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import Any

from dbrm.report.style import BLUE

__all__ = ["inline_svg", "page_style"]

_GREY = re.compile(r"#([0-9a-fA-F]{2})\1\1\b")
# Places of lines and letters: a hundredth of a point is finer than any screen.
_PLACES = re.compile(r'\b(?:d|x|y|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@contextmanager
def page_style() -> Iterator[None]:
    """Draw with letters that stay letters, the same bytes every time, on no background."""
    from matplotlib import rc_context

    options = {"svg.fonttype": "none", "svg.hashsalt": "dbrm", "figure.facecolor": "none"}
    with rc_context({**options, "axes.facecolor": "none", "savefig.facecolor": "none"}):
        yield


def inline_svg(draw: Callable[[], Any], name: str, alt: str) -> str:
    """Draw a picture and return it as an ``svg`` element for the page.

    Parameters
    ----------
    draw
        Returns matplotlib axes or a figure.
    name
        Goes before every id of the picture, so that two pictures on a page do not meet.
    alt
        What the picture shows, for readers who do not see it.
    """
    buffer = StringIO()
    with page_style():
        drawn = draw()
        figure = getattr(drawn, "figure", drawn)
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", metadata=metadata, bbox_inches="tight")
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = _PLACES.sub(lambda place: _DIGITS.sub(r"\1", place[0]), text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', rf"\1{name}-", text)
    text = re.sub(
        r'(font: [^;"]*?)\'DejaVu Sans\'[^;"]*', rf"\1{_FONT}".replace("'", "&#39;"), text
    )
    text = _GREY.sub(_as_ink, text).replace(BLUE.lower(), "var(--accent)")
    label = f'role="img" aria-label="{escape(alt)}"'
    return re.sub(r'<svg ([^>]*?)width="([\d.]+)pt" height="[\d.]+pt"', rf"<svg {label} \1", text)


def _as_ink(match: re.Match[str]) -> str:
    """A grey as a mixture of the page's ink and paper: black is ink, white is paper."""
    ink = round(100 * (1 - int(match[1], 16) / 255))
    return f"color-mix(in srgb, var(--ink) {ink}%, var(--card))"
