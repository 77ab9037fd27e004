"""Pictures of a posterior. matplotlib is seen only in this folder."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import Column, TableLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = ["Plots"]

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"


class Plots:
    """Plots of one posterior; every method takes and returns matplotlib axes."""

    def __init__(self, posterior: "Posterior") -> None:
        self._posterior = posterior

    def inclusion(self, top: int = 12, ax: Any = None) -> "Axes":
        """Posterior inclusion probabilities of the leading features."""
        ax = ax if ax is not None else _new_axes(height=0.6 + 0.3 * top)
        table = self._posterior.features.head(top).iloc[::-1]
        names = [_shorten(name) for name in table["feature"]]
        positions = np.arange(len(names))
        strong = table["inclusion"].to_numpy() >= 0.5
        ax.barh(positions, table["inclusion"], color=np.where(strong, BLUE, GREY), height=0.7)
        ax.set_yticks(positions, names, fontsize=8)
        ax.set_xlim(0, 1)
        ax.set_xlabel("posterior inclusion probability")
        _tidy(ax)
        return ax

    def fitted(self, X: TableLike, y: Column, level: float = 0.95, ax: Any = None) -> "Axes":
        """Averaged predictions against observed values, with predictive intervals."""
        ax = ax if ax is not None else _new_axes(height=3.4)
        observed = np.asarray(y, dtype=np.float64)
        mean = self._posterior.predict(X)
        low, high = self._posterior.predict_interval(X, level=level).T
        ends = [min(observed.min(), mean.min()), max(observed.max(), mean.max())]
        ax.plot(ends, ends, color=GREY, linewidth=1, zorder=1)
        ax.vlines(observed, low, high, color=BLUE, alpha=0.25, linewidth=1.5, zorder=2)
        ax.scatter(observed, mean, s=9, color=BLUE, zorder=3)
        ax.set_xlabel(f"observed {self._posterior.record.response}")
        ax.set_ylabel(f"predicted, {level:.0%} interval")
        _tidy(ax)
        return ax


def _new_axes(height: float) -> "Axes":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height), layout="constrained")
    return figure.add_subplot()


def _tidy(ax: "Axes") -> None:
    ax.spines[["top", "right"]].set_visible(False)


def _shorten(text: str, width: int = 48) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
