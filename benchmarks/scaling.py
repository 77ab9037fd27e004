"""How do time and memory of a fit grow with rows, columns and chains?

Run ``python benchmarks/scaling.py``; the numbers go to the page of all benchmarks. Each fit has
a process of its own, in which NumPy's least squares on the same table is timed, too.
"""

import argparse
import json
import subprocess
import sys
from time import perf_counter

import numpy as np
from page import keep

USUAL = {"rows": 1_000, "columns": 10, "chains": 2}
GRID = {
    "rows": (1_000, 10_000, 100_000, 1_000_000),
    "columns": (10, 100, 1_000, 10_000),
    "chains": (1, 2, 4, 8),
}
QUICK = {"rows": (1_000, 10_000), "columns": (10, 100), "chains": (1, 2)}


def fit(rows, columns, chains):
    """Seconds and megabytes of one fit here, after a small one that compiles."""
    import resource

    import dbrm

    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, columns))
    y = x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + 0.5 * rng.normal(size=rows)
    effort = {"n_populations": 20, "n_chains": chains, "random_state": 1, "n_jobs": 1}
    dbrm.fit(x[:200, :5], y[:200], n_populations=3, n_chains=1, random_state=1)
    started = perf_counter()
    posterior = dbrm.fit(x, y, **effort)
    seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    started = perf_counter()
    np.linalg.lstsq(x, y, rcond=None)
    return {
        "seconds": seconds,
        "megabytes": peak,
        "table": x.nbytes / 1e6,
        "lstsq": perf_counter() - started,
        "found": min(posterior.inclusion("x1*x2"), posterior.inclusion("sin(x3)")),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fit", type=int, nargs=3, metavar=("ROWS", "COLUMNS", "CHAINS"))
    options = parser.parse_args()
    if options.fit:
        print(json.dumps(fit(*options.fit)))
        return
    numbers = {}
    for what, values in (QUICK if options.quick else GRID).items():
        numbers[what] = []
        for value in values:
            size = USUAL | {what: value} | ({"rows": 200} if what == "columns" else {})
            command = [sys.executable, __file__, "--fit", *(str(v) for v in size.values())]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            numbers[what].append(size | json.loads(done.stdout.splitlines()[-1]))
            print(what, numbers[what][-1], flush=True)
    if not options.quick:
        keep("scaling", numbers)


if __name__ == "__main__":
    main()
