"""Which pictures the report shows, with their captions."""

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dbrm.report.pictures import inline_svg
from dbrm.report.plots import Plots

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["draw_gallery"]


def draw_gallery(posterior: "Posterior", rows: Any) -> list[dict[str, Any]]:
    """Every picture that can be drawn, as SVG with title and caption."""
    plots = Plots(posterior)
    wanted = [
        (
            "inclusion",
            lambda: plots.inclusion(top=10),
            "Inclusion probabilities",
            "How probable it is that each feature belongs in the model.",
        )
    ]
    if rows is not None:
        X, y = rows
        wanted.append(
            (
                "fitted",
                lambda: plots.fitted(X, y),
                "Predicted against observed",
                "Averaged predictions with 95 % intervals; on the line they are right.",
            )
        )
    return [
        {
            "title": title,
            "caption": caption,
            "svg": Markup(inline_svg(draw, name, f"{title}. {caption}")),
        }
        for name, draw, title, caption in wanted
    ]
