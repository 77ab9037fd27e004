"""Survival curves with their bands."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import FloatArray, TableLike
from dbrm.errors import InvalidSettingError
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.posterior.survival_examples import survival_examples
from dbrm.posterior.survival_mixture import SurvivalMixture
from dbrm.report.style import BLUE, GREY, ORANGE, SMALL, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = ["draw_survival"]

_COLOURS = (BLUE, GREY, ORANGE, "#009E73", "#CC79A7")
_POINTS = 80


def draw_survival(
    posterior: "Posterior", X: TableLike | None, level: float, strata: Any, ax: Any
) -> "Axes":
    """Survival of the first rows of `X`, or of training rows at low, middle and high risk."""
    if not isinstance(posterior.family, SurvivalFamily):
        msg = "Survival curves are for survival times: family='cox' or 'weibull'."
        raise InvalidSettingError(msg)
    block, labels, last = survival_examples(posterior, X, strata)
    return _draw(block, np.linspace(0.0, last, _POINTS), level, labels, ax)


def _draw(
    block: SurvivalMixture, times: FloatArray, level: float, labels: list[str], ax: Any
) -> "Axes":
    axes: Axes = ax if ax is not None else new_axes(2.2)
    curves = np.array([block.curve(float(time), level) for time in times])
    for row, label in enumerate(labels):
        survival, lower, upper = curves[:, :, row].T
        style: dict[str, Any] = {"color": _COLOURS[row], "step": "post"}
        axes.fill_between(times, lower, upper, alpha=0.15, linewidth=0, **style)
        axes.step(times, survival, where="post", color=_COLOURS[row], linewidth=1.3, label=label)
    axes.set_ylim(0.0, 1.02)
    axes.legend(frameon=False, fontsize=SMALL)
    tidy(axes, x="time", y="survival")
    return axes
