"""Coverage of intervals for groups with slopes of their own, over simulated data sets.

    python benchmarks/random_slopes.py [--datasets 100]

Intercept and slope of every group are drawn from a bivariate normal distribution, fitted with
``(x | group)`` beside a covariate without effect, and compared with their 95 % intervals.
Responses of further groups, which no row belongs to, are compared with their predictive
intervals.
"""

import argparse
from time import process_time

import numpy as np
import pandas as pd
from page import RESULTS, machine, markdown_table

import dbrm

N_NEW, EFFECT = 20, "RandomSlope(group, x)"
# Groups, rows of each, and standard deviations of intercepts, slopes and errors.
CASES = {
    "gaussian": (15, 8, 0.8, 0.5, 0.5),
    "few rows each": (30, 3, 0.8, 0.5, 0.5),
    "poisson": (15, 10, 0.6, 0.4, None),
}


def simulate(
    rng: np.random.Generator, case: str
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of known and new groups, their responses, and intercepts and slopes."""
    n_groups, n_each, intercepts, slopes, error = CASES[case]
    group = np.repeat(np.arange(n_groups + N_NEW), n_each)
    correlation = 0.4 * intercepts * slopes
    covariance = [[intercepts**2, correlation], [correlation, slopes**2]]
    a, b = rng.multivariate_normal([0.0, 0.0], covariance, n_groups + N_NEW).T
    X = pd.DataFrame(rng.normal(size=(group.size, 2)), columns=["x", "noise"])
    eta = 1.0 + 0.5 * X["x"].to_numpy() + a[group] + b[group] * X["x"].to_numpy()
    y = rng.poisson(np.exp(eta)) if error is None else eta + error * rng.normal(size=group.size)
    X["group"] = [f"g{j:02}" for j in group]
    return X, y.astype(float), a[:n_groups], b[:n_groups]


def cover(case: str, seed: int) -> dict[str, float | str]:
    rng = np.random.default_rng([list(CASES).index(case), seed])
    X, y, a, b = simulate(rng, case)
    n_known = a.size * CASES[case][1]
    known, new = slice(0, n_known), slice(n_known, None)
    started = process_time()
    posterior = dbrm.enumerate_models(
        X[known],
        y[known],
        family="poisson" if case == "poisson" else "gaussian",
        latent=["RandomIntercept(group)", EFFECT],
        max_latent=1,
        penalty="aic",
        always=["x"],
    )
    seconds = process_time() - started
    found = {"case": case, "seed": seed, "selected": posterior.inclusion(EFFECT)}
    table = posterior.latent_effect(EFFECT)
    # The slopes that the intervals are for are deviations from the mean of these groups' slopes:
    # so are the true ones. The intercept is that at the mean of x.
    at_mean = a + b * X["x"][known].mean()
    for term, truth in (("intercept", at_mean), ("x", b)):
        rows = table[table["term"] == term]
        found[term] = float(((rows["lower"] <= truth) & (truth <= rows["upper"])).mean())
    low, high = posterior.predict_interval(X[new]).T
    found["new groups"] = float(((low <= y[new]) & (y[new] <= high)).mean())
    return found | {"seconds": seconds}


def write_page(results: pd.DataFrame) -> None:
    rows = []
    for case, group in results.groupby("case", sort=False):
        n_groups, n_each, *_ = CASES[case]
        probable = group[group["selected"] > 0.5]
        covered = [
            f"{100 * part[name].mean():.1f} ± {100 * part[name].sem():.1f} %"
            for name, part in (
                ("intercept", probable),
                ("x", probable),
                ("x", group),
                ("new groups", group),
            )
        ]
        rows.append(
            (
                case,
                f"{n_groups} of {n_each} rows",
                len(group),
                len(probable),
                *covered,
                f"{group['seconds'].median():.2f} s",
            )
        )
    header = (
        "case",
        "groups",
        "data sets",
        "slopes probable",
        "intercepts",
        "slopes",
        "slopes, all data sets",
        "responses of new groups",
        "time each",
    )
    text = f"""# Slopes that differ between groups

Do 95 % intervals hold 95 % of the intercepts and slopes of groups, and of the responses of groups that
no training row belongs to? Intercepts and slopes are drawn from a bivariate normal distribution with
correlation 0.4. Offered are `RandomIntercept(group)` and `RandomSlope(group, x)`, one of them at most, and
a covariate without effect; `x` is in every model. Covered, with standard errors over data sets: intercepts and slopes where
`RandomSlope` has a probability above one half, and slopes in all data sets, given that they are in the model, even where the
data say that they are not:

{markdown_table(header, rows)}

Counts have no interval of exactly 95 %: the equal-tailed one holds more.

{machine()} Written by `benchmarks/random_slopes.py`.
"""
    (RESULTS / "random_slopes.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=100)
    options = parser.parse_args()
    found = []
    for case in CASES:
        found += [cover(case, seed) for seed in range(options.datasets)]
        print(pd.DataFrame(found).groupby("case", sort=False).mean().drop(columns="seed"))
    write_page(pd.DataFrame(found))


if __name__ == "__main__":
    main()
