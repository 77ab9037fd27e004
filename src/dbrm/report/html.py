"""The report as one HTML page that needs no network, and a posterior in a notebook's cell."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dbrm.report.contents import Contents
from dbrm.report.findings import find, headline
from dbrm.report.mathml import effect_mathml, feature_mathml, model_mathml, number_mathml
from dbrm.report.style import BLUE
from dbrm.report.wording import format_probability

if TYPE_CHECKING:
    from dbrm.features import Feature
    from dbrm.posterior import FittedModel, Posterior
    from dbrm.report.gallery import Picture

__all__ = ["inline_svg", "page_style", "posterior_html", "to_html"]


def to_html(contents: Contents) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dbrm.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "math": _math,
        "effect": lambda name: Markup(effect_mathml(name)),
        "formula": _formula,
        "number": _number,
        "probability": format_probability,
        "odds": _odds,
        "svg": _svg,
    }
    return environment.get_template("page.html").render(report=contents)


def _math(feature: "Feature") -> Markup:
    return Markup(feature_mathml(feature))


def _formula(model: "FittedModel") -> Markup:
    return Markup("".join(model_mathml(model)))


def _number(value: float) -> str:
    text = f"{value:.4g}"
    return Markup(number_mathml(value)) if "e" in text else text.replace("-", "−")


def _odds(ratio: float) -> str:
    if ratio >= 1e6:
        return "over a million"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def _svg(picture: "Picture") -> Markup:
    alt = f"{picture.title}. {picture.caption}"
    return Markup(inline_svg(picture.draw, picture.name, alt))


_GREY = re.compile(r"#([0-9a-fA-F]{2})\1\1\b")
# Coordinates: a hundredth of a point is finer than any screen.
_COORDINATES = re.compile(r'\b(?:d|x|y|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@contextmanager
def page_style() -> Iterator[None]:
    """Draw with text as text, the same bytes every time, on no background."""
    from matplotlib import rc_context

    options = {"svg.fonttype": "none", "svg.hashsalt": "dbrm", "figure.facecolor": "none"}
    with rc_context({**options, "axes.facecolor": "none", "savefig.facecolor": "none"}):
        yield


def inline_svg(draw: Callable[[], Any], name: str, alt: str) -> str:
    """Draw a picture and return it as an ``svg`` element in the page's colours, light or dark.

    Parameters
    ----------
    draw
        Returns matplotlib axes or a figure.
    name
        Prefix of every id in the picture, so that ids are unique on the page.
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
    text = _COORDINATES.sub(lambda match: _DIGITS.sub(r"\1", match[0]), text)
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


# In a notebook: most features, and the least probable one.
_MOST, _WORTH_A_ROW = 6, 0.001
_COLOURS = {"good": "#0b7a4b", "care": "#b37400", "bad": "#c5372e"}
_CELL = "padding:.15em 1em .15em 0;text-align:left;border:0"


def posterior_html(posterior: "Posterior", heading: str) -> str:
    """A posterior in a notebook: the formula, the headline and a few features.

    Colours are inherited from the notebook, so that it can be light or dark.
    """
    first = headline(find(posterior))
    formula = " ".join(model_mathml(posterior.best_model))
    probability = format_probability(posterior.best_model.probability)
    line = f"border-left:4px solid {_COLOURS[first.level]};padding-left:.6em;margin:.4em 0"
    return (
        '<div style="line-height:1.5;max-width:60em">'
        f'<div style="opacity:.7">{escape(heading)}</div>'
        f'<div style="font-size:1.2em;margin:.4em 0;overflow-x:auto">{formula}</div>'
        f'<div style="{line}">'
        f"<b>{escape(first.title)}.</b> {escape(first.text)}</div>"
        f"{_notebook_table(posterior)}"
        f'<div style="opacity:.7">Probability of this formula {escape(probability)}; '
        f"{len(posterior.models):,} models kept.</div></div>"
    )


def _notebook_table(posterior: "Posterior") -> str:
    shown = [f for f in posterior.features_above(_WORTH_A_ROW) if f not in posterior.always]
    rows = "".join(
        f'<tr><td style="{_CELL}">{feature_mathml(feature)}</td>'
        f'<td style="{_CELL}">{escape(format_probability(posterior.inclusion(feature)))}</td>'
        f'<td style="{_CELL}">{feature.complexity}</td></tr>'
        for feature in shown[:_MOST]
    )
    heads = "".join(
        f'<th style="{_CELL}">{name}</th>' for name in ("feature", "inclusion", "complexity")
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
