"""Survival curves with their bands."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import FloatArray, IntArray, TableLike
from dbrm.errors import InvalidSettingError
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.posterior.hazard import CoxHazards
from dbrm.posterior.survival_mixture import SurvivalMixture
from dbrm.report.style import BLUE, GREY, ORANGE, SMALL, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = ["draw_survival"]

# Quantiles of the risk of the training rows that are shown, and most curves of other rows.
_QUANTILES, _LABELS = (0.1, 0.5, 0.9), ("low risk", "middle", "high risk")
_MOST = 5
_COLOURS = (BLUE, GREY, ORANGE, "#009E73", "#CC79A7")
# Points of a curve, and the share of events that it shows at middle risk.
_POINTS, _SHOWN = 80, 0.95


def draw_survival(
    posterior: "Posterior", X: TableLike | None, level: float, strata: Any, ax: Any
) -> "Axes":
    """Survival of the first rows of `X`, or of training rows at low, middle and high risk."""
    if not isinstance(posterior.family, SurvivalFamily):
        msg = "Survival curves are for survival times: family='cox' or 'weibull'."
        raise InvalidSettingError(msg)
    averaged, hazards = posterior._averaged, posterior._averaged.hazards
    if X is None:
        table = posterior._source.table
        # A log time under a Weibull model: long lives first.
        risk = np.concatenate([block.mean() for block in averaged.blocks(table)])
        order = np.argsort(risk if isinstance(hazards, CoxHazards) else -risk, kind="stable")
        rows = order[np.round(np.array(_QUANTILES) * (risk.size - 1)).astype(np.int64)]
        table, labels = table.take(rows), list(_LABELS)
        stratum: IntArray | None = np.zeros(rows.size, dtype=np.int64)
    else:
        table = posterior.recipe.apply(X)
        table = table.take(np.arange(min(table.n_rows, _MOST)))
        labels = [f"row {row}" for row in range(table.n_rows)]
        given = None if strata is None else np.asarray(strata)[: table.n_rows]
        stratum = posterior.number_strata(given, 0, table.n_rows)
    (block,) = averaged.blocks(table, stratum=stratum)
    assert isinstance(block, SurvivalMixture)
    if isinstance(hazards, CoxHazards):
        last = float(hazards.times.max())
    else:
        last = float(np.median(block.quantile(_SHOWN)))
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
