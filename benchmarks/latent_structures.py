"""Is the true latent structure found? Simulated counts over irregular positions.

Run ``python benchmarks/latent_structures.py [DATA_SETS]``; it writes
``docs/results/latent_structures.md``. Each data set has one true structure among none, IID, AR1,
RW1 and OU, in turn, and one covariate that matters.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import sys  # noqa: E402
import warnings  # noqa: E402
from collections import Counter  # noqa: E402
from time import perf_counter  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from page import RESULTS, machine, markdown_table  # noqa: E402

import dbrm  # noqa: E402
from dbrm.latent import AR1, IID, OU, RW1  # noqa: E402

N = 500
TRUTHS = ("none", "IID", "AR1", "RW1", "OU")
RHO, RATE = 0.7, 0.4


def chain(rng, decay, spread):
    """A first-order process with these correlations and standard deviation."""
    values = np.empty(N)
    values[0] = rng.standard_normal()
    for i in range(1, N):
        shock = np.sqrt(1.0 - decay[i] ** 2) * rng.standard_normal()
        values[i] = decay[i] * values[i - 1] + shock
    return spread * values


def effect(rng, truth, t):
    gaps = np.diff(t, prepend=t[0])
    if truth == "IID":
        return 0.6 * rng.standard_normal(N)
    if truth == "AR1":
        return chain(rng, np.full(N, RHO), 0.8)
    if truth == "OU":
        return chain(rng, np.exp(-RATE * gaps), 0.8)
    if truth == "RW1":
        walk = np.cumsum(0.2 * np.sqrt(gaps) * rng.standard_normal(N))
        return walk - walk.mean()
    return np.zeros(N)


def simulate(seed, strength):
    rng = np.random.default_rng(seed)
    truth = TRUTHS[seed % len(TRUTHS)]
    t = np.cumsum(rng.exponential(size=N))
    x = rng.standard_normal(N)
    mean = np.exp(1.5 + 0.4 * x + strength * effect(rng, truth, t))
    return truth, pd.DataFrame({"x": x, "t": t}), rng.poisson(mean)


def best_structure(seed, strength):
    """Truth, and the structure with the highest posterior probability, sums of two included."""
    truth, X, y = simulate(seed, strength)
    offered = [IID("t"), AR1("t"), RW1("t"), OU("t")]
    posterior = dbrm.enumerate_models(
        X, y, family="poisson", penalty="bic", latent=offered, max_latent=2
    )
    shares = posterior.models.groupby("latent")["probability"].sum()
    found = " + ".join(name.removesuffix("(t)") for name in shares.idxmax()) or "none"
    return truth, found, shares.max()


def study(count, strength):
    """How often the truth wins, as text and a table."""
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [best_structure(seed, strength) for seed in range(count)]
    seconds = perf_counter() - started
    right = sum(truth == found for truth, found, _ in results)
    rows = []
    for truth in TRUTHS:
        found = Counter(best for own, best, _ in results if own == truth)
        listed = ", ".join(f"{name} {times}" for name, times in found.most_common())
        rows.append([truth, sum(found.values()), found[truth], listed])
    table = markdown_table(["truth", "data sets", "found", "structures chosen"], rows)
    return (
        f"The truth has the highest probability in **{right} of {count}** data sets "
        f"({seconds:.0f} s in all).\n\n{table}"
    )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    strong, weak = (study(count, strength) for strength in (1.0, 0.4))
    page = f"""# The true latent structure

Poisson counts at {N} irregular positions (exponential distances) with mean
exp(1.5 + 0.4 x + effect). Effects: IID with standard deviation 0.6; AR(1) over the order of the
positions, correlation {RHO}, standard deviation 0.8; Ornstein-Uhlenbeck with rate {RATE} and the same
standard deviation; a random walk with standard deviation 0.2 per unit. Offered are all four, at
most two in a model, and the covariate; the penalty is the default, 2 log n for each hyperparameter
and covariate. What counts is the structure with the highest posterior probability.

{machine()}

{strong}

## Weak effects

The same with all effects multiplied by 0.4.

{weak}
"""
    (RESULTS / "latent_structures.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
