"""How fast is one fit, how good a prediction, beside the packages people use instead?

Run ``python benchmarks/peers.py``; it writes ``docs/results/peers.md``. ``--part evaluation`` or
``--part accuracy`` runs one half. All on one thread.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import warnings  # noqa: E402
from importlib.metadata import version  # noqa: E402
from time import process_time  # noqa: E402

import statsmodels.api as sm  # noqa: E402
from accuracy import CASES, SECONDS, SPLITS, compare  # noqa: E402
from glm_evaluations import INSIDE, MASKS, PEERS, ROWS, SAMPLE, SIZE, simulate  # noqa: E402
from glum import GeneralizedLinearRegressor  # noqa: E402
from page import RESULTS, keep, kept, machine, markdown_table  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402

from dbrm.evidence import GaussianEngine, GlmEngine, resolve_prior  # noqa: E402

FAMILIES = {"gaussian": (sm.families.Gaussian(), LinearRegression), **PEERS}
TURNS = 5


def evaluation():
    """Models per second of each program, by family; in turns, the fastest of each counts."""
    return {family: _rates(family) for family in FAMILIES}


def _rates(family):
    columns, y, masks = simulate(family)
    theirs, estimator = FAMILIES[family]
    prior = resolve_prior("jeffreys")
    engine = GaussianEngine(y, prior) if family == "gaussian" else GlmEngine(y, prior, family)
    population = engine.prepare(columns)
    link = "log" if family in ("poisson", "gamma") else "auto"

    def statsmodels(mask):
        sm.GLM(y, sm.add_constant(columns[:, mask]), family=theirs).fit(tol=1e-10)

    def sklearn(mask):
        estimator().fit(columns[:, mask], y)

    def glum(mask):
        model = GeneralizedLinearRegressor(family=family, link=link, alpha=0, gradient_tol=1e-8)
        model.fit(columns[:, mask], y)

    def time_of(work, chosen):
        started = process_time()
        work(chosen)
        return (process_time() - started) / len(chosen)

    def each(fit):
        return lambda chosen: [fit(mask) for mask in chosen]

    works = {
        "dbrm": (population.log_evidence, masks),
        "statsmodels": (each(statsmodels), masks[:SAMPLE]),
        "scikit-learn": (each(sklearn), masks[:SAMPLE]),
        "glum": (each(glum), masks[:SAMPLE]),
    }
    for work, chosen in works.values():
        work(chosen[:3])
    times = [{name: time_of(*work) for name, work in works.items()} for _ in range(TURNS)]
    return {name: 1 / min(turn[name] for turn in times) for name in works}


def page(numbers):
    speeds = [
        (
            family,
            *(f"{rate:,.0f}" for rate in rates.values()),
            *(f"{rates['dbrm'] / rates[peer]:,.0f}" for peer in list(rates)[1:]),
        )
        for family, rates in numbers.get("evaluation", {}).items()
    ]
    packages = ("statsmodels", "glum", "interpret-core", "xgboost-cpu", "pygam")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    scores = [
        (row["data"], row["method"], row["score"], row["other"], row["seconds"])
        for row in numbers.get("accuracy", [])
    ]
    columns = ("data", "method", "score", "R² or accuracy", "seconds")
    header = ("", "dbrm", "statsmodels", "scikit-learn", "glum")
    ratios = tuple(f"/ {name}" for name in header[2:])
    return f"""# Beside other packages

{machine().rstrip(".")}, {versions}.

## One fit

Models per second, {ROWS:,} rows, {INSIDE} of {SIZE} columns, the same models for all, one thread,
processor time, fastest of {TURNS} turns. dbrm computes the log evidence of {MASKS:,} models of a
population, the others fit {SAMPLE} of these models from the rows, without penalty. The last
columns are ratios.

{markdown_table((*header, *ratios), speeds)}

## Accuracy at equal time

{SPLITS} random splits with a third of the rows for testing; every method has {SECONDS:g} s of
processor time on one thread, which is wall time on a machine with nothing else to do. dbrm
searches until its time is over, with the penalty that was the default when this was measured, which for a Gaussian
response was strict, and with the lighter one, `"multiplicity"`, that classes had. EBM takes as many bags as there is time for (14 at most, its
default), with interactions if two bags with them fit in. pyGAM searches the smoothing by its grid
if there is time, else it keeps its default. xgboost draws settings at random and validates them on
a fifth of the training rows until its time is over. Means over the splits;
*score* is the root mean squared error or, for classes, the log loss: smaller is better.

{markdown_table(columns, scores) if scores else "Not measured yet."}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("evaluation", "accuracy"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = kept().get("peers", {})
    if options.part in (None, "evaluation"):
        numbers["evaluation"] = evaluation()
        print(numbers["evaluation"], flush=True)
    if options.part in (None, "accuracy"):
        numbers["accuracy"] = [row for case in CASES for row in compare(case)]
    numbers.pop("measured", None)
    keep("peers", numbers)
    (RESULTS / "peers.md").write_text(page(numbers), encoding="utf-8")


if __name__ == "__main__":
    main()
