"""How much memory does a fit take?

    python benchmarks/memory.py [--rows 1000 1000000] [--families gaussian binomial poisson]

Every fit runs in a process of its own, with default settings and one worker. Of a small table the
whole process counts, imports and compiled code included: its peak of resident memory must stay
below 400 MB. Of a tall one counts what the process takes beyond one that has fitted a small table:
it must stay below three times the table, the table itself included. Prints one line per fit, keeps
the numbers under the name ``memory`` (``rows``: one record per fit with ``measured``, ``limit`` and
``unit``), and ends with an error if a limit is passed.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from page import keep

import dbrm

N_COVARIATES, SMALL = 10, 1_000
LARGEST_SMALL_FIT, LARGEST_SHARE = 400.0, 3.0


def simulate(family, n_rows):
    rng = np.random.default_rng(5)
    names = [f"x{j + 1}" for j in range(N_COVARIATES)]
    X = pd.DataFrame(rng.normal(size=(n_rows, N_COVARIATES)), columns=names)
    eta = 0.8 * X["x1"] * X["x2"] + 0.7 * np.sin(2 * X["x3"]) + 0.5 * X["x4"]
    if family == "binomial":
        return X, (rng.random(n_rows) < 1 / (1 + np.exp(-eta))).astype(float)
    if family == "poisson":
        return X, rng.poisson(np.exp(0.5 * eta)).astype(float)
    return X, eta + rng.normal(size=n_rows)


def peak():
    """Largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit_once(family, n_rows, **options):
    """Peak memory of this process before and after one fit, and its processor time."""
    options = {"family": family, "n_jobs": 1, "random_state": 1} | options
    if n_rows > SMALL:
        # What is imported and compiled once is not the table's.
        dbrm.fit(*simulate(family, SMALL), **(options | {"n_chains": 1}))
    before, started = peak(), process_time()
    X, y = simulate(family, n_rows)
    dbrm.fit(X, y, **options)
    return {
        "family": family,
        "n_rows": n_rows,
        "table": n_rows * (N_COVARIATES + 1) * 8 / 2**20,
        "before": before,
        "peak": peak(),
        "seconds": process_time() - started,
    }


def measure(family, n_rows, **options):
    """`fit_once` in a fresh process, with what is compared with the limit."""
    call = f"memory.fit_once({family!r}, {n_rows}, **{options!r})"
    found = subprocess.run(
        [sys.executable, "-c", f"import json, memory; print(json.dumps({call}))"],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    row = json.loads(found.stdout.splitlines()[-1])
    if n_rows <= SMALL:
        return row | {"measured": row["peak"], "limit": LARGEST_SMALL_FIT, "unit": "MB"}
    share = (row["peak"] - row["before"]) / row["table"]
    return row | {"measured": share, "limit": LARGEST_SHARE, "unit": "tables"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[SMALL, 1_000_000])
    parser.add_argument("--families", nargs="+", default=["gaussian", "binomial", "poisson"])
    arguments = parser.parse_args()
    rows = []
    for family in arguments.families:
        for n_rows in arguments.rows:
            row = measure(family, n_rows)
            rows.append(row)
            print(
                f"{family:9} {n_rows:9,} rows: {row['measured']:6.1f} of {row['limit']:g} "
                f"{row['unit']} (peak {row['peak']:.0f} MB, {row['seconds']:.1f} s)",
                flush=True,
            )
    keep("memory", {"rows": rows})
    sys.exit(any(row["measured"] > row["limit"] for row in rows))


if __name__ == "__main__":
    main()
