"""Style of all plots: colours, sizes, and how labels fit their space.

Letters are 7 to 8 points, so that a picture drawn 3.3 inches wide (one column of a
journal) is readable as it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import FloatArray
from dbrm.report.wording import display, format_probability, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "COLUMN",
    "GREY",
    "INK",
    "LETTERS",
    "ORANGE",
    "PALE",
    "SMALL",
    "SOFT",
    "count_shown",
    "draw_bars",
    "fit_text",
    "letters",
    "new_axes",
    "tidy",
    "write_fitting",
]

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, GREY, PALE = "#0072B2", "#D55E00", "#999999", "#E8E8E8"
# Of text, and of text of less weight.
INK, SOFT = "#1A1A1A", "#555555"
# Width of a journal's column in inches; sizes of letters in points.
COLUMN, LETTERS, SMALL = 3.3, 8.0, 7.0
# Mean width of a letter, as a share of its size.
_LETTER = 0.52
# Most bars, unless asked otherwise.
_MOST = 12


def new_axes(height: float, width: float = COLUMN) -> "Axes":
    """Axes in a new figure, which pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=200, layout="constrained").add_subplot()


def tidy(
    axes: "Axes",
    *,
    x: str = "",
    y: str = "",
    frame: Sequence[str] = ("left", "bottom"),
    **options: Any,
) -> None:
    """Labels, ticks and frame as in all plots; names are text, never mathematics."""
    axes.set_xlabel(x, fontsize=LETTERS, color=INK, parse_math=False, **options)
    inches = axes.get_window_extent().height / axes.figure.dpi
    axes.set_ylabel(shorten(y, letters(inches)), fontsize=LETTERS, color=INK, parse_math=False)
    axes.tick_params(labelsize=SMALL, color=GREY, labelcolor=INK, width=0.6, length=2.5)
    axes.tick_params(which="minor", color=GREY, width=0.4, length=1.5)
    for side, spine in axes.spines.items():
        spine.set_visible(side in frame)
        spine.set_linewidth(0.6)
        spine.set_color(GREY)


def fit_text(axes: "Axes", text: str, *, size: float = LETTERS, share: float = 1.0) -> str:
    """Shorten a text to a share of the axes' width."""
    inches = share * axes.get_window_extent().width / axes.figure.dpi
    return shorten(text, letters(inches, size))


def write_fitting(
    axes: "Axes", x: float, y: float, text: str, *, more: float, **style: Any
) -> None:
    """Write a text that is shortened, when it is drawn, to the axes' width plus `more` inches.

    It takes no part in the layout, because the axes may still shrink after it was written.
    """
    from matplotlib.text import Text

    class FittingText(Text):
        def draw(self, renderer: Any) -> None:
            room = axes.bbox.width + more * axes.figure.dpi
            self.set_text(text)
            width = self.get_window_extent(renderer).width
            if width > room > 0:
                self.set_text(shorten(text, max(2, int(len(text) * room / width))))
            super().draw(renderer)

    usual: dict[str, Any] = {"va": "bottom", "transform": axes.transData, "parse_math": False}
    label = FittingText(x, y, text, **(usual | style))
    label.set_in_layout(False)
    axes.add_artist(label)
    label.set_clip_on(False)


def count_shown(probability: Any, top: int | None) -> int:
    """How many to show: `top`, or those with probability above 0.001, 3 to 12."""
    return top if top is not None else int(np.clip((probability > 1e-3).sum(), 3, _MOST))


def letters(inches: float, size: float = LETTERS) -> int:
    """Number of letters that fit into a width."""
    return max(8, int(72.0 * inches / (_LETTER * size)))


def draw_bars(axes: "Axes", labels: Sequence[str], values: FloatArray, *, strong: Any) -> None:
    """Probabilities as bars, each with its label above and its value on the right."""
    rows = np.arange(len(labels))
    axes.barh(rows, 1.0, color=PALE, height=0.26)
    colours = np.where(strong, BLUE, GREY).tolist()
    axes.barh(rows, values, color=colours, height=0.26)
    for row, label, value, is_strong in zip(rows.tolist(), labels, values, strong, strict=True):
        style: dict[str, Any] = {"color": INK if is_strong else SOFT, "parse_math": False}
        write_fitting(axes, 0.0, row - 0.2, display(label), more=0.35, fontsize=LETTERS, **style)
        number = format_probability(value)
        axes.text(1.02, row, number, va="center", fontsize=SMALL, **style)
    axes.set(xlim=(0, 1), ylim=(max(len(labels), 1) - 0.6, -0.8), yticks=[])
