"""How many Gaussian models are evaluated per second, beside NumPy and scikit-learn?

Run ``python benchmarks/gaussian_evaluations.py``; it writes
``docs/results/gaussian_evaluations.md``. All on one thread: set ``OMP_NUM_THREADS=1``.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from statistics import median  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
from page import RESULTS, keep, machine, markdown_table  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402

from dbrm.evidence import GaussianEngine, resolve_prior  # noqa: E402

SIZE = 20
ROWS = (1_000, 1_000_000)
REPEATS = 7
# Peers refit from the rows; a sample of this many of the same models is timed.
SAMPLE = {1_000: 300, 1_000_000: 4}
RANDOM_MASKS = 200_000
PRIORS = {"Jeffreys": "jeffreys", "hyper-g": "hyper-g"}


def simulate(n):
    rng = np.random.default_rng(1)
    columns = rng.standard_normal((n, SIZE)) + 0.5 * rng.standard_normal((n, 1))
    response = columns[:, :5] @ np.array([1.0, -0.5, 0.3, 0.2, 0.1]) + rng.standard_normal(n)
    return columns, response


def seconds(work, repeats=REPEATS):
    """Median processor time."""
    times = []
    for _ in range(repeats):
        started = process_time()
        work()
        times.append(process_time() - started)
    return median(times)


def measure(n, prior):
    columns, response = simulate(n)
    engine = GaussianEngine(response, resolve_prior(prior))
    prepared = engine.prepare(columns)
    prepared.log_evidence_of_all(SIZE)
    masks = np.random.default_rng(2).random((RANDOM_MASKS, SIZE)) < 0.5
    prepared.log_evidence(masks[:10])
    return {
        "prepare": seconds(lambda: engine.prepare(columns), repeats=3),
        "all": seconds(lambda: prepared.log_evidence_of_all(SIZE)),
        "random": seconds(lambda: prepared.log_evidence(masks)) / RANDOM_MASKS,
    }


def measure_peers(n):
    """Seconds per model of least squares from the rows, and the largest disagreement in R²."""
    columns, response = simulate(n)
    chosen = np.random.default_rng(2).random((SAMPLE[n], SIZE)) < 0.5
    engine = GaussianEngine(response, resolve_prior("jeffreys"))
    total = np.sum((response - response.mean()) ** 2)
    times, worst = {"numpy": 0.0, "sklearn": 0.0}, 0.0
    for mask in chosen:
        design = np.column_stack([np.ones(n), columns[:, mask]])
        started = process_time()
        _, residual, _, _ = np.linalg.lstsq(design, response, rcond=None)
        times["numpy"] += process_time() - started
        started = process_time()
        LinearRegression().fit(design[:, 1:], response)
        times["sklearn"] += process_time() - started
        fraction, _ = engine.fraction(columns[:, mask])
        worst = max(worst, abs(float(residual[0]) / total - fraction))
    return {name: time / len(chosen) for name, time in times.items()}, worst


def main():
    peers = {n: measure_peers(n) for n in ROWS}
    rows, enumeration, numbers = [], [], {}
    for label, prior in PRIORS.items():
        for n in ROWS:
            timing = measure(n, prior)
            each = timing["all"] / 2**SIZE
            (lstsq, sklearn) = (peers[n][0][name] for name in ("numpy", "sklearn"))
            numbers[f"{prior} {n}"] = {
                "random": 1 / timing["random"],
                "enumeration": timing["all"],
                "prepare": timing["prepare"],
                "numpy": 1 / lstsq,
                "sklearn": 1 / sklearn,
            }
            rows.append(
                (
                    f"{label}, n = {n:,}",
                    f"{1 / each:,.0f}",
                    f"{1 / timing['random']:,.0f}",
                    f"{1 / lstsq:,.4g}",
                    f"{1 / sklearn:,.4g}",
                    f"{lstsq / each:,.0f}",
                    f"{lstsq / timing['random']:,.0f}",
                    f"{sklearn / timing['random']:,.0f}",
                )
            )
            enumeration.append(
                (
                    f"{label}, n = {n:,}",
                    f"{1000 * timing['all']:.1f} ms",
                    f"{1000 * timing['prepare']:.1f} ms",
                )
            )
            print(*rows[-1], *enumeration[-1][1:], flush=True)
    keep("gaussian_evaluations", numbers)
    write_page(rows, enumeration, max(worst for _, worst in peers.values()))


def write_page(rows, enumeration, worst):
    text = f"""# Gaussian evaluations

One population of {SIZE} columns, processor time of one thread, median of {
        REPEATS
    }, once compiled. A
population is *prepared* once (its Gram matrix, the only time the rows are touched), then its models
are evaluated: all 2^{SIZE} of them in one enumeration, or {RANDOM_MASKS:,} random masks one by one.
NumPy (`linalg.lstsq`) and scikit-learn (`LinearRegression`) fit a sample of the same random masks
from the rows, as programs do that refit every model. The residual sums of squares agree with
NumPy's to {worst:.0e} of the total sum of squares.

{machine()}

## Models per second

{
        markdown_table(
            (
                "",
                "dbrm, enumeration",
                "dbrm, random masks",
                "NumPy lstsq",
                "scikit-learn",
                "enumeration / NumPy",
                "random / NumPy",
                "random / scikit-learn",
            ),
            rows,
        )
    }

## All {2**SIZE:,} models of a population

{markdown_table(("", "evaluation", "preparation"), enumeration)}
"""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "gaussian_evaluations.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
