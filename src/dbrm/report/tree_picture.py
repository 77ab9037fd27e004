"""The architecture of a model: its features as expression trees, read from left to right."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from dbrm.features import Covariate, Feature, Modification, Product, Projection, Standardized
from dbrm.report.style import BLUE, COLUMN, GREY, INK, ORANGE, SMALL, SOFT, new_axes
from dbrm.report.wording import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = ["draw_architecture"]

# Inches between leaves, between columns (preferred and least), and of one letter.
_LEAF, _GAP, _LEAST_GAP, _LETTER = 0.2, 0.5, 0.3, 0.6 * SMALL / 72.0
# Greatest width of a new figure; most letters of a name, and of the response.
_WIDEST, _LONGEST_NAME, _LONGEST_ROOT = 7.0, 30, 18


@final
@dataclass(slots=True)
class _Node:
    """A box or, at the right end, a name; `weight` is written on the branch that leads here."""

    label: str
    depth: int
    is_leaf: bool = False
    weight: str = ""
    children: "list[_Node]" = field(default_factory=list)
    place: float = 0.0

    def walk(self) -> "Iterator[_Node]":
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def width(self) -> float:
        return _LETTER * len(self.label) + 0.1


def draw_architecture(posterior: "Posterior", feature: str | Feature | None, ax: Any) -> "Axes":
    """Tree of one feature, or of the best model with its coefficients on the branches."""
    root = _model_tree(posterior)
    if feature is not None:
        root = _feature_tree(posterior.parse_feature(feature), 0)
    n_leaves = _place(root, 0)
    widths = _column_widths(root)
    if ax is None:
        total = sum(widths) + _GAP * (len(widths) - 1)
        room = min(max(total, COLUMN), _WIDEST)
        axes: Axes = new_axes(0.1 + _LEAF * max(n_leaves, 2), room)
    else:
        axes = ax
        room = axes.get_window_extent().width / axes.figure.dpi
    gap = (room - sum(widths)) / max(len(widths) - 1, 1)
    gap = min(max(gap, _LEAST_GAP), _GAP)
    starts = [sum(widths[:j]) + gap * j for j in range(len(widths))]
    _draw(axes, root, starts, widths)
    axes.set(xlim=(0.0, max(room, starts[-1] + widths[-1])), ylim=(n_leaves - 0.4, -0.6))
    axes.set_axis_off()
    return axes


def _model_tree(posterior: "Posterior") -> _Node:
    model = posterior.best_model
    root = _Node(shorten(model.response, _LONGEST_ROOT), 0)
    for slope, term in zip(model.fit.coefficients[1:], model.terms, strict=True):
        branch = _feature_tree(term, 1)
        branch.weight = f"{slope:.3g}"
        root.children.append(branch)
    if not root.children:
        root.children.append(_Node("1", 1, is_leaf=True, weight=f"{model.fit.coefficients[0]:.3g}"))
    return root


def _feature_tree(feature: Feature, depth: int) -> _Node:
    match feature:
        case Covariate():
            return _Node(shorten(feature.name, _LONGEST_NAME), depth, is_leaf=True)
        case Standardized():
            return _feature_tree(feature.children[0], depth)
        case Product():
            node = _Node("×", depth)
        case Modification() | Projection():
            node = _Node(_transform_name(feature), depth)
        case _:
            raise AssertionError(feature)
    node.children = [_feature_tree(child, depth + 1) for child in feature.children]
    if isinstance(feature, Projection):
        weights = list(feature.weights)
        if feature.bias is not None:
            node.children.append(_Node("1", depth + 1, is_leaf=True))
            weights.append(feature.bias)
        for child, weight in zip(node.children, weights, strict=True):
            child.weight = f"{weight:.2g}"
    return node


def _transform_name(feature: Modification | Projection) -> str:
    name = feature.transform.name
    return name if feature.knot is None else f"{name.partition('[')[0]}[{feature.knot:.3g}]"


def _place(node: _Node, leaves: int) -> int:
    """Put leaves one below the other and every other node amid its children."""
    if not node.children:
        node.place = float(leaves)
        return leaves + 1
    for child in node.children:
        leaves = _place(child, leaves)
    node.place = 0.5 * (node.children[0].place + node.children[-1].place)
    return leaves


def _column_widths(root: _Node) -> list[float]:
    """Inches taken by each column of boxes, the names of covariates in the last one."""
    nodes = list(root.walk())
    last = max(1, max(node.depth for node in nodes))
    widths = [0.0] * (last + 1)
    for node in nodes:
        column = last if node.is_leaf else node.depth
        widths[column] = max(widths[column], node.width)
    return widths


def _draw(axes: "Axes", node: _Node, starts: list[float], widths: list[float]) -> None:
    if node.is_leaf:
        _write(axes, starts[-1] + 0.05, node.place, node.label, ha="left")
        return
    middle = starts[node.depth] + 0.5 * widths[node.depth]
    right = middle + 0.5 * node.width
    turn = starts[node.depth] + widths[node.depth] + 0.12
    for child in node.children:
        end = starts[-1]
        if not child.is_leaf:
            end = starts[child.depth] + 0.5 * (widths[child.depth] - child.width)
        colour = GREY if not child.weight else ORANGE if child.weight[0] == "-" else BLUE
        across, down = [right, turn, end], [node.place, child.place, child.place]
        axes.plot(across, down, color=colour, linewidth=0.8, zorder=1, solid_joinstyle="round")
        if child.weight:
            _write(axes, turn, child.place - 0.02, child.weight, ha="left", va="bottom", weak=True)
        _draw(axes, child, starts, widths)
    box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
    _write(axes, middle, node.place, node.label, ha="center", bbox=box)


def _write(
    axes: "Axes", x: float, y: float, text: str, *, weak: bool = False, **options: Any
) -> None:
    style: dict[str, Any] = {
        "fontsize": SMALL - weak,
        "color": SOFT if weak else INK,
        "va": "center",
        "zorder": 3,
    }
    # The layout is in inches already.
    axes.text(x, y, text, parse_math=False, **(style | options)).set_in_layout(False)
