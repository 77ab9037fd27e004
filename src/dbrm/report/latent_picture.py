"""A picture of a latent effect along its positions or over its groups."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm.errors import InvalidSettingError
from dbrm.report.style import BLUE, GREY, SMALL, fit_text, new_axes, tidy
from dbrm.report.wording import format_probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = ["draw_latent"]

# More groups than these are numbered instead of named.
_MOST_NAMES = 12


def draw_latent(posterior: "Posterior", name: str | None, level: float, ax: Any) -> "Axes":
    """Mean and band of an effect, given that it is in the model."""
    table = posterior.latent
    if table.empty:
        msg = "No latent effects were offered: fit with latent=[...] to have some."
        raise InvalidSettingError(msg)
    name = table["effect"][0] if name is None else name
    curve = posterior.latent_effect(name, level)
    axes: Axes = ax if ax is not None else new_axes(2.2)
    places, mean = curve.iloc[:, 0], curve["mean"].to_numpy()
    lower, upper = curve["lower"].to_numpy(), curve["upper"].to_numpy()
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    if places.dtype.kind in "if" and len(places) > _MOST_NAMES:
        axes.fill_between(places, lower, upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(places, mean, color=BLUE, linewidth=1.1)
    else:
        order = np.argsort(mean)
        rows = np.arange(len(places))
        axes.vlines(rows, lower[order], upper[order], color=BLUE, linewidth=1.2)
        axes.plot(rows, mean[order], "o", color=BLUE, markersize=3)
        if len(places) <= _MOST_NAMES:
            labels = [str(places[j]) for j in order]
            share = 1 / max(len(labels), 1)
            axes.set_xticks(rows, [fit_text(axes, text, share=share) for text in labels])
    inclusion = format_probability(float(posterior.inclusion(name)))
    tidy(axes, x=fit_text(axes, str(curve.columns[0])), y=f"{name}")
    axes.set_title(f"inclusion {inclusion}", fontsize=SMALL, loc="right")
    return axes
