"""How many steps of MJMCMC per second, and what do they cost beside the evaluations?

Run ``python benchmarks/mjmcmc_steps.py``; it writes ``docs/results/mjmcmc_steps.md``. Times are
processor time of one thread, so that other work on the machine disturbs little.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from statistics import median  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
from page import RESULTS, keep, machine, markdown_table  # noqa: E402

from dbrm.evidence import GaussianEngine, GlmEngine, resolve_prior  # noqa: E402
from dbrm.search import KERNEL_NAMES, KernelMix, Mjmcmc, PriorTerms  # noqa: E402

SIZE, REPEATS = 20, 7
GAUSSIAN_ROWS, GAUSSIAN_STEPS = 300, 1_000_000
LOGISTIC_ROWS, LOGISTIC_STEPS = 1536, 5_000


def simulate(n):
    rng = np.random.default_rng(1)
    columns = rng.standard_normal((n, SIZE)) + 0.5 * rng.standard_normal((n, 1))
    return rng, columns, columns[:, :5] @ np.array([0.8, -0.5, 0.4, 0.3, 0.2])


def gaussian():
    rng, columns, eta = simulate(GAUSSIAN_ROWS)
    response = eta + rng.standard_normal(GAUSSIAN_ROWS)
    return GaussianEngine(response, resolve_prior("jeffreys")).prepare(columns)


def logistic():
    rng, columns, eta = simulate(LOGISTIC_ROWS)
    response = (rng.random(LOGISTIC_ROWS) < 1 / (1 + np.exp(-eta))).astype(float)
    engine = GlmEngine(response, resolve_prior("jeffreys"), family="binomial")
    return engine.prepare(columns)


def prior(penalty):
    return PriorTerms(np.full(SIZE, -penalty), np.zeros(SIZE + 1))


def walk(population, terms, settings, seed):
    """Processor seconds of one walk, and what it found."""
    start = np.zeros(SIZE, dtype=np.bool_)
    started = process_time()
    found = settings.explore(np.random.default_rng(seed), population, terms, start)
    return process_time() - started, found


def steps_per_second(penalty, kernels=None, n_steps=GAUSSIAN_STEPS):
    population = gaussian()
    settings = Mjmcmc(n_steps=n_steps, kernels=KernelMix() if kernels is None else kernels)
    walk(population, prior(penalty), settings, 0)
    runs = [walk(population, prior(penalty), settings, seed) for seed in range(1, REPEATS + 1)]
    rates = [n_steps / seconds for seconds, _ in runs]
    different = median(found.n_evaluated for _, found in runs)
    return f"{median(rates):,.0f}", f"{max(rates):,.0f}", f"{different:,.0f}"


def logistic_overhead():
    """Share of a walk's time that is not evaluation, and the numbers behind it.

    Walk and batch are each repeated and the fastest counts: what disturbs only ever adds.
    """
    settings = Mjmcmc(n_steps=LOGISTIC_STEPS, window=np.inf)
    terms = prior(np.log(LOGISTIC_ROWS) / 2)
    walk(logistic(), terms, settings, 0)
    rows = []
    for seed in range(1, REPEATS + 1):
        walks = [walk(logistic(), terms, settings, seed) for _ in range(REPEATS)]
        found = walks[0][1]
        batch = min(batch_seconds(found) for _ in range(REPEATS))
        loop = min(seconds for seconds, _ in walks)
        rows.append((found.n_evaluated, loop, batch, (loop - batch) / loop))
    return [median(column) for column in zip(*rows, strict=True)]


def batch_seconds(found):
    """Processor seconds of the evaluations of a walk, in its order, on a fresh population."""
    population = logistic()
    started = process_time()
    values, _ = population.log_evidence(found.masks)
    seconds = process_time() - started
    np.testing.assert_allclose(values, found.log_evidence, rtol=1e-8)
    return seconds


def main():
    table = [
        ("default mix, posterior concentrated", *steps_per_second(np.log(GAUSSIAN_ROWS) / 2)),
        ("default mix, posterior spread out", *steps_per_second(0.5)),
    ]
    for name in KERNEL_NAMES:
        weights = {other: float(other == name) for other in KERNEL_NAMES}
        if name == "swap":
            weights["change"] = 0.01
        costly = name in ("multiple_try", "large_jump")
        n_steps = GAUSSIAN_STEPS // (20 if costly else 2)
        rates = steps_per_second(np.log(GAUSSIAN_ROWS) / 2, KernelMix(**weights), n_steps)
        table.append((f"only {name.replace('_', ' ')}", *rates))
    for line in table:
        print(*line, sep="\t", flush=True)
    overhead = logistic_overhead()
    print(overhead)
    rate = float(table[0][1].replace(",", ""))
    keep("mjmcmc_steps", {"steps": rate, "overhead": overhead[-1]})
    write_page(table, overhead)


def write_page(table, overhead):
    evaluated, loop, batch, share = overhead
    columns = ("", "steps/s, median", "steps/s, best", "different models")
    text = f"""# Steps of MJMCMC

Processor time of one thread, once compiled, {REPEATS} seeds; a walk includes setting up its store
and collecting its results.

{machine()}

## Gaussian population of {SIZE} columns, n = {GAUSSIAN_ROWS}

Walks of {GAUSSIAN_STEPS:,} steps with the default mix, shorter ones with a single kernel.
Concentrated means a prior of (log n)/2 per column, as BIC; spread out half a nat, and then more of
the time goes into the evaluation of models not seen before.

{markdown_table(columns, table)}

## Logistic population of {SIZE} columns, n = {LOGISTIC_ROWS:,}

A walk of {LOGISTIC_STEPS:,} steps evaluates {evaluated:,.0f} different models and takes
{loop:.3f} s. The same evaluations, in the same order, in one batch take {batch:.3f} s. What is
left, proposals, look-ups and records, is {100 * share:.1f} % of the walk (medians of {REPEATS}
seeds, each the fastest of {REPEATS} repetitions).
"""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "mjmcmc_steps.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
