"""Coverage of 95 % predictive intervals over simulated data sets, with search and averaging.

    python benchmarks/interval_coverage.py [--datasets 200] [--family poisson]

Every data set has its own law, drawn from the model class: two or three features of six
covariates, with their coefficients. A search is run on 150 rows, and the intervals of 200
new rows are compared with their responses. Discrete responses have no interval of exactly
95 %: the equal-tailed one covers more. Its nominal coverage is what the predictive law
itself gives to it, so that the difference of the two is what tells about calibration.
"""

import argparse
from time import perf_counter

import numpy as np
import pandas as pd
from page import RESULTS, machine, markdown_table

import dbrm

FAMILIES = ("gaussian", "binomial", "poisson", "gamma")
LEVEL, N_TRAIN, N_TEST, N_COVARIATES = 0.95, 150, 200, 6
SETTINGS = {"transforms": ["sin", "tanh"], "n_chains": 1, "n_populations": 12, "sweep": 3}
# Steepness of the linear predictor, by family: counts must not explode.
SIGNAL = {"gaussian": 1.0, "binomial": 0.7, "poisson": 0.4, "gamma": 0.5}


def simulate(
    rng: np.random.Generator, family: str
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    """Covariates, response and trials of training and test rows together."""
    n = N_TRAIN + N_TEST
    X = rng.normal(size=(n, N_COVARIATES))
    columns = [X[:, 0], np.sin(X[:, 1]), X[:, 2] * X[:, 3], np.tanh(X[:, 4])]
    chosen = rng.choice(len(columns), size=rng.integers(2, 4), replace=False)
    slopes = (
        SIGNAL[family] * rng.choice([-1.0, 1.0], chosen.size) * rng.uniform(0.6, 1.4, chosen.size)
    )
    eta = 0.5 + sum(slope * columns[j] for slope, j in zip(slopes, chosen, strict=True))
    trials = None
    if family == "gaussian":
        y = eta + rng.normal(size=n)
    elif family == "binomial":
        trials = rng.integers(20, 60, size=n)
        y = rng.binomial(trials, 1.0 / (1.0 + np.exp(-eta)))
    elif family == "poisson":
        y = rng.poisson(10.0 * np.exp(eta))
    else:
        y = rng.gamma(3.0, np.exp(eta) / 3.0)
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(N_COVARIATES)]), y, trials


def cover(family: str, seed: int) -> dict[str, float]:
    """Share of new responses inside their intervals, nominal and observed."""
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    X, y, trials = simulate(rng, family)
    train, test = slice(0, N_TRAIN), slice(N_TRAIN, None)
    counts = (None, None) if trials is None else (trials[train], trials[test])
    started = perf_counter()
    posterior = dbrm.fit(
        X[train],
        y[train].astype(float),
        trials=counts[0],
        family=family,
        random_state=seed,
        **SETTINGS,
    )
    low, high = posterior.predict_interval(X[test], LEVEL, trials=counts[1]).T
    seconds = perf_counter() - started
    rows = posterior.rows(X[test], y[test].astype(float), trials=counts[1])
    # A whole number at the lower end belongs to the interval.
    below = posterior.checks.cdf(rows, low - (family in ("binomial", "poisson")))
    up_to = posterior.checks.cdf(rows, high)
    inside = (y[test] >= low) & (y[test] <= high)
    return {
        "family": family,
        "seed": seed,
        "observed": float(inside.mean()),
        "nominal": float((up_to - below).mean()),
        "seconds": seconds,
        "models": posterior.n_averaged,
    }


def write_page(results: pd.DataFrame) -> None:
    rows = []
    for family, group in results.groupby("family", sort=False):
        error = group["observed"].std() / np.sqrt(len(group))
        rows.append(
            (
                family,
                len(group),
                f"{100 * group['observed'].mean():.2f} %",
                f"{100 * error:.2f} %",
                f"{100 * group['nominal'].mean():.2f} %",
                f"{group['seconds'].median():.1f} s",
            )
        )
    header = ("family", "data sets", "covered", "standard error", "claimed", "time each")
    text = f"""# Coverage of predictive intervals

Do 95 % intervals hold 95 % of new responses when the model has been searched for instead
of being given? For each family, data sets of {N_TRAIN} rows and {N_COVARIATES} covariates were drawn from
laws with two or three of the features x1, sin(x2), x3*x4, tanh(x5); a search was run on each
(`{SETTINGS}`, all else default), and the intervals of {N_TEST} new rows were compared with their
responses. Binomial responses have 20 to 59 trials. Intervals integrate over coefficients and average
over models. For whole numbers no interval holds exactly 95 %: *claimed* is what the predictive
distribution itself gives to the interval, and *covered* should equal it.

{markdown_table(header, rows)}

{machine()} Written by `benchmarks/interval_coverage.py`.
"""
    (RESULTS / "coverage.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    options = parser.parse_args()
    found = []
    for family in options.family or FAMILIES:
        found += [cover(family, seed) for seed in range(options.datasets)]
        results = pd.DataFrame(found)
        print(results.groupby("family", sort=False).mean().drop(columns="seed"), flush=True)
        if not options.family:
            results.to_csv(RESULTS / "coverage.csv", index=False, float_format="%.6g")
            write_page(results)


if __name__ == "__main__":
    main()
