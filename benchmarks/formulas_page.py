"""The page of the known laws, from the rows that were kept."""

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from known_formulas import FORMULAS, HALVES, ROWS
from page import RESULTS, keep, markdown_table
from symbolic_regressors import DBRM

__all__ = ["write_page"]

BLUE = "#0072b2"
# Mark of another program, and how far it stands beside the middle of a bar.
PEERS = {"gplearn": ("o", -0.15), "pyoperon": ("s", 0.0), "pyoperon, nodes": ("D", 0.15)}
OPEN = {"s": 26, "facecolor": "white", "edgecolor": "black", "linewidth": 0.8, "zorder": 3}
# What the project set itself on the confirming half, by budget and noise: share of laws.
GOALS = {
    ("3", "0"): 0.70,
    ("3", "0.01"): 0.65,
    ("20", "0"): 0.85,
    ("20", "0.01"): 0.75,
    ("20", "0.1"): 0.50,
}
# Goals for what is said of the laws: posterior where found, largest claim for a wrong one and in
# how many of the misses, and how far a budget may be exceeded.
SURE, CLAIM, MISSES, LATE = 0.9, 0.2, 0.95, 1.1


def write_page(rows, measured):
    """Write text and picture, and keep the counts; `measured` says where and when."""
    groups = _groups(rows)
    goals = {f"{budget}, {noise}": goal for (budget, noise), goal in GOALS.items()}
    keep("formulas", {"shares": _shares(groups), "goals": goals, "measured": measured})
    _draw(groups)
    (RESULTS / "formulas.md").write_text(_text(rows, groups, measured), encoding="utf-8")


