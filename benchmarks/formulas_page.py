"""The page of the known formulas, from the rows that were kept."""

from collections import Counter
from importlib.metadata import version

import matplotlib.pyplot as plt
import numpy as np
from known_formulas import FORMULAS, HELD_OUT, ROWS, SECOND_VOLUME, THIRD_VOLUME
from page import RESULTS, keep, markdown_table
from symbolic_regressors import DBRM, GPLEARN, GPLEARN_GENERATIONS, OPERON

__all__ = ["write_page"]

COLOURS = {"dbrm": "#0072b2", "gplearn": "#e69f00", "pyoperon": "#009e73"}
MARKS = {"1": "yes", "0": "·", "": ""}


def write_page(rows, seconds, measured):
    """Write text and picture, and keep the counts; `measured` says where and when."""
    rows = _complete(rows)
    later, rows = _among(rows, HELD_OUT), _among(rows, FORMULAS)
    numbers = {"seen": _shares(rows), "held_out": _shares(later)}
    keep("formulas", numbers | {"measured": measured})
    _draw(numbers["seen"])
    text = _text(rows, later, seconds, measured)
    (RESULTS / "formulas.md").write_text(text, encoding="utf-8")


def _complete(rows):
    """Rows of formulas that every method has tried at that level of noise."""
    tried = Counter((row["formula"], row["noise"]) for row in rows)
    return [row for row in rows if tried[row["formula"], row["noise"]] == len(COLOURS)]


def _shares(rows):
    """For each level of noise and method how many were found, of how many."""
    shares = {}
    for row in rows:
        found = shares.setdefault(row["noise"], {}).setdefault(row["method"], [0, 0])
        found[0] += int(row["exact"])
        found[1] += 1
    return shares


def _of(rows, noise, method):
    return [row for row in rows if (row["noise"], row["method"]) == (noise, method)]


def _among(rows, formulas):
    names = {formula.name for formula in formulas}
    return [row for row in rows if row["formula"] in names]


def _summary(rows):
    lines = []
    for noise, found in _shares(rows).items():
        for method, (exact, total) in found.items():
            chosen = _of(rows, noise, method)
            mass = [float(row["probability"]) for row in chosen if row["probability"]]
            known = [value for value in mass if value > 0.01]
            times = [float(row["seconds"]) for row in chosen]
            lines.append(
                (
                    f"noise {100 * float(noise):g} %, {method}",
                    f"{exact} of {total}",
                    f"{exact / total:.2f}",
                    sum(int(row["on_front"]) for row in chosen),
                    f"{np.mean(mass):.2f}" if mass else "",
                    f"{np.median(known):.2f}" if known else "",
                    f"{np.median(times):.1f} / {max(times):.1f}",
                )
            )
    return lines


def _single(rows, formulas):
    by_place = {(row["formula"], row["noise"], row["method"]): row["exact"] for row in rows}
    lines = []
    for formula in formulas:
        cells = [
            MARKS[by_place.get((formula.name, noise, method), "")]
            for noise, found in _shares(rows).items()
            for method in found
        ]
        lines.append((formula.name, f"`{formula.text}`", *cells))
    return lines


def _draw(shares):
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    places = np.arange(len(shares))
    for shift, (method, colour) in enumerate(COLOURS.items()):
        heights = [100 * found[method][0] / found[method][1] for found in shares.values()]
        bars = axes.bar(places + 0.27 * (shift - 1), heights, 0.25, color=colour, label=method)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_xticks(places, [f"noise {100 * float(noise):g} %" for noise in shares])
    axes.set_ylabel("found exactly, %")
    axes.set_ylim(0, 100)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(RESULTS / "formulas.png", dpi=150)
    plt.close(figure)


def _columns(rows):
    shares = _shares(rows)
    methods = [f"{method}, {100 * float(n):g} %" for n, found in shares.items() for method in found]
    return ("", "law", *methods)


def _text(rows, later, seconds, measured):
    total = len({row["formula"] for row in rows})
    settings = {"dbrm": DBRM, "gplearn": GPLEARN, "pyoperon": OPERON}
    shown = "\n".join(f"{name}: {_plain(value)}" for name, value in settings.items())
    header = (
        "",
        "exact",
        "rate",
        "among candidates",
        "posterior of the truth, mean",
        "median where found",
        "seconds, median / longest",
    )
    return f"""# Known formulas found again

{total} formulas of Nguyen, Keijzer and the Feynman lectures, {ROWS} rows
each with independent uniform variables, Gaussian noise of 0, 1 and 10 % of the signal's standard
deviation. One setting per method for all formulas, the same functions for all (+, -, *, /, sqrt,
log, exp, sin, cos, square), one process, one thread. dbrm has {seconds:g} s of processor time (wall
time on a machine with nothing else to do), the others as long or, where dbrm took longer, as long as
that; those that end early start again with other seeds, and their
best formula counts (gplearn: least squared error; pyoperon: least BIC on its fronts).

![Formulas found exactly by level of noise](formulas.png)

{markdown_table(header, _summary(rows))}

A formula is found *exactly* if the one formula that a method settles for (for dbrm the most probable
model)

* is the law up to its constants: there are constants for which the law differs from it by less than
  3e-6 of the signal (root mean square) over 500 fresh points inside and 500 outside the training
  ranges, up to twice as far, and
* has the right constants: on the same points its error is at most three times the standard error
  that estimates of the law's own constants have, the form being known (or 1e-4 of the signal, where
  that is larger).

The same test for all; a close approximation does not pass. *Among candidates* counts laws that pass
anywhere among pyoperon's fronts or dbrm's ten most probable models. The posterior of the truth is the
probability of all models of dbrm, among the first ten, that pass the test.

{measured.rstrip(".")}, gplearn {version("gplearn")}, pyoperon {version("pyoperon")}.

## Formulas held out

The formulas above were chosen before any was run, and none was dropped. But the setting of dbrm was chosen
while looking at what it found among them, and what `sweep_projections` does was written because
some were not found, so that its numbers above flatter it. (pyoperon's choice on its front was changed, too,
from description length to BIC, which served it better.) The following formulas were
written down and run only after that: {len(SECOND_VOLUME)} of Feynman's second volume,

{markdown_table(header, _summary(_among(later, SECOND_VOLUME)))}

(dbrm found 14 without noise and 15 with 1 % at the first attempt. Where it did not, its time was mostly
over before the search began; since then a chain whose time goes to the look at laws of one term looks
once at what was found there. The table has its second attempt), and, after that change,
{len(THIRD_VOLUME)} of the third volume:

{markdown_table(header, _summary(_among(later, THIRD_VOLUME)))}

## Formula by formula

{markdown_table(_columns(rows), _single(rows, FORMULAS))}

{markdown_table(_columns(later), _single(later, HELD_OUT))}

All rows, with the formulas that were found, are in `formulas.csv` beside this page.

## Settings

```text
{shown}
gplearn restarts every {GPLEARN_GENERATIONS} generations; slope and intercept by least squares
```
"""


def _plain(settings):
    def text(value):
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(getattr(item, "name", str(item)) for item in value) + "]"
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name}={text(value)}" for name, value in settings.items())
