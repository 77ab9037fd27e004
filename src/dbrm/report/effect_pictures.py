"""Plots of effects: partial dependence, coefficients, contributions, latent effects."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import TableLike
from dbrm.errors import InvalidSettingError
from dbrm.report.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    SMALL,
    SOFT,
    count_shown,
    fit_text,
    new_axes,
    tidy,
    write_fitting,
)
from dbrm.report.wording import display, format_probability, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = [
    "draw_coefficients",
    "draw_contributions",
    "draw_dependence",
    "draw_latent",
    "draw_surface",
]

# Ticks of the rug that shows where the training rows are.
_RUG = 200
# A positive covariate that spans more than this factor is shown on a logarithmic axis.
_WIDE = 100.0
_SURFACE = "cividis"
# More groups of a latent effect than these are not named.
_MOST_NAMES = 12


def draw_dependence(
    posterior: "Posterior", covariate: str, level: float, ax: Any, **effort: Any
) -> "Axes":
    """Mean response as one covariate varies, with its credible band.

    Parameters
    ----------
    effort
        ``rows`` and ``grid`` of `partial_dependence`.
    """
    axes: Axes = ax if ax is not None else new_axes(2.2)
    table = posterior.effects.partial_dependence(covariate, level=level, **effort)
    values = table["value"].tolist()
    wide = not isinstance(values[0], str) and values[0] > 0 and values[-1] > _WIDE * values[0]
    if wide:
        # Most rows are at one end: points and axis on a logarithmic scale.
        effort["grid"] = np.geomspace(values[0], values[-1], len(values)).tolist()
        table = posterior.effects.partial_dependence(covariate, level=level, **effort)
        values = table["value"].tolist()
        axes.set_xscale("log")
    mean = table["mean"].to_numpy()
    lower, upper = table["lower"].to_numpy(), table["upper"].to_numpy()
    if isinstance(values[0], str) or len(values) == 2:
        positions = np.arange(len(values))
        axes.vlines(positions, lower, upper, color=BLUE, linewidth=1.4)
        axes.plot(positions, mean, "o", color=BLUE, markersize=4)
        labels = [value if isinstance(value, str) else f"{value:g}" for value in values]
        axes.set_xticks(positions, [fit_text(axes, text, share=1 / len(values)) for text in labels])
        axes.set_xlim(-0.5, len(values) - 0.5)
    else:
        axes.fill_between(values, lower, upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(values, mean, color=BLUE, linewidth=1.3)
        seen = posterior.effects.training_values(covariate)
        seen = np.quantile(seen, np.linspace(0, 1, min(_RUG, seen.size)))
        # One line with gaps: a marker for each would make the page large.
        ticks = np.column_stack([seen, seen, np.full(seen.size, np.nan)]).ravel()
        heights = np.tile([0.0, 0.025, np.nan], seen.size)
        style: dict[str, Any] = {"color": SOFT, "linewidth": 0.4, "alpha": 0.5}
        axes.plot(ticks, heights, transform=axes.get_xaxis_transform(), **style)
    tidy(axes, x=fit_text(axes, covariate, share=0.75), y=_label(posterior))
    return axes


def draw_surface(posterior: "Posterior", first: str, second: str, ax: Any) -> "Axes":
    """Mean response as two covariates vary together: colours, with the training rows as dots."""
    axes: Axes = ax if ax is not None else new_axes(2.6)
    table = posterior.effects.surface(first, second)
    values = [list(dict.fromkeys(table[name])) for name in (first, second)]
    mean = table["mean"].to_numpy().reshape(len(values[0]), len(values[1])).T
    numeric = [not isinstance(v[0], str) and len(v) > 2 for v in values]
    places = [
        v if is_number else list(range(len(v)))
        for v, is_number in zip(values, numeric, strict=True)
    ]
    if all(numeric):
        drawn: Any = axes.contourf(*places, mean, levels=9, cmap=_SURFACE)
        seen = [posterior.effects.training_values(name) for name in (first, second)]
        rows = np.linspace(0, seen[0].size - 1, min(_RUG, seen[0].size)).astype(np.int64)
        # Lines of no length with round ends, all in one path.
        gap = np.full(rows.size, np.nan)
        ends = [np.column_stack([column[rows], column[rows], gap]).ravel() for column in seen]
        style: dict[str, Any] = {"color": INK, "linewidth": 1.6, "alpha": 0.6}
        axes.plot(*ends, solid_capstyle="round", **style)
    else:
        drawn = axes.pcolormesh(*places, mean, cmap=_SURFACE, shading="nearest")
    for axis, names, is_number in zip((axes.xaxis, axes.yaxis), values, numeric, strict=True):
        if not is_number:
            labels = [name if isinstance(name, str) else f"{name:g}" for name in names]
            axis.set_ticks(range(len(names)), [shorten(label, 10) for label in labels])
    tidy(axes, x=fit_text(axes, first, share=0.75), y=fit_text(axes, second, share=0.6))
    bar = axes.figure.colorbar(drawn, ax=axes, fraction=0.06, pad=0.03)
    bar.ax.tick_params(labelsize=SMALL, length=2)
    bar.outline.set_visible(False)
    bar.set_label(_label(posterior), fontsize=SMALL, parse_math=False)
    return axes


def _label(posterior: "Posterior") -> str:
    """What effects are effects on."""
    return posterior.predictor_label or f"mean {posterior.record.response}"


def draw_coefficients(posterior: "Posterior", top: int | None, level: float, ax: Any) -> "Axes":
    """Coefficients given inclusion, per standard deviation of the feature."""
    table = posterior.coefficients(level, conditional=True, standardized=True).iloc[1:]
    table = table.head(count_shown(table["inclusion"], top))
    axes: Axes = ax if ax is not None else new_axes(0.6 + 0.33 * max(len(table), 1))
    positions = np.arange(len(table))
    middle, lower, upper = (table[key].to_numpy() for key in ("estimate", "lower", "upper"))
    strong = table["inclusion"].to_numpy() > 0.5
    colours = np.where(strong, BLUE, GREY).tolist()
    axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=1)
    axes.hlines(positions, lower, upper, colors=colours, linewidth=1.6, zorder=2)
    axes.scatter(middle, positions, s=14, c=colours, zorder=3, linewidths=0)
    for position, term, share, is_strong in zip(
        positions, table["term"], table["inclusion"], strong, strict=True
    ):
        _write_above(
            axes, position - 0.14, term, format_probability(share), INK if is_strong else SOFT
        )
    axes.set(ylim=(max(len(table), 1) - 0.5, -0.85), yticks=[])
    tidy(axes, x=f"effect of one sd, {level:.0%} interval", frame=["bottom"])
    return axes


def draw_contributions(posterior: "Posterior", X: TableLike, row: int, top: int, ax: Any) -> "Axes":
    """What moves the linear predictor of one row away from the baseline."""
    table = posterior.effects.contributions(X).iloc[row]
    parts = table.iloc[1:]
    parts = parts.iloc[np.argsort(-np.abs(parts.to_numpy()), kind="stable")]
    # What cannot be seen is summed up.
    top = min(top, int((np.abs(parts) > 2e-3 * np.abs(parts).sum()).sum()))
    shown, rest = parts.iloc[:top], float(parts.iloc[top:].sum())
    labels, values = [str(name) for name in shown.index], shown.to_numpy().tolist()
    if parts.size > top:
        labels, values = [*labels, _others(parts.size - top)], [*values, rest]
    axes: Axes = ax if ax is not None else new_axes(0.75 + 0.33 * len(values))
    starts = float(table.iloc[0]) + np.concatenate([[0.0], np.cumsum(values)])
    positions = np.arange(len(values))
    colours = [BLUE if value > 0 else ORANGE for value in values]
    axes.barh(positions, values, left=starts[:-1], color=colours, height=0.3)
    axes.vlines(starts[1:-1], positions[:-1], positions[1:], color=GREY, linewidth=0.6)
    for position, label, value in zip(positions, labels, values, strict=True):
        _write_above(axes, position - 0.2, label, f"{value:+.3g}", INK)
    axes.axvline(starts[0], color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(starts[-1], color=INK, linewidth=0.8, zorder=0)
    axes.set(ylim=(len(values) - 0.5, -0.85), yticks=[])
    tidy(axes, x="linear predictor", frame=["bottom"])
    return axes


def _others(count: int) -> str:
    return f"{count} other{'s' if count > 1 else ''}"


def _write_above(axes: "Axes", position: float, text: str, number: str, colour: str) -> None:
    """A label at the left edge, which lines do not run through, and a number at the right."""
    style: dict[str, Any] = {"va": "bottom", "fontsize": SMALL, "color": colour}
    style |= {"transform": axes.get_yaxis_transform(), "parse_math": False}
    style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
    write_fitting(axes, 0.0, position, display(text), more=-0.55, **style)
    axes.text(1.0, position, number, ha="right", **style)


def draw_latent(posterior: "Posterior", name: str | None, level: float, ax: Any) -> "Axes":
    """Mean and band of an effect, given that it is in the model."""
    table = posterior.latent
    if table.empty:
        msg = "No latent effects were offered: fit with latent=[...] to have some."
        raise InvalidSettingError(msg)
    name = table["effect"][0] if name is None else name
    curve = posterior.latent_effect(name, level)
    if "term" in curve:
        # Of slopes beside intercepts, the slopes.
        curve = curve[curve["term"] == curve["term"].iloc[-1]].reset_index(drop=True)
    axes: Axes = ax if ax is not None else new_axes(2.2)
    positions, mean = curve.iloc[:, 0], curve["mean"].to_numpy()
    lower, upper = curve["lower"].to_numpy(), curve["upper"].to_numpy()
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    if positions.dtype.kind in "if" and len(positions) > _MOST_NAMES:
        axes.fill_between(positions, lower, upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(positions, mean, color=BLUE, linewidth=1.1)
    else:
        order = np.argsort(mean)
        rows = np.arange(len(positions))
        axes.vlines(rows, lower[order], upper[order], color=BLUE, linewidth=1.2)
        axes.plot(rows, mean[order], "o", color=BLUE, markersize=3)
        if len(positions) <= _MOST_NAMES:
            labels = [str(positions[j]) for j in order]
            share = 1 / max(len(labels), 1)
            axes.set_xticks(rows, [fit_text(axes, text, share=share) for text in labels])
    inclusion = format_probability(float(posterior.inclusion(name)))
    tidy(axes, x=fit_text(axes, str(curve.columns[0])), y=f"{name}")
    axes.set_title(f"inclusion {inclusion}", fontsize=SMALL, loc="right")
    return axes
