"""How long does one evaluation of a model with a latent effect take, and how does it grow?

Run ``python benchmarks/latent_evaluations.py``; it writes
``docs/results/latent_evaluations.md``. Times are processor time of one thread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
from page import RESULTS, keep, machine, markdown_table  # noqa: E402

from dbrm.evidence import Observations, add_latent, bind, build_engine, resolve_prior  # noqa: E402
from dbrm.latent import AR1, IID, OU, RW1, RW2  # noqa: E402

SIZES = (500, 2_000, 10_000, 30_000, 100_000)
EFFECTS = {
    "RW1": [RW1("t")],
    "AR1": [AR1("t")],
    "OU": [OU("t")],
    "IID": [IID("t")],
    "RW2": [RW2("t")],
    "RW1 + IID": [RW1("t"), IID("t")],
    "RW1 + AR1 + IID": [RW1("t"), AR1("t"), IID("t")],
}
REPEATS = 7


def population(n, effects):
    """Poisson counts over a random walk, three columns, irregular positions."""
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.gamma(2.0, 0.5, n))
    walk = np.cumsum(0.1 * np.sqrt(np.diff(t, prepend=0.0)) * rng.standard_normal(n))
    columns = rng.standard_normal((n, 3))
    drift = np.sin(np.linspace(0.0, 20.0, n)) + 0.1 * (walk - walk.mean()) / walk.std()
    y = rng.poisson(np.exp(0.5 + 0.4 * columns[:, 0] + drift)).astype(float)
    observations, prior = Observations(y), resolve_prior({"name": "normal", "variance": 1000.0})
    base = build_engine(observations, prior, family="poisson")
    bounds = [bind(effect, t, n) for effect in effects]
    engine = add_latent(base, observations, prior, bounds, family="poisson", link=None, always=None)
    return engine.prepare(columns)


def fastest(work, repeats=REPEATS):
    seconds = []
    for _ in range(repeats):
        started = process_time()
        work()
        seconds.append(process_time() - started)
    return min(seconds)


def at_given_psi(n, effects):
    """Seconds from a cold start and from a neighbouring value of psi, and Newton steps."""
    model = population(n, effects).model(np.ones(3, dtype=bool), tuple(range(len(effects))))
    psi = np.concatenate([np.array(effect.start) for effect in effects])
    psi[0] = 3.0
    near = model.at(psi + 0.1)
    start = near.delta, near.beta
    cold, warm = model.at(psi), model.at(psi, start)
    return (
        fastest(lambda: model.at(psi)),
        fastest(lambda: model.at(psi, start)),
        cold.mode.steps,
        warm.mode.steps,
    )


def integrated(n, effects):
    """Seconds of the evidence with the hyperparameters integrated out, in a search."""
    prepared = population(n, effects)
    mask = np.ones(3 + len(effects), dtype=bool)
    prepared.evaluate(mask)
    return fastest(lambda: prepared.evaluate(mask), 3)


def dense(n):
    """Seconds of the same Newton iteration with NumPy's dense matrices, for RW1 at given psi."""
    rng = np.random.default_rng(1)
    steps = np.diff(np.cumsum(rng.gamma(2.0, 0.5, n)))
    difference = np.diff(np.eye(n), axis=0) / np.sqrt(steps)[:, None]
    precision = np.exp(3.0) * difference.T @ difference + 1e-6 * np.eye(n)
    y = rng.poisson(2.0, n).astype(float)

    def newton():
        field = np.zeros(n)
        for _ in range(6):
            mean = np.exp(field)
            score = y - mean - precision @ field
            field = field + np.linalg.solve(precision + np.diag(mean), score)

    newton()
    return fastest(newton, 3)


def main():
    growth = [(n, *at_given_psi(n, [RW1("t")])) for n in SIZES]
    logs = np.log([(row[0], row[1] / row[3]) for row in growth])
    exponent = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
    kinds = []
    for name, effects in EFFECTS.items():
        cold, warm, steps, _ = at_given_psi(500, effects)
        whole = integrated(500, effects)
        kinds.append([name, f"{1e3 * cold:.2f}", steps, f"{1e3 * warm:.2f}", f"{1e3 * whole:.1f}"])
    reference = dense(SIZES[0])
    numbers = {"cold": growth[0][1], "dense": reference, "exponent": exponent}
    keep("latent_evaluations", numbers | {"integrated": float(kinds[0][-1]) / 1e3})
    table = [
        [f"{n:,}", f"{1e3 * cold:,.2f}", steps, f"{1e3 * warm:,.2f}", warm_steps]
        for n, cold, warm, steps, warm_steps in growth
    ]
    page = f"""# Evaluations of models with latent effects

Processor time of one thread in milliseconds, once compiled, the fastest of {REPEATS}. Poisson
responses, three columns, irregular positions. A cold start begins with all effects zero, a warm
one at the mode for neighbouring hyperparameters.

{machine()}

## Random walk at given hyperparameters

Goals: 3 ms at n = 500, 400 ms at n = 100,000, an exponent below 1.1. The time of one Newton step
grows like n to the power {exponent:.2f}. Six Newton steps with NumPy's dense matrices take
{1e3 * reference:.0f} ms at n = {SIZES[0]}, {reference / growth[0][1]:.0f} times as long.

{markdown_table(["rows", "cold, ms", "steps", "warm, ms", "steps"], table)}

## Effects at n = 500

The last column is the whole evidence, hyperparameters integrated out, as a search asks for it.

{markdown_table(["effects", "cold, ms", "steps", "warm, ms", "integrated, ms"], kinds)}
"""
    (RESULTS / "latent_evaluations.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
