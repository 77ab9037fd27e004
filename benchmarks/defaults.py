"""What should users get when they set nothing? Priors, penalties, transforms and effort compared.

    DBRM_DATA=... python benchmarks/defaults.py [--replicates 6] [--splits 4] [--minutes 30]

Every configuration sees the same data sets and splits, so that differences are paired. Results
are added to ``docs/results/defaults.csv`` one by one, and a run goes on where the last one
ended; ``docs/results/defaults.md`` is written from that file (``--page``: only this).
"""

import argparse
import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from time import monotonic, process_time
from typing import Any

import numpy as np
import pandas as pd
from defaults_data import KINDS, ROWS, TABLES, simulate
from defaults_page import write_page
from defaults_scores import EDGES, common_scores, score_inclusion, score_prediction
from page import RESULTS

import dbrm
from dbrm.features.sets import TRANSFORM_SETS

FILE = RESULTS / "defaults.csv"
SCORES = (
    *("power", "false", "fdr", "brier", "covariate_brier", "covariate_log"),
    *("log_score", "error", "coverage", "size", "cpu_seconds", "disagree", "unexplored"),
    *(f"bin{i}_{what}" for i in range(len(EDGES) - 1) for what in ("n", "claimed", "true")),
)
KEY = ("part", "family", "case", "replicate", "prior", "penalty", "transforms", "effort")

PRIORS: dict[str, Any] = {
    "jeffreys": "jeffreys",
    "unit-information": {"name": "jeffreys", "constant": "unit_information"},
    "zellner-siow": "zellner-siow",
    "hyper-g-n": "hyper-g-n",
    "robust": "robust",
    "normal": "normal",
}
MIXED = ("sin", "cos", "tanh", "gauss", "troot", "sqrt_abs", "log1p_abs", "exp_neg_abs")
TRANSFORMS: dict[str, tuple[str, ...]] = {
    **{name: TRANSFORM_SETS[name] for name in ("smooth", "powers", "paper-g1", "paper-g2")},
    "fractional-polynomials": TRANSFORM_SETS["fractional-polynomials"],
    "steps": TRANSFORM_SETS["steps"],
    "smooth and powers": TRANSFORM_SETS["smooth"] + TRANSFORM_SETS["powers"],
    "mixed": MIXED,
}
# Chains, populations; "quick" also sweeps features up to complexity 3 only.
EFFORTS: dict[str, dict[str, int]] = {
    "quick": {"n_chains": 1, "n_populations": 12, "sweep": 3},
    "1 x 60": {"n_chains": 1, "n_populations": 60},
    "4 x 15": {"n_chains": 4, "n_populations": 15},
    "4 x 60": {"n_chains": 4, "n_populations": 60},
    "8 x 60": {"n_chains": 8, "n_populations": 60},
}


@dataclass(frozen=True)
class Choice:
    """One way to set what users may leave alone."""

    prior: str = "jeffreys"
    penalty: str = "bic"
    transforms: str = "smooth"
    effort: str = "quick"

    def fit(
        self, X: pd.DataFrame, y: np.ndarray, family: str, seed: int, scale: Any = None
    ) -> dbrm.Posterior:
        # The price of the paper's scripts for laws has no name of its own.
        penalty = log(len(X)) if self.penalty == "log n" else self.penalty
        return dbrm.fit(
            X,
            y,
            family=family,
            prior=PRIORS[self.prior],
            penalty=penalty,
            transforms=list(TRANSFORMS[self.transforms]),
            random_state=seed,
            n_jobs=1,
            scale=scale,
            **EFFORTS[self.effort],
        )


BEST = {
    "gaussian": Choice("zellner-siow", "multiplicity"),
    "binomial": Choice("unit-information", "multiplicity"),
}
PENALTIES = ("bic", "log n", "multiplicity", "aic")
ONE_BY_ONE = (
    Choice(),
    *(Choice(prior=name) for name in PRIORS if name != "jeffreys"),
    *(Choice(penalty=name) for name in (*PENALTIES[1:], "script-weights")),
)
# Choices that one replicate is enough for: slow, or very much like another.
FEW = 1
SELDOM = (
    Choice(penalty="script-weights"),
    *(Choice(prior=name) for name in PRIORS if name != "jeffreys"),
    *(Choice(a, b) for a in ("hyper-g-n", "robust") for b in PENALTIES[1:3]),
    *(Choice("unit-information", name) for name in ("log n", "aic")),
)
TOGETHER = (
    *(Choice(a, b) for a in ("unit-information", "zellner-siow") for b in PENALTIES[1:]),
    *(Choice(a, b) for a in ("hyper-g-n", "robust") for b in ("log n", "multiplicity")),
)


