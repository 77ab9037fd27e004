"""A picture of our results beside published ones: dots with ranges, one row each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from dbrm.report.style import BLUE, GREY, INK, LETTERS, ORANGE, SMALL, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ComparedRow", "draw_comparison", "save_comparison"]

# Median, minimum and maximum.
Range = tuple[float, float, float]


@final
@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One row: its label, our range and the published one; either may be missing."""

    label: str
    ours: Range | None
    theirs: Range | None


def save_comparison(
    path: Path,
    rows: Sequence[ComparedRow],
    axis: str,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw, and write to a file."""
    figure = draw_comparison(rows, axis, limits=limits).get_figure(root=True)
    assert figure is not None
    figure.savefig(path)


def draw_comparison(
    rows: Sequence[ComparedRow],
    axis: str,
    names: tuple[str, str] = ("dbrm", "paper"),
    limits: tuple[float, float] | None = None,
) -> "Axes":
    """Draw dots with ranges: ours blue and above, the published ones orange and below.

    Parameters
    ----------
    axis
        Label of the axis.
    names
        Names of the two sources in the legend.
    limits
        Range of the axis. Values outside are written as numbers at the edge.
    """
    axes = new_axes(height=0.9 + 0.24 * max(len(rows), 1), width=5.2)
    for place, row in enumerate(rows):
        axes.axhline(place, color=GREY, linewidth=0.3, zorder=0)
        for found, shift, colour, mark in (
            (row.ours, -0.15, BLUE, "o"),
            (row.theirs, 0.15, ORANGE, "D"),
        ):
            if found is not None:
                middle, minimum, maximum = found
                axes.plot([minimum, maximum], [place + shift] * 2, color=colour, linewidth=1.0)
                axes.plot([middle], [place + shift], mark, color=colour, markersize=3.2)
        if limits is not None:
            _write_outside(axes, place, row, limits)
    axes.set(yticks=range(len(rows)), ylim=(len(rows) - 0.4, -0.6))
    if limits is not None:
        axes.set_xlim(*limits)
    axes.set_yticklabels([row.label for row in rows], parse_math=False)
    tidy(axes, x=axis)
    axes.tick_params(axis="y", labelsize=SMALL)
    for mark, colour, name in (("o", BLUE, names[0]), ("D", ORANGE, names[1])):
        axes.plot([], [], mark, color=colour, markersize=3.2, label=name)
    axes.figure.legend(
        loc="outside upper right", ncols=2, fontsize=LETTERS, labelcolor=INK, frameon=False
    )
    return axes


def _write_outside(axes: "Axes", place: int, row: ComparedRow, limits: tuple[float, float]) -> None:
    """Write medians outside the limits as numbers at the edges, each in its colour."""
    for edge, sign, arrow in ((limits[0], 1, "◂"), (limits[1], -1, "▸")):
        offset = 4.0
        for found, colour in ((row.ours, BLUE), (row.theirs, ORANGE)):
            if found is not None and sign * (found[0] - edge) < 0:
                number = f"{found[0]:.3f}"
                axes.annotate(
                    f"{arrow} {number}" if sign > 0 else f"{number} {arrow}",
                    (edge, place),
                    xytext=(sign * offset, 0.0),
                    textcoords="offset points",
                    ha="left" if sign > 0 else "right",
                    va="center",
                    color=colour,
                    fontsize=SMALL,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3},
                )
                offset += 36.0
