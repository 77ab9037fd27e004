"""Are eight interactions of up to four binary covariates found? Example 6 of the paper.

Run ``python benchmarks/example6.py --data-sets 100 --jobs 2``; it writes
``docs/results/example6.md`` and ``example6.csv``. All data are simulated.
"""

import argparse
import csv
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from page import RESULTS, machine, markdown_table

import dbrm

THRESHOLD = 0.5
SETTINGS = {"transforms": [], "max_complexity": 4}
UNIT_INFORMATION = {"name": "jeffreys", "constant": "unit_information"}
CASES = {
    "bic": {"penalty": "bic"},
    "logic-regression": {"penalty": "logic-regression"},
    "logic-regression, unit information": {
        "penalty": "logic-regression",
        "prior": UNIT_INFORMATION,
    },
}
TREES = tuple("*".join(f"X{j}" for j in numbers) for numbers in dbrm.datasets.LOGIC_LAW)

# The paper's table of Example 6, column DBRM_G (threshold not stated there).
PAPER = {
    "X7": 1.0,
    "X8": 1.0,
    "X2*X9": 1.0,
    "X18*X21": 1.0,
    "X1*X3*X27": 1.0,
    "X12*X20*X37": 1.0,
    "X4*X10*X17*X30": 0.99,
    "X11*X13*X19*X50": 0.98,
}
PAPER_POWER, PAPER_FP, PAPER_FDR = 0.9963, 0.51, 0.0601


@dataclass(frozen=True)
class Run:
    """What one fit found."""

    case: str
    seed: int
    inclusion: tuple[float, ...]
    others: int
    seconds: float

    @property
    def found(self):
        return np.array(self.inclusion) > THRESHOLD

    @property
    def false_share(self):
        detected = int(self.found.sum()) + self.others
        return self.others / detected if detected else 0.0


def run(case, seed, n_jobs):
    table = dbrm.datasets.simulate_logic(seed)
    y = table.pop("Y")
    started = perf_counter()
    posterior = dbrm.fit(table, y, random_state=seed, n_jobs=n_jobs, **SETTINGS, **CASES[case])
    seconds = perf_counter() - started
    inclusion = tuple(posterior.inclusion(tree) for tree in TREES)
    detected = int((posterior.features["inclusion"] > THRESHOLD).sum())
    true = sum(value > THRESHOLD for value in inclusion)
    return Run(case, seed, inclusion, detected - true, seconds)


def summarise(runs):
    """Power of each tree and overall, FP, FDR, median and longest time."""
    power = np.mean([one.found for one in runs], axis=0)
    seconds = np.array([one.seconds for one in runs])
    return {
        **{tree: f"{value:.4f}" for tree, value in zip(TREES, power, strict=True)},
        "overall power": f"{power.mean():.4f}",
        "FP": f"{np.mean([one.others for one in runs]):.4f}",
        "FDR": f"{np.mean([one.false_share for one in runs]):.4f}",
        "median seconds": f"{np.median(seconds):.1f}",
        "longest seconds": f"{seconds.max():.1f}",
    }


def write_page(groups, jobs):
    paper = {tree: f"{PAPER[tree]:.4f}" for tree in TREES} | {
        "overall power": f"{PAPER_POWER:.4f}",
        "FP": f"{PAPER_FP:.4f}",
        "FDR": f"{PAPER_FDR:.4f}",
    }
    columns = [summarise(runs) for runs in groups.values()]
    rows = [
        (name, *(column[name] for column in columns), paper.get(name, "")) for name in columns[0]
    ]
    header = ("", *(f"dbrm, {case}" for case in groups), "paper, DBRM_G")
    n_data_sets = len(next(iter(groups.values())))
    text = [
        "# Example 6: interactions of binary covariates",
        "",
        f"{n_data_sets} simulated data sets of 1,000 rows and 50 binary covariates; the mean is a",
        "sum of eight products of one to four of them (`dbrm.datasets.simulate_logic`). One call of",
        f"`dbrm.fit(..., transforms=[], max_complexity=4, n_jobs={jobs})` per data set, with the",
        'default penalty `"bic"` and with `"logic-regression"`, the prior of the example. That prior',
        "charges little for one more covariate, and the default coefficient prior nothing for one",
        "more coefficient; with the unit-information constant it does.",
        f"A feature is detected if its inclusion probability exceeds {THRESHOLD}. Rows are the power",
        "for each true feature, its mean, the mean number of other features detected (FP), and",
        "the mean share of these among all detected (FDR); times are of one fit, once compiled.",
        "",
        machine(),
        "",
        markdown_table(header, rows),
        "",
    ]
    (RESULTS / "example6.md").write_text("\n".join(text), encoding="utf-8")


def write_csv(groups):
    with (RESULTS / "example6.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "seed", *TREES, "others", "seconds"])
        for runs in groups.values():
            for one in runs:
                values = [f"{value:.4f}" for value in one.inclusion]
                writer.writerow([one.case, one.seed, *values, one.others, f"{one.seconds:.2f}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes per fit")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--dry", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    run("bic", 10_000, options.jobs)  # compiles
    groups = {}
    for case in options.cases:
        groups[case] = []
        for seed in range(options.data_sets):
            groups[case].append(run(case, seed, options.jobs))
            one = groups[case][-1]
            print(case, seed, one.found.sum(), one.others, f"{one.seconds:.1f}", flush=True)
        print(summarise(groups[case]), flush=True)
    if not options.dry:
        RESULTS.mkdir(parents=True, exist_ok=True)
        write_csv(groups)
        write_page(groups, options.jobs)


if __name__ == "__main__":
    main()
