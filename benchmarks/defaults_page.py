"""The page about defaults, written from the stored results."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from defaults_data import TRUTHS
from defaults_scores import EDGES, RELATED, calibration_error
from page import RESULTS, machine, markdown_table

mpl.use("Agg")

TITLES = {
    "gaussian": "Gaussian response",
    "binomial": "Binary response",
    "poisson": "Counts",
    "gamma": "Positive response",
}
NOW = {
    "gaussian": "zellner-siow, adaptive",
    "binomial": "ridge, adaptive",
    **dict.fromkeys(("poisson", "gamma"), "unit information, adaptive"),
}
# The same before models that no chain visited were counted; "stricter" is a price that is no longer
# there.
REPLACED = {family: f"{choice}, visited only" for family, choice in NOW.items()}
# What is claimed, and what it is called.
CALIBRATED = {
    "feature": "features",
    "group": "features with their relatives",
    "covariate": "covariates",
}
# Fewest features in a bin for a point in the picture.
_ENOUGH = 10


def difference(results: pd.DataFrame, score: str, choice: str, reference: str) -> str:
    """Mean difference of a score on the same truths, and its standard error."""
    table = results.pivot_table(index="number", columns="choice", values=score)
    if choice == reference or reference not in table:
        return ""
    gaps = table[choice] - table[reference]
    if gaps.count() < 2:
        return ""
    return f"{gaps.mean():+.3f} ± {gaps.std() / np.sqrt(gaps.count()):.3f}"


def scores_table(results: pd.DataFrame, family: str) -> str:
    """One row for each choice: what it finds, what it invents, how it predicts."""
    before, now = REPLACED[family], NOW[family]
    results = results[results["family"] == family]
    choices = sorted(
        results["choice"].unique(), key=lambda choice: (choice != before, choice != now)
    )
    reference = set(results["number"][results["choice"] == before])
    rows = []
    for choice in choices:
        group = results[results["choice"] == choice]
        null = group[group["kind"] == "nothing"]
        coverage = group["coverage"].mean()
        rows.append(
            (
                choice,
                f"{group['covariate_log'].mean():.3f}",
                difference(results, "covariate_log", choice, before),
                f"{group['prediction'].mean():.3f}",
                difference(results, "prediction", choice, before),
                f"{group['power'].mean():.2f}",
                f"{group['fdr'].mean():.2f}",
                "" if null.empty else f"{null['false'].mean():.2f}",
                "" if np.isnan(coverage) else f"{coverage:.1%}",
                f"{group['cpu_seconds'].median():.1f}",
                group["number"].nunique(),
                "" if choice == before else len(reference & set(group["number"])),
            )
        )
    header = (
        *("prior and penalty", "inference", "difference", "prediction", "difference"),
        *("power", "false among detected", "false in nothing", "covered", "CPU s", "truths"),
        "shared",
    )
    return markdown_table(header, rows)


def calibration_table(results: pd.DataFrame, what: str) -> str:
    """Claimed and realised inclusion of today's defaults, all families together."""
    totals = results.filter(like=what).sum()
    rows = []
    for i in range(len(EDGES) - 1):
        n = int(totals[f"{what}{i}_n"])
        claimed, true = (totals[f"{what}{i}_{of}"] / max(n, 1) for of in ("claimed", "true"))
        error = np.sqrt(true * (1.0 - true) / max(n, 1))
        rows.append(
            (f"{EDGES[i]:g} to {EDGES[i + 1]:g}", n, f"{claimed:.2f}", f"{true:.2f} ± {error:.2f}")
        )
    return markdown_table(("claimed between", CALIBRATED[what], "claimed", "true"), rows)


