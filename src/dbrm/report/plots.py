"""Pictures of a posterior. matplotlib is seen only in this folder, and pyplot nowhere."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm.report.wording import format_probability, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dbrm.posterior import Posterior

__all__ = ["Plots"]

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, GREY, PALE = "#0072B2", "#999999", "#E8E8E8"
# A positive response that spans more than this factor is shown on logarithmic axes.
WIDE = 30.0


class Plots:
    """Plots of one posterior; every method but `overview` takes and returns matplotlib axes."""

    def __init__(self, posterior: "Posterior") -> None:
        self._posterior = posterior

    def inclusion(self, top: int = 12, ax: Any = None) -> "Axes":
        """Posterior inclusion probabilities of the leading features."""
        table = self._posterior.features.head(top)
        axes: Axes = ax if ax is not None else _new_axes(6.4, 0.8 + 0.5 * len(table))
        positions = np.arange(len(table))
        probable = table["inclusion"].to_numpy() > 0.5
        axes.barh(positions, 1.0, color=PALE, height=0.3)
        colours = np.where(probable, BLUE, GREY)
        axes.barh(positions, table["inclusion"], color=colours.tolist(), height=0.3)
        for position, row in enumerate(table.itertuples()):
            colour = "black" if row.inclusion > 0.5 else "0.35"
            style: dict[str, Any] = {"fontsize": 9, "color": colour, "parse_math": False}
            axes.text(0.0, position - 0.22, shorten(row.feature, 60), va="bottom", **style)
            value = format_probability(row.inclusion)
            axes.text(1.02, position, value, va="center", **style)
        axes.set(xlim=(0, 1), ylim=(max(len(table), 1) - 0.6, -0.75), yticks=[])
        axes.set_xlabel("posterior inclusion probability")
        axes.spines[["top", "right", "left"]].set_visible(False)
        return axes

    def fitted(self, X: TableLike, y: Column, level: float = 0.95, ax: Any = None) -> "Axes":
        """Averaged predictions against observed values, with predictive intervals."""
        axes: Axes = ax if ax is not None else _new_axes(4.6, 4.4)
        observed = np.asarray(y, dtype=np.float64)
        mean = self._posterior.predict(X)
        low, high = self._posterior.predict_interval(X, level=level).T
        values = np.concatenate([observed, mean])
        ends = np.array([np.nanmin(values), np.nanmax(values)])
        if ends[0] > 0 and ends[1] > WIDE * ends[0]:
            axes.set(xscale="log", yscale="log")
            ends *= [0.7, 1.4]
            low = np.maximum(low, ends[0])
        axes.plot(ends, ends, color=GREY, linewidth=1, zorder=1)
        axes.vlines(observed, low, high, color=BLUE, alpha=0.3, linewidth=1.5, zorder=2)
        axes.scatter(observed, mean, s=10, color=BLUE, linewidths=0, zorder=3)
        axes.set(xlim=_padded(axes, ends), ylim=_padded(axes, ends))
        axes.set_xlabel(f"observed {self._posterior.record.response}", parse_math=False)
        axes.set_ylabel(f"predicted, with {level:.0%} interval")
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def overview(self, X: TableLike, y: Column, top: int = 6) -> "Figure":
        """Predictions and inclusion probabilities side by side, ready for ``savefig``."""
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(figsize=(10, 4.2), layout=ConstrainedLayoutEngine(wspace=0.08))
        left, right = figure.subplots(1, 2)
        self.fitted(X, y, ax=left)
        self.inclusion(top, ax=right)
        return figure


def _new_axes(width: float, height: float) -> "Axes":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def _padded(axes: "Axes", ends: "np.typing.NDArray[np.float64]") -> tuple[float, float]:
    """Limits a little beyond the ends; on logarithmic axes they have room already."""
    room = 0.0 if axes.get_xscale() == "log" else 0.03 * float(ends[1] - ends[0])
    return float(ends[0]) - room, float(ends[1]) + room
