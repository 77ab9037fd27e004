"""The page about defaults, written from the stored results."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from defaults_scores import EDGES, calibration_error
from page import RESULTS, machine, markdown_table

mpl.use("Agg")

DATA = ["family", "case", "replicate"]
CHOICE = ["prior", "penalty", "transforms", "effort"]
Label = tuple[str, ...]


def against(results: pd.DataFrame, column: str, reference: Label) -> pd.DataFrame:
    """Differences from the reference on the same data sets, and their standard errors."""
    table = results.pivot_table(index=DATA, columns=CHOICE, values=column, sort=False)
    gaps = table.sub(table[reference], axis=0)
    error = gaps.std() / np.sqrt(gaps.count())
    return pd.DataFrame({"gap": gaps.mean(), "error": error, "n": gaps.count()})


def with_error(row: pd.Series) -> str:
    return "" if row["error"] == 0.0 else f"{row['gap']:+.3f} ± {row['error']:.3f}"


def inference_table(results: pd.DataFrame, reference: Label, names: list[str]) -> str:
    """One row for each choice: what it finds, what it invents, what it claims."""
    gaps = {name: against(results, name, reference) for name in ("power", "covariate_log")}
    rows = []
    for label, group in results.groupby(CHOICE, sort=False):
        null = group[group["case"].str.startswith("null")]
        rows.append(
            (
                *(label[CHOICE.index(name)] for name in names),
                f"{group['power'].mean():.2f}",
                with_error(gaps["power"].loc[label]),
                f"{group['fdr'].mean():.3f}",
                f"{null['false'].mean():.2f}",
                f"{calibration_error(group):.2f}",
                f"{group['covariate_log'].mean():.3f}",
                with_error(gaps["covariate_log"].loc[label]),
                f"{group['cpu_seconds'].median():.2f}",
                len(group),
            )
        )
    header = (
        *names,
        *("power", "difference", "FDR", "false in nothing", "calibration error"),
        *("log score", "difference", "CPU s", "data sets"),
    )
    return markdown_table(header, rows)


def prediction_table(results: pd.DataFrame, reference: Label, names: list[str]) -> str:
    gaps = {name: against(results, name, reference) for name in ("log_score", "error")}
    rows = []
    for label, group in results.groupby(CHOICE, sort=False):
        coverage = group["coverage"].mean()
        rows.append(
            (
                *(label[CHOICE.index(name)] for name in names),
                f"{group['log_score'].mean():.3f}",
                with_error(gaps["log_score"].loc[label]),
                f"{group['error'].mean():.3f}",
                with_error(gaps["error"].loc[label]),
                "" if np.isnan(coverage) else f"{coverage:.1%}",
                f"{group['size'].mean():.1f}",
                f"{group['cpu_seconds'].median():.2f}",
                len(group),
            )
        )
    header = (
        *names,
        *("log score", "difference", "error", "difference", "covered", "features"),
        *("CPU s", "splits"),
    )
    return markdown_table(header, rows)


def by_table(results: pd.DataFrame, choices: list[Label]) -> str:
    """Mean log score of some choices, table by table."""
    means = results.pivot_table(index="case", columns=CHOICE, values="log_score", sort=False)
    rows = [(case, *(f"{means.loc[case, c]:.3f}" for c in choices)) for case in means.index]
    return markdown_table(("table", *(f"{c[0]}, {c[1]}" for c in choices)), rows)


def draw(results: pd.DataFrame, choices: list[Label]) -> None:
    """Claimed against realised inclusion, and power against false discoveries."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    left.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    groups = dict(list(results.groupby(CHOICE, sort=False)))
    for label, marker in zip(choices, "osD^vP", strict=False):
        totals = groups[label].filter(like="bin").sum()
        points = [
            (
                totals[f"bin{i}_claimed"] / totals[f"bin{i}_n"],
                totals[f"bin{i}_true"] / totals[f"bin{i}_n"],
            )
            for i in range(len(EDGES) - 1)
            if totals[f"bin{i}_n"] >= 5
        ]
        left.plot(*zip(*points, strict=True), marker=marker, label=f"{label[0]}, {label[1]}")
    left.set(xlabel="claimed inclusion", ylabel="share of features that are true")
    for label, group in groups.items():
        chosen = label in choices
        colour = f"C{choices.index(label)}" if chosen else "0.6"
        marker = "osD^vP"[choices.index(label)] if chosen else "."
        right.plot(group["fdr"].mean(), group["power"].mean(), marker, color=colour)
    right.set(
        xlabel="share of false among detected features (FDR)", ylabel="power", xlim=(-0.02, 0.5)
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    figure.savefig(RESULTS / "defaults.png", dpi=110)
    plt.close(figure)


OLD: Label = ("jeffreys", "bic", "smooth", "quick")
BEST: dict[str, Label] = {
    "gaussian": ("zellner-siow", "multiplicity", "smooth", "quick"),
    "binomial": ("unit-information", "multiplicity", "smooth", "quick"),
}
SHOWN = [
    OLD,
    ("jeffreys", "log n", "smooth", "quick"),
    ("jeffreys", "aic", "smooth", "quick"),
    ("zellner-siow", "log n", "smooth", "quick"),
    *BEST.values(),
]
KINDS_OF_DATA = (("gaussian", "Gaussian response"), ("binomial", "Binary response"))


def write_page(results: pd.DataFrame) -> None:
    """All of ``docs/results/defaults.md``, and its picture."""
    results = results.drop_duplicates([*DATA, *CHOICE])
    quick = results[(results["effort"] == "quick") & (results["transforms"] == "smooth")]
    inference, prediction = (quick[quick["part"] == part] for part in ("inference", "prediction"))
    draw(inference, SHOWN)
    text = [INTRODUCTION.format(machine=machine())]
    for family, title in KINDS_OF_DATA:
        chosen = inference[inference["family"] == family]
        text += [f"### {title}", "", inference_table(chosen, OLD, ["prior", "penalty"]), ""]
    text += [PICTURE, PREDICTION]
    for family, title in KINDS_OF_DATA:
        chosen = prediction[prediction["family"] == family]
        text += [f"### {title}", "", prediction_table(chosen, OLD, ["prior", "penalty"]), ""]
    text += ["### Table by table, log score", "", by_table(prediction, SHOWN), "", TRANSFORMS]
    sets = results[(results["part"] == "prediction") & (results["effort"] == "quick")]
    for family, title in KINDS_OF_DATA:
        chosen = sets[
            (sets[["family", "prior", "penalty"]] == [family, *BEST[family][:2]]).all(axis=1)
        ]
        seen = chosen[chosen["transforms"] != "smooth"][DATA].drop_duplicates()
        if len(seen):
            table = prediction_table(chosen.merge(seen, on=DATA), BEST[family], ["transforms"])
            text += [f"### {title}", "", table, ""]
    text += [EFFORT, effort_table(results), ""]
    (RESULTS / "defaults.md").write_text("\n".join(text), encoding="utf-8")


def effort_table(results: pd.DataFrame) -> str:
    """Scores of the same data sets with more and less search."""
    rows = []
    for family, title in KINDS_OF_DATA:
        chosen = results[(results["part"] == "inference") & (results["family"] == family)]
        chosen = chosen.merge(chosen[chosen["effort"] == "4 x 60"][DATA].drop_duplicates(), on=DATA)
        for label, group in chosen.groupby(CHOICE, sort=False):
            if label[:2] != BEST[family][:2] and label[3] != "4 x 60":
                continue
            one = bool(group["disagree"].isna().all())
            rows.append(
                (
                    title,
                    f"{label[0]}, {label[1]}",
                    label[3],
                    f"{group['power'].mean():.2f}",
                    f"{group['fdr'].mean():.3f}",
                    f"{group['covariate_log'].mean():.3f}",
                    "" if one else f"{group['disagree'].mean():.0%}",
                    "" if one else f"{group['unexplored'].mean():.0%}",
                    f"{group['cpu_seconds'].mean():.1f}",
                    len(group),
                )
            )
    header = (
        *("response", "prior and penalty", "effort", "power", "FDR", "log score"),
        *("chains disagree", "unexplored", "CPU s", "data sets"),
    )
    return markdown_table(header, rows)


INTRODUCTION = """# Which defaults?

What should users get when they set nothing? Priors of coefficients (`prior`), prices of complexity
(`penalty`), sets of functions (`transforms`) and the effort of the search, one at a time around what had been the default,
Jeffreys' prior with `penalty="bic"`, and priors together with penalties. What follows from it is
[decision 0012](../decisions/0012-defaults-by-evidence.md). `log n` is the price of the paper's scripts for laws,
`aic` and `bic` those of its text, `script-weights` that of its scripts for classification; `multiplicity` is
$\\log(p + \\lvert\\mathcal{{G}}\\rvert)$ with $p$ covariates and $\\lvert\\mathcal{{G}}\\rvert$ transforms; `unit-information` is
Jeffreys' prior with that constant.

All choices saw the same data sets and splits. Differences are from the first row, paired, ± one standard error
over data sets; the number of them is in the last column (choices that are slow, or like another, saw fewer). Search
here is short: one chain, 12 populations, features up to complexity 3 swept; what more effort gives is at the end.

{machine} Written by `benchmarks/defaults.py`.

## Inference: simulated truths

Half of the data sets have 100 or 150 rows, half 500 or 600; 6, 12 or 30 correlated covariates. A quarter have a
response that depends on nothing, the others on three features: covariates, products of two, or curves
(sine, cosine, Gauss, tanh) and their products with a covariate. Slopes of standardised features are between
0.3 and 1 error standard deviations, between 0.6 and 2 on the logit scale.

*Power*: share of true features with inclusion above 0.5. *FDR*: share of false ones among the
features above 0.5. *False in nothing*: how many there are where nothing is to be found. *Calibration error*: mean
distance between the claimed inclusion and the share of true features, over all features claimed above 0.05, in five
bins; it does not see what is missed. *Log score*: minus the log probability given to whether a covariate
takes part in the truth, whatever the feature, mean over covariates (probabilities cut at 0.001); it rewards both
power and calibration, less is better.
"""

PICTURE = """![Left: claimed inclusion against the share of true features, for five choices. Right: power against the
share of false discoveries of all choices; bic at the lower left, aic at the right.](defaults.png)

Left: claimed against realised inclusion, bins with at least five features. Right: each point is a choice; grey
ones are not named on the left. Both families together.
"""

PREDICTION = """## Prediction: rows not seen

Public tables of scikit-learn and simulated ones (Friedman's first and third, Hastie's, a saturation curve and a power
law with noise), standardised covariates; 95 to 300 rows for training and the others for testing. Of the breast-cancer
data only the paper's 143 training rows were used, so that nothing was chosen on its test rows. *Log score* is minus
the mean log predictive density or probability, *error* the root mean squared error in standard deviations of the
response, or the share of rows classified wrongly; *features* is the size of the best model. Less is better.
"""

TRANSFORMS = """
## Sets of transforms

The same tables under `multiplicity`, with Zellner and Siow's prior or unit information. Differences are from `smooth`. *Mixed* is
sin, cos, tanh, gauss, troot, sqrt_abs, log1p_abs, exp_neg_abs.
"""

EFFORT = """## Effort

Chains by populations, on data sets with interactions and curves. *Chains disagree*: share of runs whose verdict
asks to run longer. *Unexplored*: estimated share of the posterior mass not found.
"""
