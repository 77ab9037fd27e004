"""Missing values: complete cases, indicators and multiple imputation, over simulated data sets.

    python benchmarks/imputation.py [--datasets 100]

Three correlated covariates, of which ``a`` has missing values: completely at random (MCAR), or the
more often the larger the response and ``b`` are (MAR). What is compared is the averaged coefficient
of ``a``, and predictions of new rows without missing values.
"""

import argparse
import warnings
from time import process_time

import numpy as np
import pandas as pd
from page import RESULTS, machine, markdown_table

import dbrm
from dbrm.errors import DBRMWarning

N_TRAIN, N_TEST, SHARE = 150, 500, 0.35
SLOPES = {"a": 1.0, "b": 0.5, "c": 0.0}
COVARIANCE = [[1.0, 0.6, 0.3], [0.6, 1.0, 0.3], [0.3, 0.3, 1.0]]
METHODS = {"complete cases": "drop", "indicator": "indicator", "imputation": "impute"}


def simulate(rng: np.random.Generator, mechanism: str) -> tuple[pd.DataFrame, np.ndarray]:
    n = N_TRAIN + N_TEST
    X = pd.DataFrame(rng.multivariate_normal([0.0] * 3, COVARIANCE, n), columns=list(SLOPES))
    y = X.to_numpy() @ np.array(list(SLOPES.values())) + rng.normal(size=n)
    strength = np.zeros(n) if mechanism == "MCAR" else 1.5 * (y + X["b"].to_numpy())
    # The intercept that makes the share of missing values what it should be.
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = np.mean(1.0 / (1.0 + np.exp(-(middle + strength)))) > SHARE
        low, high = (low, middle) if above else (middle, high)
    missing = rng.random(n) < 1.0 / (1.0 + np.exp(-(low + strength)))
    missing[N_TRAIN:] = False
    X.loc[missing, "a"] = np.nan
    return X, y


def compare(mechanism: str, seed: int) -> list[dict[str, float | str]]:
    rng = np.random.default_rng([mechanism == "MAR", seed])
    X, y = simulate(rng, mechanism)
    truth = X[N_TRAIN:].to_numpy() @ np.array(list(SLOPES.values()))
    found = []
    for method, missing in METHODS.items():
        started = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DBRMWarning)
            posterior = dbrm.enumerate_models(
                X[:N_TRAIN],
                y[:N_TRAIN],
                missing=missing,
                prior="zellner-siow",
                random_state=seed,
                extrapolate="follow",
            )
            mean = posterior.predict(X[N_TRAIN:])
        row = posterior.coefficients().set_index("term").loc["a"]
        found.append(
            {
                "mechanism": mechanism,
                "method": method,
                "bias": float(row["estimate"]) - SLOPES["a"],
                "covered": float(row["lower"] <= SLOPES["a"] <= row["upper"]),
                "width": float(row["upper"] - row["lower"]),
                "error": float(np.sqrt(np.mean((mean - truth) ** 2))),
                "seconds": process_time() - started,
            }
        )
    return found


def write_page(results: pd.DataFrame) -> None:
    rows = []
    for (mechanism, method), group in results.groupby(["mechanism", "method"], sort=False):
        rows.append(
            (
                mechanism,
                method,
                f"{group['bias'].mean():+.3f} ± {group['bias'].sem():.3f}",
                f"{100 * group['covered'].mean():.0f} %",
                f"{group['width'].mean():.2f}",
                f"{group['error'].mean():.3f}",
                f"{group['seconds'].median():.2f} s",
            )
        )
    header = (
        "missing",
        "method",
        "bias",
        "covered",
        "width of the interval",
        "error of predictions",
        "time each",
    )
    n_sets = len(results) // len(rows)
    text = f"""# Missing values

Three covariates with correlations of 0.3 to 0.6 and coefficients 1, 0.5 and 0; {N_TRAIN} rows, in {100 * SHARE:.0f} % of which
the first covariate, *a*, is missing: completely at random (MCAR), or the more often the larger the response and *b* are
(MAR). For {n_sets} data sets each: bias and 95 % intervals of the averaged coefficient of *a*, whose true value is 1, and the root mean
square error of the predicted means of {N_TEST} new rows without missing values. `complete cases` is `missing="drop"`.

{markdown_table(header, rows)}

{machine()} Written by `benchmarks/imputation.py`.
"""
    (RESULTS / "imputation.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=100)
    options = parser.parse_args()
    found = []
    for mechanism in ("MCAR", "MAR"):
        for seed in range(options.datasets):
            found += compare(mechanism, seed)
    results = pd.DataFrame(found)
    print(results.groupby(["mechanism", "method"], sort=False).mean())
    write_page(results)


if __name__ == "__main__":
    main()
