"""What should users get when they set nothing? Priors of coefficients and of models compared.

    python benchmarks/defaults.py [--half choose] [--family gaussian] [--minutes 30]
    python benchmarks/defaults.py --half confirm --choices before now

Every choice sees the same simulated truths (`defaults_data`), at the default effort, so that
differences are paired. Two scores were named before the first run: for inference the log score of
covariates (does a covariate take part or not), for prediction that of new rows (`defaults_scores`).
Results are added to ``docs/results/defaults.csv`` one by one, and a run goes on where the last one
ended; ``docs/results/defaults.md`` is written from that file (``--page``: only this).
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from time import monotonic, process_time
from typing import Any

import pandas as pd
from defaults_data import FAMILIES, TRUTHS, half, simulate
from defaults_page import NOW, write_page
from defaults_scores import (
    EDGES,
    common_scores,
    score_groups,
    score_inclusion,
    score_prediction,
)
from page import RESULTS

import dbrm

FILE = RESULTS / "defaults.csv"
SCORES = (
    *("power", "false", "fdr", "covariate_log", "prediction", "coverage"),
    *("size", "cpu_seconds", "disagree", "unexplored"),
    *(
        f"{of}{i}_{what}"
        for of in ("feature", "covariate", "group")
        for i in range(len(EDGES) - 1)
        for what in ("n", "claimed", "true")
    ),
)
KEY = ("family", "number", "half", "kind", "choice")

UNIT: dict[str, Any] = {"name": "jeffreys", "constant": "unit_information"}
RIDGE: dict[str, Any] = {"name": "normal", "variance": 1.0, "standardised": True}
LOG_N = "log n"
# Name -> prior of the coefficients and penalty. "log n" is the price of the paper's scripts.
CHOICES: dict[str, tuple[Any, str]] = {
    "jeffreys, bic": ("jeffreys", "bic"),
    "unit information, multiplicity": (UNIT, "multiplicity"),
    "unit information, adaptive": (UNIT, "adaptive"),
    "zellner-siow, adaptive": ("zellner-siow", "adaptive"),
    "zellner-siow, multiplicity": ("zellner-siow", "multiplicity"),
    "zellner-siow, log n": ("zellner-siow", LOG_N),
    "robust, adaptive": ("robust", "adaptive"),
    "hyper-g/n, adaptive": ("hyper-g-n", "adaptive"),
    "unit information, log n": (UNIT, LOG_N),
    "ridge, adaptive": (RIDGE, "adaptive"),
    "zellner-siow, aic": ("zellner-siow", "aic"),
}
# What the defaults were before this study.
BEFORE = {
    "gaussian": "jeffreys, bic",
    **dict.fromkeys(FAMILIES[1:], "unit information, multiplicity"),
}


@dataclass(frozen=True)
class Task:
    """One fit of the study."""

    family: str
    number: int
    choice: str

    @property
    def half(self) -> str:
        return half(self.family, self.number)

    @property
    def possible(self) -> bool:
        """Independent normal coefficients need another engine for a Gaussian response."""
        return self.family != "gaussian" or CHOICES[self.choice][0] is not RIDGE

    def run(self) -> dict[str, Any]:
        truth = simulate(self.family, self.number)
        prior, penalty = CHOICES[self.choice]
        price = log(len(truth.X)) if penalty == LOG_N else penalty
        started = process_time()
        posterior = dbrm.fit(
            truth.X,
            truth.y,
            family=self.family,
            prior=prior,
            penalty=price,
            transforms="smooth",
            random_state=self.number,
            n_jobs=1,
        )
        seconds = process_time() - started
        return {
            "kind": truth.kind,
            **score_inclusion(posterior, truth.features, list(truth.X)),
            **score_groups(posterior, truth.features, truth.X),
            **score_prediction(posterior, truth.X_new, truth.y_new, self.family),
            **common_scores(posterior),
            "cpu_seconds": seconds,
        }


def plan(part: str, families: list[str], choices: list[str]) -> Iterator[Task]:
    """All fits of one half, truth by truth."""
    for number in range(TRUTHS):
        for family in families:
            if half(family, number) == part:
                for name in choices:
                    choice = {"before": BEFORE, "now": NOW}.get(name, {}).get(family, name)
                    task = Task(family, number, choice)
                    if task.possible:
                        yield task


def run(tasks: Iterator[Task], deadline: float) -> None:
    """Work through what is not in the file yet."""
    done = set()
    if FILE.exists():
        stored = pd.read_csv(FILE, usecols=["family", "number", "choice"])
        done = set(stored[["family", "number", "choice"]].itertuples(index=False, name=None))
    with FILE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=[*KEY, *SCORES], extrasaction="ignore")
        if not done:
            writer.writeheader()
        for task in tasks:
            if (task.family, task.number, task.choice) in done:
                continue
            if monotonic() > deadline:
                print("The time is over; start again to go on.")
                return
            scores = {
                name: value if isinstance(value, str) else f"{value:.6g}"
                for name, value in task.run().items()
            }
            record = {"family": task.family, "number": task.number, "half": task.half}
            writer.writerow({**record, "choice": task.choice, **scores})
            file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("choose", "confirm"), default="choose")
    parser.add_argument("--family", choices=FAMILIES, nargs="+", default=list(FAMILIES))
    parser.add_argument(
        "--choices", choices=("before", "now", *CHOICES), nargs="+", default=list(CHOICES)
    )
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if not options.page:
        deadline = monotonic() + 60.0 * options.minutes
        run(plan(options.half, options.family, options.choices), deadline)
    write_page(pd.read_csv(FILE))


if __name__ == "__main__":
    main()
