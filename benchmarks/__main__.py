"""Run the benchmarks, and write ``docs/results/benchmarks.md`` from what they measured.

``python -m benchmarks`` runs all, ``python -m benchmarks peers laws`` some, ``--quick`` those that
take about a minute altogether, and ``--page`` none: the page is written from the numbers kept in
``docs/results/numbers``. ``--list`` names them. Each benchmark is a program of its own; options
after a single name are passed on to it, as in ``python -m benchmarks search_goals --only parity``.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from table import write_page  # noqa: E402

# Name -> about how many minutes it takes.
BENCHMARKS = {
    "gaussian_evaluations": 1,
    "glm_evaluations": 1,
    "mjmcmc_steps": 1,
    "latent_evaluations": 1,
    "latency": 2,
    "chains": 3,
    "scaling": 4,
    "wide_data": 3,
    "tall_data": 15,
    "gpu": 15,
    "memory": 6,
    "missed_mass": 8,
    "search_goals": 25,
    "mass_found": 15,
    "laws": 15,
    "laws_peers": 4,
    "peers": 6,
    "formulas": 25,
    "example7": 6,
    "tables": 240,
}
QUICK = ("gaussian_evaluations", "glm_evaluations", "latent_evaluations")


def command(name):
    """How to run a benchmark."""
    return [sys.executable, str(FOLDER / f"{name}.py")]


def main():
    name, *further = sys.argv[1:] or [None]
    if name in BENCHMARKS and further and further[0].startswith("-"):
        subprocess.run([*command(name), *further], check=True)
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="run only these")
    parser.add_argument("--quick", action="store_true", help=f"run only {', '.join(QUICK)}")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and their minutes")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if options.list:
        print("\n".join(f"{name:22} {minutes:3} min" for name, minutes in BENCHMARKS.items()))
        return
    names = options.names or (QUICK if options.quick else list(BENCHMARKS))
    for name in () if options.page else names:
        started = perf_counter()
        subprocess.run(command(name), check=True)
        print(f"{name}: {perf_counter() - started:.0f} s", flush=True)
    print(write_page())


if __name__ == "__main__":
    main()
