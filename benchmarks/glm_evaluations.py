"""How many GLM evidences are evaluated per second, beside statsmodels and scikit-learn?

Run ``python benchmarks/glm_evaluations.py``; it writes ``docs/results/glm_evaluations.md``.
All on one thread: set ``OMP_NUM_THREADS=1``.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import warnings  # noqa: E402
from importlib.metadata import version  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
import statsmodels.api as sm  # noqa: E402
from page import RESULTS, keep, machine, markdown_table  # noqa: E402
from sklearn.linear_model import (  # noqa: E402
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
)

from dbrm.evidence import GlmEngine, resolve_prior  # noqa: E402

ROWS, SIZE, INSIDE = 1536, 30, 20
MASKS, SAMPLE, REPEATS = 2000, 40, 7
PRIORS = ("bic", "jeffreys", "hyper-g", "zellner-siow", "normal")
PEERS = {
    "binomial": (sm.families.Binomial(), lambda: LogisticRegression(C=np.inf, max_iter=1000)),
    "poisson": (sm.families.Poisson(), lambda: PoissonRegressor(alpha=0, max_iter=1000)),
    "gamma": (
        sm.families.Gamma(sm.families.links.Log()),
        lambda: GammaRegressor(alpha=0, max_iter=1000),
    ),
}


def simulate(family):
    """Correlated columns, five of which matter; and masks with 20 of the 30 columns."""
    rng = np.random.default_rng(1)
    columns = rng.standard_normal((ROWS, SIZE)) + 0.5 * rng.standard_normal((ROWS, 1))
    eta = columns[:, :5] @ np.array([0.8, -0.5, 0.4, 0.3, 0.2])
    if family == "gaussian":
        y = eta + rng.standard_normal(ROWS)
    elif family == "binomial":
        y = (rng.random(ROWS) < 1 / (1 + np.exp(-eta))).astype(float)
    elif family == "poisson":
        y = rng.poisson(np.exp(0.5 * eta)).astype(float)
    else:
        y = rng.gamma(2.0, np.exp(0.5 * eta) / 2)
    masks = np.zeros((MASKS, SIZE), dtype=bool)
    for mask in masks:
        mask[rng.choice(SIZE, INSIDE, replace=False)] = True
    return columns, y, masks


def rates(family):
    """Evaluations per second of masks in random order under each prior, once compiled.

    The priors take turns, so that a slower minute of the machine slows them all.
    """
    columns, y, masks = simulate(family)
    populations = {
        prior: GlmEngine(y, resolve_prior(prior), family).prepare(columns) for prior in PRIORS
    }
    times = dict.fromkeys(PRIORS, np.inf)
    for turn in range(REPEATS + 1):
        for prior, population in populations.items():
            started = process_time()
            population.log_evidence(masks if turn else masks[:5])
            if turn:
                times[prior] = min(times[prior], process_time() - started)
    return {prior: MASKS / seconds for prior, seconds in times.items()}


def peers(family):
    """Evaluations per second of the peers, and the largest gap to statsmodels' likelihood."""
    columns, y, masks = simulate(family)
    engine = GlmEngine(y, resolve_prior("jeffreys"), family)
    population = engine.prepare(columns)
    theirs, estimator = PEERS[family]
    times, worst = [0.0, 0.0], 0.0
    for mask in masks[:SAMPLE]:
        chosen = columns[:, mask]
        design = sm.add_constant(chosen)
        started = process_time()
        result = sm.GLM(y, design, family=theirs).fit(tol=1e-10)
        times[0] += process_time() - started
        started = process_time()
        estimator().fit(chosen, y)
        times[1] += process_time() - started
        ours = population.solve(mask, firth=False)
        scale = ours.dispersion if family == "gamma" else 1.0
        worst = max(worst, abs(theirs.loglike(y, result.mu, scale=scale) - ours.log_likelihood))
    return SAMPLE / times[0], SAMPLE / times[1], worst


def main():
    warnings.simplefilter("ignore")
    rows, worst, numbers = [], 0.0, {}
    for family in PEERS:
        statsmodels, sklearn, gap = peers(family)
        worst = max(worst, gap)
        found = rates(family)
        numbers[family] = found | {"statsmodels": statsmodels, "sklearn": sklearn}
        for prior, ours in found.items():
            ratios = (
                f"{ours / statsmodels:,.0f}",
                f"{ours / sklearn:,.0f}",
                f"{found['bic'] / ours:.2f}",
            )
            speeds = (f"{v:,.0f}" for v in (ours, statsmodels, sklearn))
            rows.append((f"{family}, {prior}", *speeds, *ratios))
            print(*rows[-1], flush=True)
    keep("glm_evaluations", numbers)
    write_page(rows, worst)


def write_page(rows, worst):
    load = os.getloadavg()[0]
    header = (
        "",
        "dbrm",
        "statsmodels",
        "scikit-learn",
        "/ statsmodels",
        "/ scikit-learn",
        "cost / bic",
    )
    text = f"""# GLM evaluations

{ROWS:,} rows, a population of {SIZE} columns, {MASKS:,} random masks of {INSIDE} columns each, one
thread, processor time, fastest of {REPEATS} turns, once compiled. Masks come in random
order: every model starts from the fitted null and full models of the population, never from the
mask before. statsmodels (`GLM`) and scikit-learn (`LogisticRegression`, `PoissonRegressor`,
`GammaRegressor`, without penalty) fit {SAMPLE} of the same models in the same run. Likelihoods
agree with statsmodels' to {worst:.0e}. *cost / bic* is the time of one model beside that of BIC.
Load average of the machine meanwhile: {load:.1f}.

{machine().rstrip(".")}, statsmodels {version("statsmodels")}.

## Models per second

{markdown_table(header, rows)}
"""
    (RESULTS / "glm_evaluations.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