@dataclass(frozen=True)
class Task:
    """One fit of the study."""

    part: str
    family: str
    case: str
    replicate: int
    choice: Choice

    @property
    def key(self) -> tuple[str, ...]:
        chosen = self.choice
        named = (self.part, self.family, self.case, str(self.replicate))
        return (*named, chosen.prior, chosen.penalty, chosen.transforms, chosen.effort)

    @property
    def possible(self) -> bool:
        """Independent normal coefficients need another engine for a Gaussian response."""
        return self.choice.prior != "normal" or self.family != "gaussian"

    def run(self) -> dict[str, float]:
        started = process_time()
        if self.part == "inference":
            kind, n = self.case.split(", n=")
            truth = simulate(self.family, kind, int(n), self.replicate)
            posterior = self.choice.fit(truth.X, truth.y, self.family, self.replicate)
            seconds = process_time() - started
            scores = score_inclusion(posterior, truth.features, list(truth.X))
            return {**scores, **common_scores(posterior), "cpu_seconds": seconds}
        table = TABLES[self.case]
        X, y = table.load(self.replicate)
        order = np.random.default_rng(self.replicate).permutation(len(y))
        train, test = order[: table.n_train], order[table.n_train :]
        unit = float(y[train].std()) if table.family == "gaussian" else 1.0
        known = X.iloc[train], y[train] / unit
        posterior = self.choice.fit(*known, table.family, self.replicate, scale="standard")
        seconds = process_time() - started
        scores = score_prediction(posterior, X.iloc[test], y[test] / unit)
        return {**scores, **common_scores(posterior), "cpu_seconds": seconds}


Choices = Mapping[str, tuple[Choice, ...]]


def inference(choices: Choices, replicate: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Task]:
    for family, sizes in ROWS.items():
        for n in sizes:
            for kind in kinds:
                for choice in choices[family]:
                    yield Task("inference", family, f"{kind}, n={n}", replicate, choice)


def prediction(choices: Choices, split: int) -> Iterator[Task]:
    for name, table in TABLES.items():
        for choice in choices[table.family]:
            yield Task("prediction", table.family, name, split, choice)


def priors_and_penalties(replicate: int) -> Choices:
    every = ONE_BY_ONE + TOGETHER
    some = tuple(choice for choice in every if choice not in SELDOM)
    return dict.fromkeys(BEST, every if replicate < FEW else some)


def variants(setting: str, values: Iterable[str]) -> Choices:
    """The best penalty with other transforms or another effort."""
    named = list(values)
    return {
        family: tuple(replace(best, **{setting: value}) for value in named)
        for family, best in BEST.items()
    }


def plan(replicates: int, splits: int) -> list[Task]:
    """All fits, so ordered that the first hours say most."""
    before = dict.fromkeys(BEST, (Choice(effort="4 x 60"),))
    tasks: list[Task] = []
    for i in range(max(replicates, splits)):
        tasks += inference(priors_and_penalties(i), i) if i < replicates else ()
        tasks += prediction(priors_and_penalties(i), i) if i < splits else ()
        tasks += prediction(variants("transforms", TRANSFORMS), i) if i < min(splits, FEW) else ()
        if i == 0:
            tasks += inference(variants("effort", EFFORTS), i, KINDS[2:])
            tasks += inference(before, i, KINDS[2:])
    return tasks


def run(tasks: list[Task], deadline: float) -> None:
    """Work through what is not in the file yet."""
    done = set()
    if FILE.exists():
        stored = pd.read_csv(FILE, dtype=str, usecols=list(KEY))
        done = set(stored[list(KEY)].itertuples(index=False, name=None))
    with FILE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=[*KEY, *SCORES])
        if not done:
            writer.writeheader()
        for task in tasks:
            if task.key in done or not task.possible:
                continue
            if monotonic() > deadline:
                print("The time is over; start again to go on.")
                return
            record = dict(zip(KEY, task.key, strict=True))
            scores = {name: f"{value:.6g}" for name, value in task.run().items()}
            writer.writerow({**record, **scores})
            file.flush()
            done.add(task.key)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=6, help="data sets of each kind")
    parser.add_argument("--splits", type=int, default=4, help="divisions of each table")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    deadline = monotonic() + 60.0 * options.minutes
    if not options.page:
        run(plan(options.replicates, options.splits), deadline)
    write_page(pd.read_csv(FILE))


if __name__ == "__main__":
    main()
