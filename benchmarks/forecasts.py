"""Log-loss of probability forecasts on the paper's breast-cancer test rows.

    DBRM_DATA=... python benchmarks/forecasts.py [--seeds 10]

Four forecasts from the same searches: the best model with its coefficients plugged in, the
same model with its coefficients integrated over, all models with coefficients plugged in
(the paper's), and all models with coefficients integrated over (the default).
"""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
from page import RESULTS, machine, markdown_table

import dbrm

CASES = {
    "default settings": {},
    "the paper's transforms, standardised columns, less effort": {
        "transforms": "paper-classification",
        "scale": "standard",
        "n_chains": 2,
        "n_populations": 20,
    },
}
FORECASTS = (
    "best model, plugged in",
    "best model, integrated",
    "averaged, plugged in",
    "averaged, integrated",
)


def log_loss(y: np.ndarray, probability: np.ndarray) -> float:
    p = np.clip(probability, 1e-15, 1.0 - 1e-15)
    return float(-np.mean(y * np.log(p) + (1.0 - y) * np.log1p(-p)))


def forecast(case: str, seed: int) -> dict[str, float | str]:
    data = dbrm.datasets.load_breast_cancer()
    X, y = data.train.drop(columns=data.response), data.train[data.response]
    posterior = dbrm.fit(X, y, family="binomial", random_state=seed, **CASES[case])
    table = posterior.recipe.apply(data.test)
    truth = data.test[data.response].to_numpy(dtype=float)
    everything = posterior._averaged
    laws = [
        replace(models, integrate=integrate)
        for models in (everything.alone(0), everything)
        for integrate in (False, True)
    ]
    means = [np.concatenate([block.mean() for block in law.blocks(table)]) for law in laws]
    losses = {name: log_loss(truth, mean) for name, mean in zip(FORECASTS, means, strict=True)}
    right = float(np.mean((means[-1] > 0.5) == truth))
    return {"case": case, "seed": seed, **losses, "accuracy": right}


def section(case: str, results: pd.DataFrame) -> str:
    """The table of one case."""
    rows = [
        (
            name,
            f"{results[name].mean():.4f}",
            f"{results[name].min():.4f}",
            f"{results[name].max():.4f}",
            f"{(results[FORECASTS[-1]] < results[name]).sum()} of {len(results)}"
            if name != FORECASTS[-1]
            else "",
        )
        for name in FORECASTS
    ]
    header = ("forecast", "mean log-loss", "smallest", "largest", "last row is better")
    settings = ", ".join(f"`{name}={value!r}`" for name, value in CASES[case].items())
    return f"""## {case.capitalize()}

{settings}

{markdown_table(header, rows)}

Share of test rows classified correctly by the last: {results["accuracy"].mean():.1%}.
"""


def write_page(results: pd.DataFrame, n_seeds: int) -> None:
    sections = "\n".join(section(case, results[results["case"] == case]) for case in CASES)
    text = f"""# Probability forecasts

The Wisconsin breast-cancer data, divided as in the paper (Example 2): models were searched for on 143
rows, and 426 others were forecast; {n_seeds} searches that differ by their seed. Log-loss is minus the
mean log probability given to what happened; always saying the share of malignant rows in training
scores 0.66. The last row of each table is what `predict_proba` gives.

{sections}
Averaging over models is where the gain is. Integrating over the coefficients as well gains much where
one model is used alone, and little where many models are averaged: the classes are nearly separated, and
the spread between models does the same work. How little, and of which sign, depends on the models averaged.

{machine()} Written by `benchmarks/forecasts.py`.
"""
    (RESULTS / "forecasts.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    n_seeds = parser.parse_args().seeds
    results = pd.DataFrame(
        [forecast(case, seed) for case in CASES for seed in range(1, n_seeds + 1)]
    )
    results.to_csv(RESULTS / "forecasts.csv", index=False, float_format="%.6g")
    write_page(results, n_seeds)
    print(results.to_string())


if __name__ == "__main__":
    main()
