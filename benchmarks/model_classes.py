"""Are laws of the named model classes found? One simulated truth per class, many seeds.

Run ``python benchmarks/model_classes.py``; it writes ``docs/results/model_classes.md``.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from page import RESULTS, machine, markdown_table

import dbrm


@dataclass(frozen=True)
class Truth:
    """A law, data from it, and the settings of its model class."""

    simulate: Callable[[np.random.Generator], tuple[pd.DataFrame, pd.Series]]
    features: tuple[str, ...]
    settings: Mapping[str, Any]


def fractional_polynomial(rng):
    x = pd.DataFrame(rng.uniform(0.3, 3.0, size=(200, 4)), columns=list("abcd"))
    return x, 2 * np.log(x["a"]) + 0.5 / x["b"] ** 2 + 0.3 * rng.normal(size=200)


def steps(rng):
    x = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
    high, low = x["a"] > x["a"].quantile(0.5), x["b"] < x["b"].quantile(0.25)
    return x, 1.5 * high - 1.5 * low + 0.5 * rng.normal(size=300)


def logic(rng):
    x = pd.DataFrame(rng.integers(0, 2, size=(400, 10)), columns=[f"x{j}" for j in range(1, 11)])
    either = (x["x1"] == 1) | (x["x2"] == 1)
    but_not = (x["x3"] == 1) & (x["x4"] == 0)
    return x, 2.0 * either + 1.5 * but_not + rng.normal(size=400)


def pendulum(rng):
    x = pd.DataFrame(
        {
            "length": rng.uniform(0.2, 2.0, size=150),
            "gravity": rng.choice([1.6, 3.7, 9.8, 24.8], size=150),
            "mass": rng.uniform(0.1, 5.0, size=150),
            "angle": rng.uniform(0.05, 0.3, size=150),
        }
    )
    period = 2 * np.pi * np.sqrt(x["length"] / x["gravity"])
    return x, period + 0.05 * rng.normal(size=150)


TRUTHS = {
    "fractional polynomial": Truth(
        fractional_polynomial,
        ("log_abs(a)", "power[-2](b)"),
        {"transforms": "fractional-polynomials"},
    ),
    "steps": Truth(steps, ("step[q0.5](a)", "step_down[q0.25](b)"), {"transforms": "steps"}),
    "logic with or and not": Truth(
        logic,
        ("not(not(x1)*not(x2))", "x3*not(x4)"),
        {
            "transforms": "logic",
            "penalty": "logic-regression",
            "prior": {"name": "jeffreys", "constant": "unit_information"},
        },
    ),
    "dimensional law": Truth(
        pendulum,
        ("sqrt_abs(length*power[-1](gravity))",),
        {
            "transforms": ["sqrt_abs", "power[-1]", "sin", "exp"],
            "units": {"length": "m", "gravity": "m/s**2", "mass": "kg"},
        },
    ),
}


def find(name, seed):
    """Least inclusion of the true features, greatest of the others, and seconds."""
    truth = TRUTHS[name]
    x, y = truth.simulate(np.random.default_rng(seed))
    started = perf_counter()
    posterior = dbrm.fit(x, y, n_chains=2, n_populations=20, random_state=seed, **truth.settings)
    seconds = perf_counter() - started
    found = [posterior.inclusion(feature) for feature in truth.features]
    inclusion = posterior.features["inclusion"].to_numpy()
    others = inclusion[~np.isclose(inclusion[:, None], found, rtol=0, atol=0).any(axis=1)]
    return min(found), float(others.max(initial=0.0)), seconds


def summarise(name, n_seeds):
    runs = np.array([find(name, seed) for seed in range(n_seeds)])
    right = (runs[:, 0] > 0.5) & (runs[:, 1] <= 0.5)
    return (
        name,
        f"{int((runs[:, 0] > 0.5).sum())} of {n_seeds}",
        f"{int(right.sum())} of {n_seeds}",
        f"{runs[:, 0].min():.3f}",
        f"{np.median(runs[:, 2]):.2f} / {runs[:, 2].max():.2f}",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    rows = []
    for name in TRUTHS:
        rows.append(summarise(name, options.seeds))
        print(*rows[-1], sep="  ", flush=True)
    header = ("class", "found", "found, nothing else", "least inclusion", "seconds")
    text = [
        "# Named model classes",
        "",
        "One simulated law per class, the settings of [model classes](../tutorials/model-classes.md),",
        "two chains of twenty populations, one process. *Found*: all true features have inclusion",
        "above one half; *nothing else*: and no other feature has. *Least inclusion* is that of a",
        "true feature in any run. Times are median / longest of one fit; the first compiles.",
        "",
        machine(),
        "",
        markdown_table(header, rows),
        "",
    ]
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "model_classes.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
