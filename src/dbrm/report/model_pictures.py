"""Plots of the posterior over models: inclusion, models, image, complexity, chains."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.report.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    SMALL,
    SOFT,
    count_shown,
    draw_bars,
    fit_text,
    new_axes,
    tidy,
)
from dbrm.report.wording import display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbrm.posterior import Posterior

__all__ = [
    "draw_chains",
    "draw_complexity",
    "draw_image",
    "draw_inclusion",
    "draw_models",
    "draw_path",
]


def draw_inclusion(posterior: "Posterior", top: int | None, ax: Any) -> "Axes":
    """Bars of inclusion probabilities."""
    table = posterior.features.head(count_shown(posterior.features["inclusion"], top))
    axes: Axes = ax if ax is not None else new_axes(0.55 + 0.33 * max(len(table), 1))
    values = table["inclusion"].to_numpy()
    draw_bars(axes, table["feature"].tolist(), values, strong=values > 0.5)
    tidy(axes, x="posterior inclusion probability", frame=["bottom"])
    return axes


def draw_models(posterior: "Posterior", top: int | None, ax: Any) -> "Axes":
    """Bars of model probabilities."""
    table = posterior.models.head(count_shown(posterior.models["probability"], top))
    axes: Axes = ax if ax is not None else new_axes(0.55 + 0.33 * len(table))
    values = table["probability"].to_numpy()
    effects = table["latent"] if "latent" in table else [()] * len(table)
    labels = [
        " + ".join((*names, *others)) or "(intercept only)"
        for names, others in zip(table["features"], effects, strict=True)
    ]
    draw_bars(axes, labels, values, strong=np.arange(values.size) == 0)
    shown = f"{values.sum():.0%}" if values.sum() < 0.995 else "nearly all"
    which = "this model holds" if len(table) == 1 else f"these {len(table)} hold"
    tidy(axes, x=f"posterior probability ({which} {shown})", frame=["bottom"])
    return axes


def draw_image(posterior: "Posterior", top: int, n_models: int, widths: str, ax: Any) -> "Axes":
    """Features by models, coloured by the sign of the coefficient."""
    models = [posterior.model(rank) for rank in range(min(n_models, posterior.n_averaged))]
    n_always = len(posterior.always)
    edges = _edges(np.array([model.probability for model in models]), widths)
    mass: dict[str, float] = {}
    for model in models:
        for name in model.features[n_always:]:
            mass[name] = mass.get(name, 0.0) + model.probability
    names = sorted(mass, key=lambda name: -mass[name])[:top]
    axes: Axes = ax if ax is not None else new_axes(0.75 + 0.2 * max(len(names), 1))
    for column, model in enumerate(models):
        across = [(edges[column], edges[column + 1] - edges[column])]
        slopes = model.fit.coefficients[1 + n_always :]
        for name, slope in zip(model.features[n_always:], slopes, strict=True):
            if name in names:
                colour = BLUE if slope > 0 else ORANGE
                row = (names.index(name) - 0.5, 1.0)
                axes.broken_barh(across, row, facecolors=colour, linewidth=0)
    axes.vlines(
        edges[1:-1][np.diff(edges)[1:] > 0.006], -0.5, len(names) - 0.5, "white", linewidth=0.4
    )
    axes.hlines(np.arange(1, len(names)) - 0.5, 0, 1, color="white", linewidth=0.8)
    axes.set_facecolor(PALE)
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.5, -0.5))
    _name_rows(axes, names)
    _mark_models(axes, edges)
    share = min(1.0, float(posterior.models["probability"].head(len(models)).sum()))
    count = f"{len(models)} models" if len(models) > 1 else "1 model"
    tidy(axes, x=f"rank ({count}, {share:.0%})", frame=[], loc="right")
    axes.tick_params(axis="both", length=0)
    _explain_signs(axes)
    return axes


def _edges(probability: FloatArray, widths: str) -> FloatArray:
    """Where models begin and end between zero and one."""
    if widths == "probability":
        size = probability
    elif widths == "log_odds":
        # As in R's BAS; the last model keeps a width.
        size = 1.0 + np.log(probability) - np.log(probability[-1])
    else:
        msg = f"widths must be 'log_odds' or 'probability'; got widths={widths!r}."
        raise InvalidSettingError(msg)
    return np.concatenate([[0.0], np.cumsum(size / size.sum())])


def _mark_models(axes: "Axes", edges: FloatArray) -> None:
    """Ranks below the columns that have room for them."""
    width = axes.get_window_extent().width / axes.figure.dpi * 0.6
    middle, ranks, free = 0.5 * (edges[1:] + edges[:-1]), [], 0.0
    for rank in range(middle.size):
        if middle[rank] * width >= free:
            ranks.append(rank)
            free = middle[rank] * width + 0.16
    axes.set_xticks(middle[ranks], [str(rank + 1) for rank in ranks])


def _name_rows(axes: "Axes", names: list[str]) -> None:
    texts = [fit_text(axes, display(name), size=SMALL, share=0.55) for name in names]
    axes.set_yticks(np.arange(len(texts)), texts, parse_math=False)


def _explain_signs(axes: "Axes") -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=BLUE, label="positive"), Patch(color=ORANGE, label="negative")]
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=2,
        fontsize=SMALL,
        frameon=False,
        handlelength=0.8,
        handletextpad=0.4,
        columnspacing=1.0,
        borderaxespad=0.2,
    )


def draw_complexity(posterior: "Posterior", ax: Any) -> "Axes":
    """Posterior of a model's total complexity."""
    axes: Axes = ax if ax is not None else new_axes(1.9)
    each = dict(zip(posterior.features["feature"], posterior.features["complexity"], strict=True))
    total = [sum(each[name] for name in names) for names in posterior.models["features"]]
    mass = np.bincount(total, posterior.models["probability"])
    axes.bar(np.arange(mass.size), mass, width=0.8, color=BLUE)
    seen = np.flatnonzero(mass > 1e-3 * mass.max())
    axes.set_xlim(seen[0] - 1.0, seen[-1] + 1.0)
    axes.locator_params(axis="x", integer=True)
    tidy(axes, x="complexity of the model (sum over its features)", y="posterior probability")
    return axes


