"""How long until dbrm is there: to import, to fit for the first time ever, and in a new session?

Run ``python benchmarks/latency.py``; the numbers go to the page of all benchmarks. Each time is
processor time of a process of its own, wall time where nothing else runs. The first fit after installation compiles everything into an empty
cache; later first fits read that cache.
"""

import os
import resource
import subprocess
import sys
import tempfile
from statistics import median

from page import keep

IMPORT = "import {}"
FIT = """
import time, resource, numpy as np, dbrm
x = np.random.default_rng(1).normal(size=(200, 4))
y = x[:, 0] * x[:, 1] + 0.1 * x[:, 2]
started = time.process_time()
dbrm.fit(x, y{options}, n_populations=10, n_chains=1, random_state=1)
print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
"""
FAMILIES = {"gaussian": "", "binomial": ", family='binomial'"}
REPEATS = 3


def _spent_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(code, cache=None):
    """Processor seconds of a new process, and what it printed."""
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    started = _spent_by_children()
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return _spent_by_children() - started, [float(value) for value in done.stdout.split()]


def first_fits(family):
    """Seconds of the first and of later first fits, and the megabytes of the latter."""
    code = FIT.format(options=FAMILIES[family])
    if family == "binomial":
        code = code.replace("0.1 * x[:, 2]", "0.1 * x[:, 2] > 0")
    with tempfile.TemporaryDirectory() as cache:
        _, (first, _) = run(code, cache)
        later = [run(code, cache)[1] for _ in range(REPEATS)]
    return first, median(seconds for seconds, _ in later), max(size for _, size in later)


def main():
    interpreter = median(run("pass")[0] for _ in range(REPEATS))
    imports = {
        name: median(run(IMPORT.format(name))[0] for _ in range(REPEATS)) - interpreter
        for name in ("dbrm", "sklearn.linear_model", "statsmodels.api")
    }
    numbers = {"import": imports}
    for family in FAMILIES:
        first, later, memory = first_fits(family)
        numbers[family] = {"first": first, "later": later, "megabytes": memory}
    keep("latency", numbers)
    print(numbers)


if __name__ == "__main__":
    main()