def _groups(rows):
    """Rows by half, budget, noise and method, in this order."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["half"], row["budget"], row["noise"], row["method"]].append(row)

    def order(group):
        half, budget, noise, method = group
        return -HALVES.index(half), float(budget), float(noise), method != "dbrm", method

    return {group: groups[group] for group in sorted(groups, key=order)}


def _shares(groups):
    return {
        ", ".join(group): [sum(int(row["exact"]) for row in rows), len(rows)]
        for group, rows in groups.items()
    }


def _percent(noise):
    return f"{100 * float(noise):g} %"


def _all_misses(rows):
    """What was claimed in the misses of the confirming half, of columns with a goal and of all."""
    misses = [
        row
        for row in rows
        if row["method"] == "dbrm" and row["half"] == "confirming" and not int(row["exact"])
    ]
    with_goal = [row for row in misses if (row["budget"], row["noise"]) in GOALS]
    texts = []
    for what, some in (("columns with a goal", with_goal), ("all columns", misses)):
        large = [row for row in some if float(row["claim"]) > CLAIM]
        gains = [float(row["gain"]) for row in large if row.get("gain")]
        share = 100 * (len(some) - len(large)) / max(len(some), 1)
        text = (
            f"Of the {len(some)} misses of {what} together {len(some) - len(large)} "
            f"({share:.1f} %) have a claim of at most {CLAIM:g}."
        )
        if gains and len(gains) == len(large):
            text += (
                f" In the other {len(large)} the law itself, with its true constants, is at most {max(gains):.1f} nats more likely "
                "than the formula that was found, before either pays for its length."
            )
        texts.append(text)
    return " ".join(texts) + " Such data hardly tell the two apart."


def _summary(groups, half):
    for (of, budget, noise, method), rows in groups.items():
        if of != half:
            continue
        exact = np.array([int(row["exact"]) for row in rows])
        seconds = np.array([float(row["seconds"]) for row in rows])
        late = int(np.sum(seconds > LATE * float(budget)))
        truths, misses = ([row for row in rows if int(row["exact"]) == passed] for passed in (1, 0))
        goal = GOALS.get((budget, noise))
        yield (
            f"{method}, {budget} s, noise {_percent(noise)}",
            f"{exact.sum()} of {exact.size}",
            f"{100 * exact.mean():.0f} %",
            "" if goal is None or method != "dbrm" else f"{100 * goal:.0f} %",
            sum(int(row["among"]) for row in rows),
            _pair(truths, ("claim", "probability"), lambda values: f"{np.median(values):.2f}"),
            _pair(misses, ("claim", "share"), lambda v: f"{100 * np.mean(v <= CLAIM):.0f} %"),
            f"{np.median(seconds):.1f} / {seconds.max():.1f}",
            late,
        )


def _pair(rows, names, describe):
    """Two columns in words, the second in brackets; empty values do not count, NaN is no claim."""
    columns = [np.array([float(row[name]) for row in rows if row[name]]) for name in names]
    first, second = (describe(np.nan_to_num(c)) if c.size else "" for c in columns)
    return f"{first} ({second})" if second else first


def _collections(rows):
    """Found of tried, by collection, of the confirming half."""
    names = {formula.name: formula.collection for formula in FORMULAS}
    columns = list(dict.fromkeys((r["budget"], r["noise"]) for r in rows if r["method"] == "dbrm"))
    columns.sort(key=lambda pair: (float(pair[0]), float(pair[1])))
    header = ("", *(f"{budget} s, {_percent(noise)}" for budget, noise in columns))
    lines = []
    for collection in dict.fromkeys(names.values()):
        cells = []
        for budget, noise in columns:
            exact = [
                int(row["exact"])
                for row in rows
                if (row["budget"], row["noise"], row["method"]) == (budget, noise, "dbrm")
                and row["half"] == "confirming"
                and names[row["formula"]] == collection
            ]
            cells.append(f"{sum(exact)} of {len(exact)}" if exact else "")
        lines.append((collection, *cells))
    return markdown_table(header, lines)


def _single(rows, half):
    texts = {formula.name: formula.text for formula in FORMULAS}
    chosen = [row for row in rows if row["half"] == half and row["method"] == "dbrm"]
    columns = list(dict.fromkeys((row["budget"], row["noise"]) for row in chosen))
    columns.sort(key=lambda pair: (float(pair[0]), float(pair[1])))
    exact = {(r["formula"], r["budget"], r["noise"]): r["exact"] for r in chosen}
    marks = {"1": "yes", "0": "·", None: ""}
    tried = {row["formula"] for row in chosen}
    lines = [
        (name, f"`{text}`", *(marks[exact.get((name, *column))] for column in columns))
        for name, text in texts.items()
        if name in tried
    ]
    header = ("", "law", *(f"{budget} s, {_percent(noise)}" for budget, noise in columns))
    return markdown_table(header, lines) if lines else ""


def _draw(groups):
    """Bars of dbrm, and a mark for each other program."""
    shown = [group for group in groups if group[0] == "confirming"]
    columns = [group[1:3] for group in shown if group[3] == "dbrm"]
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for method in dict.fromkeys(group[3] for group in shown):
        found = [(p, groups.get(("confirming", *c, method))) for p, c in enumerate(columns)]
        places = [place for place, rows in found if rows]
        heights = [100 * np.mean([int(row["exact"]) for row in rows]) for _, rows in found if rows]
        if method == "dbrm":
            bars = axes.bar(places, heights, 0.6, color=BLUE, label=method)
            axes.bar_label(bars, fmt="%.0f", fontsize=8, padding=2)
        else:
            marker, shift = PEERS.get(method, ("x", 0.0))
            moved = [place + shift for place in places]
            axes.scatter(moved, heights, marker=marker, label=method, **OPEN)
    for place, column in enumerate(columns):
        if column in GOALS:
            goal = 100 * GOALS[column]
            axes.plot([place - 0.35, place + 0.35], [goal, goal], color="black", linewidth=1)
    labels = [f"{budget} s\nnoise {_percent(noise)}" for budget, noise in columns]
    axes.set_xticks(np.arange(len(columns)), labels, fontsize=8)
    axes.set_ylabel("found exactly, % (line: goal)")
    axes.set_ylim(0, 100)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(RESULTS / "formulas.png", dpi=150)
    plt.close(figure)


HEADER = (
    "",
    "exact",
    "rate",
    "goal",
    "among the first ten",
    "claim where found, median (share of visited)",
    f"misses with a claim of at most {CLAIM:g} (with a share)",
    "seconds, median / longest",
    "over the budget by more than 10 %",
)


def _text(rows, groups, measured):
    sizes = {half: sum(f.half == half for f in FORMULAS) for half in HALVES}
    peers = sorted({row["method"] for row in rows} - {"dbrm"})
    beside = f"beside {', '.join(peers)}" if peers else "no other program could be installed there"
    transforms = ", ".join(DBRM["transforms"])
    return f"""# Known laws found again

