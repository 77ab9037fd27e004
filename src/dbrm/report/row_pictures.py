"""Pictures of rows: fitted values, residuals, calibration, replications."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats

from dbrm._typing import Column, FloatArray
from dbrm.posterior import roc_curve
from dbrm.report.style import BLUE, GREY, INK, LETTERS, ORANGE, PALE, fit_text, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior, Rows

__all__ = ["draw_calibration", "draw_fitted", "draw_replications", "draw_residuals", "draw_roc"]

# A positive response that spans more than this factor is shown on logarithmic axes.
WIDE = 30.0
# More points than this are drawn small and pale.
MANY = 400
# Replications behind a histogram.
_REPLICATIONS = 1000


def draw_fitted(posterior: "Posterior", rows: "Rows", level: float, ax: Any) -> "Axes":
    """Averaged predictions against observed values."""
    axes: Axes = ax if ax is not None else new_axes(3.0)
    observed, mean = rows.response, posterior.checks.mean(rows)
    name = posterior.record.response
    if posterior.checks.is_binary(rows):
        return _draw_classes(axes, observed, mean, name)
    low, high = posterior.checks.interval(rows, level)
    values = np.concatenate([observed, mean])
    ends = np.array([np.nanmin(values), np.nanmax(values)])
    if ends[0] > 0 and ends[1] > WIDE * ends[0]:
        axes.set(xscale="log", yscale="log")
        ends *= [0.7, 1.4]
        low = np.maximum(low, ends[0])
    axes.plot(ends, ends, color=GREY, linewidth=0.8, zorder=1)
    thin: dict[str, Any] = (
        {"alpha": 0.35, "linewidth": 1.0} if observed.size <= MANY else {"alpha": 0.08}
    )
    shown = observed + _jitter(observed)
    axes.vlines(shown, low, high, color=BLUE, zorder=2, **thin)
    axes.scatter(shown, mean, s=6, color=BLUE, linewidths=0, zorder=3)
    axes.set(xlim=_padded(axes, ends), ylim=_padded(axes, ends))
    tidy(
        axes,
        x=fit_text(axes, f"observed {name}", share=0.75),
        y=f"predicted, with {level:.0%} interval",
    )
    return axes


def _jitter(observed: Column) -> Column:
    """A little spread for values that many rows share."""
    if np.unique(observed).size > 0.5 * observed.size:
        return np.zeros(observed.size)
    gaps = np.diff(np.unique(observed))
    width = 0.6 * (gaps.min() if gaps.size else 0.0)
    # The same order of rows gives the same picture.
    return np.asarray(width * (np.modf(np.arange(observed.size) * 0.618034)[0] - 0.5))


def _draw_classes(axes: "Axes", observed: Column, mean: Column, name: str) -> "Axes":
    """Predicted probabilities of zeros and of ones."""
    for value, colour in ((0.0, ORANGE), (1.0, BLUE)):
        mine = np.sort(mean[observed == value])
        shift = 0.5 * (np.modf(np.arange(mine.size) * 0.618034)[0] - 0.5)
        axes.scatter(value + shift, mine, s=6, color=colour, linewidths=0, alpha=0.6)
        if mine.size:
            axes.hlines(mine.mean(), value - 0.35, value + 0.35, color=INK, linewidth=1.0)
    axes.axhline(0.5, color=GREY, linewidth=0.6, zorder=0)
    axes.set(xlim=(-0.5, 1.5), ylim=(-0.02, 1.02))
    axes.set_xticks([0, 1])
    tidy(axes, x=f"observed {name} (line: mean)", y="predicted probability")
    return axes


def draw_residuals(posterior: "Posterior", rows: "Rows", kind: str, ax: Any) -> "Axes":
    """Quantile residuals against fitted values, or against normal quantiles."""
    axes: Axes = ax if ax is not None else new_axes(2.4)
    checks = posterior.checks
    residuals = checks.normal_scores(rows)
    alpha = 0.7 if residuals.size <= MANY else 0.25
    points: dict[str, Any] = {"s": 6, "color": BLUE, "linewidths": 0, "alpha": alpha}
    if kind == "qq":
        n = residuals.size
        order = np.sort(residuals)
        positions = np.arange(1, n + 1)
        expected = scipy.stats.norm.ppf((positions - 0.5) / n)
        low, high = (
            scipy.stats.norm.ppf(scipy.stats.beta.ppf(end, positions, n + 1 - positions))
            for end in (0.025, 0.975)
        )
        axes.fill_between(expected, low, high, color=PALE, linewidth=0)
        axes.plot(expected, expected, color=GREY, linewidth=0.8)
        axes.scatter(expected, order, **points)
        tidy(axes, x="normal quantile (band: pointwise 95 %)", y="quantile residual")
        return axes
    mean = checks.mean(rows)
    if mean.min() > 0 and mean.max() > WIDE * mean.min() and not checks.is_binary(rows):
        axes.set_xscale("log")
    axes.axhspan(-1.96, 1.96, color=PALE, linewidth=0, zorder=0)
    axes.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
    axes.scatter(mean, residuals, **points)
    limit = max(3.2, 1.08 * float(np.abs(residuals).max()))
    axes.set_ylim(-limit, limit)
    tidy(axes, x=f"predicted {posterior.record.response}", y="quantile residual")
    return axes


def draw_calibration(posterior: "Posterior", rows: "Rows", bins: int, ax: Any) -> "Axes":
    """Predicted probabilities, or nominal coverage, against what happened."""
    axes: Axes = ax if ax is not None else new_axes(3.0)
    table = posterior.checks.calibrate(rows, bins)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    if posterior.checks.is_binary(rows):
        labels = {"x": "predicted probability", "y": "observed share"}
        axes.vlines(table["predicted"], table["lower"], table["upper"], color=BLUE, linewidth=1.0)
    else:
        labels = {"x": "nominal level of the interval", "y": "share of responses inside"}
        axes.fill_between(
            table["predicted"], table["lower"], table["upper"], color=BLUE, alpha=0.2, linewidth=0
        )
    axes.plot(
        table["predicted"], table["observed"], "o-", color=BLUE, markersize=3.5, linewidth=1.0
    )
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    tidy(axes, **labels)
    return axes


def draw_roc(posterior: "Posterior", measured: "dict[str, Rows]", ax: Any) -> "Axes":
    """ROC curves of some sets of rows, by what they are."""
    axes: Axes = ax if ax is not None else new_axes(3.0)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for (name, rows), colour in zip(measured.items(), (BLUE, ORANGE), strict=False):
        wrong, right = roc_curve(posterior.checks.mean(rows), rows.response)
        axes.plot(wrong, right, color=colour, linewidth=1.3, label=name)
    axes.legend(fontsize=LETTERS - 1, frameon=False, loc="lower right", handlelength=1.2)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    tidy(axes, x="share of zeros above the threshold", y="share of ones above it")
    return axes


def draw_replications(posterior: "Posterior", rows: "Rows", draws: int, ax: Any) -> "Axes":
    """Distribution of the response against replications of it."""
    axes: Axes = ax if ax is not None else new_axes(2.2)
    if posterior.checks.is_binary(rows):
        return _draw_shares(axes, posterior, rows)
    sample = posterior.checks.replicate(rows, draws, 0)
    observed = np.sort(rows.response)
    steps = np.arange(1, observed.size + 1) / observed.size
    for replication in np.sort(sample, axis=1):
        axes.step(
            replication, steps, where="post", color=BLUE, alpha=min(0.5, 6 / draws), linewidth=0.7
        )
    axes.step(observed, steps, where="post", color=INK, linewidth=1.2)
    if observed[0] > 0 and observed[-1] > WIDE * observed[0]:
        axes.set_xscale("log")
    else:
        room = 0.25 * float(observed[-1] - observed[0])
        axes.set_xlim(observed[0] - room, observed[-1] + room)
    axes.set_ylim(0, 1.01)
    handles = [
        axes.plot([], [], color=INK, linewidth=1.2, label="observed")[0],
        axes.plot([], [], color=BLUE, linewidth=0.9, label="replicated")[0],
    ]
    axes.legend(
        handles=handles, fontsize=LETTERS - 1, frameon=False, loc="lower right", handlelength=1.2
    )
    tidy(axes, x=posterior.record.response, y="share of rows below")
    return axes


def _draw_shares(axes: "Axes", posterior: "Posterior", rows: "Rows") -> "Axes":
    """Share of ones in replications, beside the observed one."""
    shares = posterior.checks.replicate(rows, _REPLICATIONS, 0).mean(axis=1)
    values, counts = np.unique(shares, return_counts=True)
    axes.bar(values, counts / _REPLICATIONS, width=0.8 / rows.response.size, color=BLUE, alpha=0.5)
    axes.axvline(rows.response.mean(), color=INK, linewidth=1.2)
    name = posterior.record.response
    tidy(axes, x=f"share of ones in {name} (line: observed)", y="share of replications")
    return axes


def _padded(axes: "Axes", ends: FloatArray) -> tuple[float, float]:
    """Limits a little beyond the ends; on logarithmic axes they have room already."""
    room = 0.0 if axes.get_xscale() == "log" else 0.03 * float(ends[1] - ends[0])
    return float(ends[0]) - room, float(ends[1]) + room
