"""A posterior in a notebook: the formula, a verdict and a few features, in one cell.

Colours are inherited from the notebook, so that it can be light or dark.
"""

from html import escape
from typing import TYPE_CHECKING

from dbrm.report.findings import find, headline
from dbrm.report.mathml import feature_mathml, model_mathml
from dbrm.report.wording import format_probability

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["posterior_html"]

_MOST = 6
_WORTH_A_ROW = 0.001
_COLOURS = {"good": "#0b7a4b", "care": "#b37400", "bad": "#c5372e"}
_CELL = "padding:.15em 1em .15em 0;text-align:left;border:0"


def posterior_html(posterior: "Posterior", heading: str) -> str:
    """The findings as a small piece of HTML."""
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
        f"{_table(posterior)}"
        f'<div style="opacity:.7">Probability of this formula {escape(probability)}; '
        f"{len(posterior.models):,} models kept.</div></div>"
    )


def _table(posterior: "Posterior") -> str:
    chosen = [
        f for f in posterior.features_above(_WORTH_A_ROW) if f not in posterior._source.always
    ]
    rows = "".join(
        f'<tr><td style="{_CELL}">{feature_mathml(feature)}</td>'
        f'<td style="{_CELL}">{escape(format_probability(posterior.inclusion(feature)))}</td>'
        f'<td style="{_CELL}">{feature.complexity}</td></tr>'
        for feature in chosen[:_MOST]
    )
    heads = "".join(
        f'<th style="{_CELL}">{name}</th>' for name in ("feature", "inclusion", "complexity")
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
