"""Do very wide and very narrow tables fit, and in how much memory?

Run ``python benchmarks/wide_data.py``; it writes ``docs/results/wide_data.md``. Each fit runs in
a process of its own, whose peak memory the operating system tells.
"""

import argparse
import json
import subprocess
import sys
from time import perf_counter

import numpy as np
from page import RESULTS, keep, machine, markdown_table

import dbrm

MEGABYTE = 1e6


def wide(rng, family):
    """200 rows and 10,000 covariates, of which four matter, two of them as a product."""
    x = rng.normal(size=(200, 10_000))
    eta = x[:, 17] + 2 * x[:, 17] * x[:, 4] + np.tanh(2 * x[:, 99])
    if family == "binomial":
        return x, (rng.random(200) < 1 / (1 + np.exp(-3 * x[:, 17]))).astype(float)
    return x, eta + 0.3 * rng.normal(size=200)


def narrow(rng, family):
    """500 rows and two covariates; the mean is x2*sin(x1)."""
    x = rng.normal(size=(500, 2))
    eta = np.sin(x[:, 0]) * x[:, 1]
    if family == "binomial":
        return x, (rng.random(500) < 1 / (1 + np.exp(-4 * eta))).astype(float)
    return x, eta + 0.1 * rng.normal(size=500)


CASES = {
    "p = 10,000, n = 200, gaussian": (wide, "gaussian", ("x18", "x5*x18")),
    "p = 10,000, n = 200, binomial": (wide, "binomial", ("x18",)),
    "p = 2, n = 500, gaussian": (narrow, "gaussian", ("x2*sin(x1)",)),
    "p = 2, n = 500, binomial": (narrow, "binomial", ("x2*sin(x1)",)),
}


def fit(name):
    """Fit one case here; returns what the table shows."""
    import resource

    simulate, family, features = CASES[name]
    x, y = simulate(np.random.default_rng(0), family)
    started = perf_counter()
    posterior = dbrm.fit(x, y, family=family, random_state=1)
    seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "found": {feature: posterior.inclusion(feature) for feature in features},
        "seconds": seconds,
        "peak": peak / MEGABYTE,
        "table": x.nbytes / MEGABYTE,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, help="fit this one here and print the result")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(fit(options.case)))
        return
    rows, numbers = [], {}
    for name in CASES:
        command = [sys.executable, __file__, "--case", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        result = json.loads(done.stdout.splitlines()[-1])
        numbers[name] = result
        found = ", ".join(f"`{feature}` {p:.2f}" for feature, p in result["found"].items())
        memory = f"{result['table']:,.0f}", f"{result['peak']:,.0f}"
        rows.append((name, found, *memory, f"{result['seconds']:.1f}"))
        print(*rows[-1], sep="  ", flush=True)
    keep("wide_data", numbers)
    header = ("data", "inclusion of the truth", "table, MB", "peak memory, MB", "seconds")
    text = [
        "# Wide and narrow tables",
        "",
        "`dbrm.fit` with default settings in a process of its own; peak memory is that of the whole",
        "process, interpreter, libraries and compiled code included (about 250 MB).",
        "",
        machine(),
        "",
        markdown_table(header, rows),
        "",
    ]
    (RESULTS / "wide_data.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
