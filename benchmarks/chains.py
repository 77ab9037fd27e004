"""What do many chains cost: on one core and on two, to run, to merge, to keep in memory?

Run ``python benchmarks/chains.py`` on a machine with nothing else to do; it writes
``docs/results/chains.md``. ``--quick`` measures little and writes nothing. Parts are run in
processes of their own, so that none is disturbed by what others left behind.
"""

import argparse
import json
import subprocess
import sys
import threading
from time import perf_counter, sleep

import joblib
import numpy as np
import psutil
from page import RESULTS, keep, machine, markdown_table

import dbrm
from dbrm.chains import run_chains, seed_sequence
from dbrm.posterior import merge_chains

CHAINS = 16


def planets():
    table = dbrm.datasets.simulate_planets(seed=1)
    return table.drop(columns="SemiMajorAxisAU"), table["SemiMajorAxisAU"]


def binary():
    draw = np.random.default_rng(1)
    columns = draw.normal(size=(600, 10))
    chance = 1 / (1 + np.exp(-columns[:, 0] * columns[:, 1] - columns[:, 2]))
    return columns, (draw.random(600) < chance).astype(float)


CASES = {
    "Kepler's law, 60 populations": (planets, {"transforms": ["troot"], "n_populations": 60}),
    "logistic, n = 600, 8 populations": (binary, {"family": "binomial", "n_populations": 8}),
}


def results_of(case, n_chains, quick, **options):
    """Problem, results and seconds of the chains alone."""
    make, settings = CASES[case]
    settings = settings | ({"n_populations": 3} if quick else {})
    problem = dbrm.fit(*make(), **settings, n_chains=1, random_state=1)._problem
    results = []
    started = perf_counter()
    run_chains(problem, n_chains, seed_sequence(2), results.append, **options)
    return problem, results, perf_counter() - started


def cores(case, quick):
    """Seconds of sixteen chains in one process, two processes and two threads."""
    make, settings = CASES[case]
    settings = settings | ({"n_populations": 3} if quick else {})
    problem = dbrm.fit(*make(), **settings, n_chains=1, random_state=1)._problem

    def run(n_jobs, backend):
        found = []
        with joblib.parallel_config(backend=backend):
            started = perf_counter()
            run_chains(problem, CHAINS, seed_sequence(2), found.append, n_jobs=n_jobs)
        return perf_counter() - started, [result.models.log_evidence for result in found]

    seconds = {}
    reference = run(1, "loky")[1]
    for name, n_jobs, backend in (
        ("one process", 1, "loky"),
        ("two processes", 2, "loky"),
        ("two threads", 2, "threading"),
    ):
        run(n_jobs, backend)
        times = []
        for _ in range(1 if quick else 5):
            spent, found = run(n_jobs, backend)
            for one, other in zip(found, reference, strict=True):
                np.testing.assert_array_equal(one, other)
            times.append(spent)
        seconds[name] = min(times)
    return seconds


def merging(case, quick):
    """Seconds to merge 64 chains, and the models they bring."""
    problem, results, _ = results_of(case, 8 if quick else 64, quick, n_jobs=2)
    started = perf_counter()
    merged = merge_chains(results, problem)
    spent = perf_counter() - started
    return {
        "chains": len(results),
        "brought": sum(len(result.models) for result in results),
        "different": len(merged.models),
        "seconds": spent,
    }


def memory(case, quick):  # noqa: ARG001
    """Resident megabytes beyond what was there before, for a million models visited."""
    draw = np.random.default_rng(1)
    columns = draw.normal(size=(300, 60))
    y = columns[:, :12] @ np.full(12, 0.12) + draw.normal(size=300)
    options = {"algorithm": "mjmcmc", "random_state": 1, "penalty": 0.7}
    dbrm.fit(columns, y, **options, n_chains=1, n_final=2000)
    process = psutil.Process()
    before, peak, done = process.memory_info().rss, [0], threading.Event()

    def watch():
        while not done.is_set():
            peak[0] = max(peak[0], process.memory_info().rss)
            sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    posterior = dbrm.fit(columns, y, **options, n_chains=10, n_final=10_000 if quick else 160_000)
    done.set()
    thread.join()
    return {
        "visited": posterior.record.n_evaluated,
        "kept": int(posterior._merged.probability.size),
        "megabytes": (peak[0] - before) / 1e6,
        "lost": posterior.lost_mass,
    }


PARTS = {"cores": cores, "merging": merging, "memory": memory}


def apart(part, case, quick):
    """Run one part in a process of its own."""
    command = [sys.executable, __file__, "--part", part, "--case", case, *(["--quick"] * quick)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--case", choices=CASES)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given.case, given.quick)))
        return
    first = next(iter(CASES))
    speed = {case: apart("cores", case, given.quick) for case in CASES}
    merged, held = apart("merging", first, given.quick), apart("memory", first, given.quick)
    text = page(speed, merged, held)
    print(text)
    if not given.quick:
        keep("chains", {"cores": speed, "merging": merged, "memory": held})
        (RESULTS / "chains.md").write_text(text, encoding="utf-8")


def page(speed, merged, held):
    rows = []
    for case, seconds in speed.items():
        one, processes = seconds["one process"], seconds["two processes"]
        rows.append(
            (
                case,
                *(f"{value:.2f}" for value in seconds.values()),
                f"{processes / one:.2f}",
                f"{seconds['two threads'] / one:.2f}",
                f"{1000 * (2 * processes - one) / CHAINS:.0f} ms",
            )
        )
    columns = ("", "1 process, s", "2 processes, s", "2 threads, s", "processes/1", "threads/1")
    return f"""# Many chains

{CHAINS} chains with the same seeds and, to the last bit, the same results, on one core and on two;
each time the best of five after a warm-up. The overhead per chain is the time that two processes
spend beyond the work: twice their time less that of one, by chain.

{markdown_table((*columns, "overhead per chain"), rows)}

Processes are the default: much of the search is Python, which threads of one interpreter cannot run
at the same time.

Merging {merged["chains"]} chains of Kepler's law, which bring {merged["brought"]:,} models,
{merged["different"]:,} of them different, takes {merged["seconds"]:.2f} s.

A run that visits {held["visited"]:,} models (MJMCMC over 60 columns, ten chains in one process) and
keeps {held["kept"]:,} of them takes {held["megabytes"]:.0f} MB of resident memory at most, beyond
what was in use before it, data included. Models not kept hold at most {held["lost"]:.2g} of the
probability.

{machine()}
"""


if __name__ == "__main__":
    main()