def draw(results: pd.DataFrame) -> None:
    """Claimed against realised inclusion of today's defaults, family by family."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11.4, 4.2), layout="constrained", sharey=True)
    for panel, what in zip(axes, CALIBRATED, strict=True):
        panel.plot([0, 1], [0, 1], color="0.75", linewidth=1)
        for (family, label), marker in zip(TITLES.items(), "osD^", strict=True):
            totals = results[results["family"] == family].filter(like=what).sum()
            bins = [i for i in range(len(EDGES) - 1) if totals[f"{what}{i}_n"] >= _ENOUGH]
            claimed, true = (
                [totals[f"{what}{i}_{of}"] / totals[f"{what}{i}_n"] for i in bins]
                for of in ("claimed", "true")
            )
            panel.plot(claimed, true, marker=marker, label=label)
        panel.set(title=CALIBRATED[what], xlabel="claimed inclusion", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("share that is true")
    figure.legend(
        *axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    figure.savefig(RESULTS / "defaults.png", dpi=110)
    plt.close(figure)


def write_page(results: pd.DataFrame) -> None:
    """All of ``docs/results/defaults.md``, and its picture."""
    results = results.drop_duplicates(["family", "number", "choice"])
    now = results[results["choice"] == results["family"].map(NOW)]
    draw(now)
    text = [INTRODUCTION.format(truths=TRUTHS)]
    for part, title in (
        ("choose", "The half for choosing"),
        ("confirm", "The half for confirming"),
    ):
        chosen = results[results["half"] == part]
        text += [f"## {title}", ""]
        if chosen.empty:
            text += ["Not measured yet.", ""]
        for family in chosen["family"].unique():
            text += [f"### {TITLES[family]}", "", scores_table(chosen, family), ""]
    text += [
        CALIBRATION.format(
            related=RELATED,
            now=len(now),
            all=TRUTHS * len(TITLES),
            **{f"{what}s": calibration_error(now, what) for what in CALIBRATED},
        ),
        *(f"{calibration_table(now, what)}\n" for what in CALIBRATED),
        machine(),
        "",
    ]
    (RESULTS / "defaults.md").write_text("\n".join(text), encoding="utf-8")


INTRODUCTION = """# Which defaults?

What should users get when they set nothing? Priors of coefficients and of models were compared on simulated truths
with 40 to 2,000 rows, 4 to 30 covariates, and nothing, few (1 to 3) or many (5 to 9) true features, half of them
in odd units, at the default effort. There are {truths} truths for each family; a hash of the name puts each into the half for
choosing or the half for confirming. Differences are from the defaults that were replaced, the first row, paired on the truths that both have
seen (*shared*), ± one standard error; other numbers are means over all truths of a choice. *Adaptive* is the penalty of today, *stricter
adaptive* the one until November 2026, under which a made feature was a quarter as plausible beside a covariate: it is no longer there. All choices but those of today
were measured before models that no chain visited were counted: *visited only* says so of those that are otherwise the same. What follows from it is in decisions
[0018](../decisions/0018-one-default-for-laws-and-tables.md), [0023](../decisions/0023-what-inclusion-probabilities-mean.md) and [0024](../decisions/0024-formulas-that-no-chain-visited.md).

*Inference* is the log score of covariates: does a covariate take part in the truth, in whatever feature? *Prediction* is
minus the mean log density of 300 new rows for Gaussian and binary responses, half their mean deviance for others.
For both, less is better; they were named before the first run. *Power* is the share of true features with a
probability above one half, in the very form in which they made the data; *false among detected* counts others above
one half, which may be close relatives of a true one; *false in nothing* counts them where there is nothing to find.
"""

CALIBRATION = """## Do inclusion probabilities mean what they say?

The defaults of today, all families and both halves: of what is claimed with some probability, how much is true? The mean
distance between claimed and realised is {features:.2f} for features, {groups:.2f} for features with their relatives, and {covariates:.2f} for
covariates.

* A *feature* is true in the very form in which it made the data: where the truth is `tanh(x)`, a claim for `x` counts as false, though few
  rows can tell the two apart. The posterior prefers the shorter one, and half of the curves here are not the shortest of their relatives.
* *Features with their relatives*: the surest feature and all others with a correlation of at least {related:g} to it in the training rows, then the
  surest of those that are left, and so on. Claimed is the probability that at least one of them is in the model; true is that a
  relative of the surest made the data.
* A *covariate* is true if it takes part in any true feature.

The defaults of today were measured on {now} of the {all} truths, as far as time went, in the order of their numbers; the other choices before.

![Claimed against realised inclusion](defaults.png)
"""
