"""How much posterior mass does MJMCMC find per model visited? US crime, 15 covariates.

Run ``python benchmarks/uscrime_mass.py --data uscrime.csv``. The data are those of
Raftery, Madigan and Hoeting (1997), in R as ``MASS::UScrime``; all columns but the indicator
``So`` enter as logarithms. All 32,768 models are enumerated for the truth. Hubin and
Storvik (2018) report the mass that their mode jumping MCMC had captured after 1909 and 3237
different models. Writes ``docs/results/uscrime_mass.md``, ``.csv`` and ``.png``.
"""

import argparse
import csv
from time import perf_counter

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from page import RESULTS, machine, markdown_table

from dbrm.evidence import GaussianEngine, resolve_prior
from dbrm.search import KernelMix, Mjmcmc, PriorTerms, enumerate_population

# Different models visited, and the mass that Hubin and Storvik (2018) captured with them.
PUBLISHED = {1909: 0.58, 3237: 0.71}
SEEDS = 50
STEPS = 100_000
MIXES = {
    "default": KernelMix(),
    "add and delete": KernelMix(0.0, 0.0, 1.0, 0.0, 0.0),
    "change": KernelMix(1.0, 0.0, 0.0, 0.0, 0.0),
    "multiple try": KernelMix(0.0, 0.0, 0.0, 1.0, 0.0),
    "large jump": KernelMix(0.0, 0.0, 0.0, 0.0, 1.0),
}


def read(path):
    """Columns and response, logarithms but for the indicator."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != "y"]
    values = np.array([[float(row[name]) for name in names] for row in rows])
    indicator = names.index("So")
    columns = np.log(np.where(np.arange(len(names)) == indicator, 1.0, values))
    columns[:, indicator] = values[:, indicator]
    return columns, np.log([float(row["y"]) for row in rows])


def captured(mix, population, terms, log_mass, seed):
    """Mass captured after each new model, in the order in which models were met."""
    size = population.size
    settings = Mjmcmc(n_steps=STEPS, kernels=mix, window=np.inf)
    start = np.zeros(size, dtype=np.bool_)
    found = settings.explore(np.random.default_rng(seed), population, terms, start)
    return np.cumsum(np.exp(found.log_evidence + found.log_prior - log_mass))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="uscrime.csv")
    columns, response = read(parser.parse_args().data)
    n, size = columns.shape
    population = GaussianEngine(response, resolve_prior("g-prior", g=float(n))).prepare(columns)
    terms = PriorTerms(np.zeros(size), np.zeros(size + 1))
    exact = enumerate_population(population, terms, window=np.inf, max_kept=1 << size)
    share = np.exp(exact.log_evidence + exact.log_prior - exact.log_mass)
    best = np.cumsum(np.sort(share)[::-1])
    started = perf_counter()
    curves = {
        name: [captured(mix, population, terms, exact.log_mass, seed) for seed in range(SEEDS)]
        for name, mix in MIXES.items()
    }
    seconds = perf_counter() - started
    rows = [row(name, group) for name, group in curves.items()]
    rows.append(("best possible", *(f"{best[count - 1]:.3f}" for count in PUBLISHED), "", ""))
    rows.append(("Hubin and Storvik (2018)", *(f"{p:.2f}" for p in PUBLISHED.values()), "", ""))
    for line in rows:
        print(*line, sep="\t")
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_seeds(curves)
    draw(curves["default"], best)
    write_page(rows, seconds)


def row(name, curves):
    """Median mass at the two counts and the worst seed of each."""
    at = [[c[count - 1] for c in curves if c.size >= count] for count in PUBLISHED]
    return (
        name,
        *(f"{np.median(values):.3f}" for values in at),
        *(f"{np.min(values):.3f}" for values in at),
    )


def write_seeds(curves):
    with open(RESULTS / "uscrime_mass.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernels", "seed", *(f"mass_{count}" for count in PUBLISHED), "unique"])
        for name, group in curves.items():
            for seed, curve in enumerate(group):
                mass = [f"{curve[c - 1]:.6f}" if curve.size >= c else "" for c in PUBLISHED]
                writer.writerow([name, seed, *mass, curve.size])


def draw(curves, best):
    """Captured mass against different models visited, every seed one line."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    most = 5000
    axes.plot(np.arange(1, most + 1), best[:most], color="0.6", linestyle="--", label="best models")
    for number, curve in enumerate(curves):
        label = f"dbrm, {len(curves)} seeds" if number == 0 else None
        shown = curve[:most]
        axes.plot(
            np.arange(1, shown.size + 1), shown, color="C0", alpha=0.25, linewidth=0.8, label=label
        )
    axes.plot(
        list(PUBLISHED), list(PUBLISHED.values()), "s", color="C3", label="Hubin and Storvik (2018)"
    )
    axes.set(
        xlabel="different models visited (of 32,768)",
        ylabel="posterior mass captured",
        xlim=(0, most),
        ylim=(0, 1),
    )
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / "uscrime_mass.png", dpi=150)


def write_page(rows, seconds):
    first, second = PUBLISHED
    text = f"""# US crime: posterior mass per model visited

Fifteen covariates of 47 states, g-prior with g = 47, all models equally likely beforehand. All
32,768 models are enumerated for the truth; then MJMCMC walks from the empty model, {STEPS:,}
steps with each of {SEEDS} seeds. Every model that it evaluates counts, accepted or not, in the
order in which it was met. The table has the posterior mass captured by the first {first:,} and
{second:,} different models: the numbers at which Hubin and Storvik (2018) report 0.58 and 0.71
for their implementation.

![Posterior mass captured against different models visited](uscrime_mass.png)

{
        markdown_table(
            (
                "kernels",
                f"median at {first:,}",
                f"median at {second:,}",
                f"worst seed at {first:,}",
                f"worst seed at {second:,}",
            ),
            rows,
        )
    }

Per model evaluated the simple moves find most. The default mix gives up some of that for large
jumps and multiple tries, which can leave a mode; one step in a hundred is a large jump.

All {SEEDS * len(MIXES)} walks took {seconds:.0f} s. Every seed is in `uscrime_mass.csv`.

{machine()}
"""
    (RESULTS / "uscrime_mass.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
