"""Tests of `dbrm_paper.comparison_picture`."""

import pytest

from dbrm_paper.comparison_picture import ComparedRow, draw_comparison

INSIDE = ComparedRow("inside", (0.95, 0.94, 0.96), (0.93, 0.85, 0.95))
BELOW = ComparedRow("below", (0.80, 0.80, 0.80), (0.78, 0.78, 0.78))
ABOVE = ComparedRow("above", (0.99, 0.98, 1.00), None)


def written(axes):
    """Text inside the axes, with the row it stands in."""
    return [(int(text.xy[1]), text.get_text()) for text in axes.texts]


def test_each_source_has_a_dot_and_a_range_in_its_row():
    axes = draw_comparison([INSIDE, ABOVE], "accuracy")
    dots = [list(line.get_xdata()) for line in axes.lines if line.get_marker() in ("o", "D")]
    # The last two are those of the legend.
    assert dots == [[0.95], [0.93], [0.99], [], []]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["inside", "above"]
    assert written(axes) == []


def test_what_lies_beyond_the_limits_is_written_at_the_edge():
    axes = draw_comparison([INSIDE, BELOW, ABOVE], "accuracy", limits=(0.88, 0.97))
    assert written(axes) == [(1, "◂ 0.800"), (1, "◂ 0.780"), (2, "0.990 ▸")]
    axes.figure.canvas.draw()
    inside = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent()
        assert inside.x0 <= box.x0
        assert box.x1 <= inside.x1
    first, second = (text.get_window_extent() for text in axes.texts[:2])
    assert first.x1 < second.x0


@pytest.mark.parametrize("limits", [None, (0.0, 1.0)])
def test_nothing_is_written_where_everything_fits(limits):
    assert written(draw_comparison([INSIDE, BELOW], "accuracy", limits=limits)) == []