{len(FORMULAS)} laws: the 100 equations of the Feynman lectures and their bonus set of 20, the collections of Nguyen,
Keijzer, Livermore, Jin, Korns and Vladislavleva, and a hundred random expressions from the grammar in
`benchmarks/random_formulas.py`. {ROWS} rows with independent uniform variables; Gaussian noise as a share
of the signal's standard deviation. The call is plain, the same for all laws:

```python
dbrm.fit(X, y, transforms="laws", time_budget=seconds)
```

One process, one thread; seconds are processor time. ({beside[:1].upper()}{beside[1:]}.)

The laws were split into halves by a hash of their names, and the list was committed, before any was run.
The half *choosing* ({sizes["choosing"]} laws) was looked at while the search was changed; the half *confirming*
({sizes["confirming"]}) was only measured. Many laws of both halves are famous, and those of an earlier list of 73 (Nguyen, Keijzer,
Feynman) had been looked at before there were halves.

## The confirming half

![Laws found exactly, by time and noise](formulas.png)

{markdown_table(HEADER, _summary(groups, "confirming"))}

{_collections(rows)}

## The choosing half

{markdown_table(HEADER, _summary(groups, "choosing"))}

## What counts as found

A law is found *exactly* if the most probable model

* is the law up to its constants: there are constants, none of them zero where the law's is not, for which the law
  differs from it by less than a thousand-millionth of the law's weakest term (root mean square) over 500 fresh points inside
  and up to 500 outside the training ranges, a quarter further on each side (by less than 2e-5 for pyoperon, which predicts
  in single precision: approximations to five digits count as laws there); and
* has the right constants: on the same points its error is at most three times the standard error that
  estimates of the law's own constants have, the form being known (or 1e-4 of the signal, where that is larger).

Points where the law is more than three times as large as in the training rows, and the worst fiftieth of the
others, may lie near poles and do not count. A close approximation does not pass: of 205 formulas of the choosing half that
differed from their law by less than 1e-5, the limit of earlier measurements, 198 differed by less than 2e-12, and seven by more than 3e-7:
approximations of an arcsine, of a logarithm and of a polynomial, and a root with a superfluous term. The constants of a law are the factors of all
its summands, multiplied out, of the arguments of functions, and a constant in every sum that a function is applied to.
*Among the first ten* counts laws that pass anywhere among the ten most probable models.

Two columns are about honesty: the claim of the law where it was found (goal: {SURE:g} in the median), and how often the claim
of a best model that is wrong is at most {CLAIM:g} (goal: {100 * MISSES:.0f} % of the misses). The claim, `posterior.claim`, counts that
something may be left which no formula visited has (`posterior.lack_of_fit`), whether a second chain found the formula, whether it has too many
fitted numbers for the digits of its fit (`posterior.may_approximate`), and whether formulas of another form fit nearly as well (`posterior.contested`); its settings were
chosen on the choosing half with one and ten per cent noise. In brackets the same of the share of the probability of
all formulas visited, which is what was claimed before. {_all_misses(rows)} A wrong formula that fits within the noise leaves
nothing to notice.

The functions ({transforms}) do not contain the inverse sine of two of the Feynman equations and the inverse cosine of one of the bonus
set, which therefore cannot be found; tangents and hyperbolic tangents only as ratios. Laws may have a complexity of twenty.

{measured}

## Law by law, confirming half

{_single(rows, "confirming")}

## Law by law, choosing half

{_single(rows, "choosing")}

All rows, with the formulas that were found, are in `formulas.csv` beside this page. `python benchmarks/formulas.py` goes on
where it stopped: `--half`, `--noise`, `--budget`, `--only`, `--minutes`, `--page`.
"""