def draw_path(posterior: "Posterior", ax: Any) -> "Axes":
    """What each formula of the path leaves unexplained, against its complexity."""
    table = posterior.path
    axes: Axes = ax if ax is not None else new_axes(2.2)
    left = 1.0 - table["r2"].to_numpy()
    explained = bool(np.all(np.isfinite(left)))
    # What is left of a perfect fit is rounding.
    values = np.maximum(left, 1e-16) if explained else table["log_evidence"].to_numpy()
    complexity, best = table["complexity"].to_numpy(), int(table["probability"].argmax())
    axes.step(complexity, values, where="post", color=GREY, linewidth=0.8, zorder=1)
    colours = np.where(np.arange(values.size) == best, BLUE, GREY).tolist()
    axes.scatter(complexity, values, s=14, c=colours, zorder=2)
    if explained:
        axes.set_yscale("log")
    axes.locator_params(axis="x", integer=True)
    tidy(
        axes,
        x="complexity of the formula",
        y="share of the variation left" if explained else "log evidence",
    )
    label = display(" + ".join(table["features"].iloc[best]) or "(intercept only)")
    title = f"most probable: {label}"
    axes.set_title(
        fit_text(axes, title, size=SMALL), fontsize=SMALL, color=BLUE, loc="left", parse_math=False
    )
    return axes


def draw_chains(posterior: "Posterior", top: int | None, ax: Any) -> "Axes":
    """Inclusion probabilities by each chain alone."""
    by_chain, merged = posterior.chain_inclusion, posterior.features["inclusion"].to_numpy()
    count = count_shown(np.maximum(merged, by_chain.max(axis=1)), top)
    by_chain, merged = by_chain.head(count), merged[:count]
    names, n_chains = by_chain.index.tolist(), by_chain.shape[1]
    axes: Axes = ax if ax is not None else new_axes(0.95 + 0.2 * max(len(names), 1))
    rows = np.arange(len(names))
    colours = np.where(by_chain.index.isin(posterior.disagreements), ORANGE, GREY).tolist()
    lowest, highest = by_chain.min(axis=1), by_chain.max(axis=1)
    axes.hlines(rows, 0, 1, color=PALE, linewidth=0.8, zorder=1)
    axes.hlines(rows, lowest, highest, colors=colours, linewidth=2, zorder=2)
    shift = np.linspace(-0.2, 0.2, n_chains) if n_chains > 1 else [0.0]
    for chain in range(n_chains):
        own = by_chain[chain]
        axes.plot(own, rows + shift[chain], "o", color=BLUE, markersize=2.6, alpha=0.75)
    axes.plot(merged, rows, "|", color=INK, markersize=7, markeredgewidth=1.2)
    axes.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5))
    _name_rows(axes, names)
    label = "inclusion probability, by chain"
    tidy(axes, x=label, frame=["bottom"], loc="right")
    axes.tick_params(axis="y", length=0)
    axes.set_title(_captured(posterior), fontsize=SMALL, color=SOFT, loc="right")
    return axes


def _captured(posterior: "Posterior") -> str:
    captured = posterior.diagnostics.captured
    text = f"{len(captured)} chains found {captured.min():.0%} to {captured.max():.0%}"
    if np.round(captured.min(), 2) == np.round(captured.max(), 2):
        text = f"{len(captured)} chains found {captured.min():.0%}"
    rhat = posterior.diagnostics.rhat
    return f"{text}; R-hat {max(rhat.values()):.2f}" if rhat else text
