"""Very many rows: time and memory of whole searches, and what the expansion is worth.

Run ``python benchmarks/tall_data.py``; it writes ``docs/results/tall_data.md``. Each case runs in
a process of its own, whose memory (PSS of it and all its children) is sampled from ``/proc``
every 100 ms. ``--only CASE`` runs one case and prints it; ``--page`` writes the page from the
cases kept in ``--folder``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from page import RESULTS, machine, markdown_table

COVARIATES = 10
MILLION = 1_000_000
# Of the search in the file of ten million rows, which is read once per population.
SHORTER = {"n_chains": 2, "n_populations": 15}
CASES = ("gaussian", "binomial", "parquet", "evaluation", "expansion", "dask")


def linear_predictor(X):
    return 0.6 * X[:, 0] * X[:, 1] - 0.5 * np.sin(X[:, 2]) + 0.3 * X[:, 3]


def simulate(n, family, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COVARIATES))
    eta = linear_predictor(X)
    if family == "gaussian":
        return X, eta + rng.standard_normal(n)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(np.float64)


def write_file(path, n):
    """A Parquet file of a Gaussian response, made and written in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{j + 1}" for j in range(COVARIATES)), "y"]
    writer = pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names]))
    for piece in range(n // MILLION):
        X, y = simulate(MILLION, "gaussian", seed=piece)
        writer.write_table(pa.table(dict(zip(names, [*X.T, y], strict=True))), MILLION // 4)
    writer.close()


# In the process that is measured.


def pss(pid="self"):
    """Proportional set size in MB."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    lines = [line for line in text.splitlines() if line.startswith("Pss:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


def search(family, n, path=None, **settings):
    import dbrm
    from dbrm.run import out_of_core

    usual, out_of_core.TALL_ROWS = out_of_core.TALL_ROWS, 1_000
    small = simulate(2_000, family)
    warm = dbrm.fit(*small, family=family, n_chains=2, n_populations=3, n_jobs=2, random_state=1)
    warm.predict(small[0][:10])
    out_of_core.TALL_ROWS = usual
    baseline = pss()
    data = simulate(n, family) if path is None else (path, "y")
    print(json.dumps({"baseline": baseline}), flush=True)
    started, worked = time.perf_counter(), time.process_time()
    found = dbrm.fit(*data, family=family, n_jobs=-1, random_state=1, **settings)
    model = found.models.loc[0]
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - worked,
        "populations": settings.get("n_chains", 4) * settings.get("n_populations", 60),
        "best": " + ".join(model["features"]),
        "probability": float(model["probability"]),
        "truth": float(found.inclusion("x1*x2") * found.inclusion("sin(x3)")),
    }


def population(n, family, subsample=None):
    """Engine and columns of a population with the truth and what resembles it."""
    from dbrm.data import MemoryBatches, learn_from_batches
    from dbrm.data.intake import read_table
    from dbrm.evolution import FeatureColumns
    from dbrm.features import parse_feature
    from dbrm.run.inputs import RunInputs
    from dbrm.run.out_of_core import weighted_subsample
    from dbrm.run.problem import build_problem
    from dbrm.run.settings import Settings

    X, y = simulate(n, family)
    settings = Settings(family=family, subsample=subsample)
    batches = MemoryBatches(read_table(X), {"response": y})
    recipe, rows = learn_from_batches(batches)
    table, observations = weighted_subsample(rows, settings)
    problem = build_problem(
        RunInputs(table, observations, recipe, settings, "y", "", (), n, rows=rows)
    )
    texts = ["x1*x2", "sin(x3)", "x4", "x3", "tanh(x3)", "x5", "x6", "x1*x3", "tanh(x4)", "x7"]
    texts += ["x8", "x9", "x10", "x1", "x2"]
    features = tuple(parse_feature(text, table.names) for text in texts)
    return problem, FeatureColumns(features)


def evaluation():
    """Seconds per model of a population of 15 features, all models evaluated."""
    found = {}
    for n in (1_000, MILLION):
        problem, columns = population(n, "gaussian")
        prepared = problem.out_of_core.prepare(columns)
        prepared.log_evidence_of_all(columns.size)
        times = []
        for _ in range(15):
            started = time.perf_counter()
            prepared.log_evidence_of_all(columns.size)
            times.append(time.perf_counter() - started)
        found[str(n)] = min(times) / 2**columns.size
    return found


def expansion():
    """Errors of the expansion, and of 50,000 rows scaled up, in models near the best."""
    from dbrm.features import evaluate

    problem, columns = population(MILLION, "binomial")
    rng = np.random.default_rng(1)
    best = np.zeros(columns.size, dtype=bool)
    best[:3] = True
    masks = [best]
    for _ in range(40):
        flipped = best ^ (rng.random(columns.size) < 0.1)
        flipped[:2] = True
        masks.append(flipped)
    masks = np.unique(masks, axis=0)
    started = time.perf_counter()
    exact = problem.out_of_core.log_evidence_of(columns, masks)[0]
    newton = time.perf_counter() - started
    started = time.perf_counter()
    prepared = problem.out_of_core.prepare(columns)
    passes = time.perf_counter() - started
    expanded = prepared.log_evidence_of_all(columns.size)[0][masks @ (1 << np.arange(columns.size))]
    sampled = problem.engine.prepare(evaluate(columns.features, problem.table)[0])
    scaled = sampled.log_evidence(masks)[0]
    near = exact > exact.max() - 30.0
    errors = {}
    for name, values in (("expansion", expanded), ("subsample", scaled)):
        # Differences between models count; a common shift does not.
        gap = (values - exact)[near]
        gap = gap - gap[np.argmax(exact[near])]
        errors[name] = [float(np.median(np.abs(gap))), float(np.max(np.abs(gap)))]
    return {"models": int(near.sum()), "newton": newton, "passes": passes, **errors}


def on_dask():
    """The same search on partitions and in memory."""
    import dask.array as da

    import dbrm

    X, y = simulate(300_000, "gaussian")
    settings = {"n_chains": 2, "n_populations": 10, "random_state": 1}
    arrays = da.from_array(X, chunks=(70_000, COVARIATES)), da.from_array(y, chunks=70_000)
    found, seconds = [], []
    for data in ((X, y), arrays):
        started = time.perf_counter()
        posterior = dbrm.fit(*data, **settings)
        seconds.append(time.perf_counter() - started)
        models = posterior.models
        found.append(dict(zip(models["features"].map(frozenset), models.probability, strict=True)))
    gap = max(abs(found[0].get(m, 0.0) - found[1].get(m, 0.0)) for m in found[0] | found[1])
    return {"gap": gap, "models": len(found[0]), "memory": seconds[0], "dask": seconds[1]}


def run_case(case, path):
    if case in ("gaussian", "binomial"):
        return search(case, MILLION)
    if case == "parquet":
        return search("gaussian", None, path, **SHORTER)
    return {"evaluation": evaluation, "expansion": expansion, "dask": on_dask}[case]()


# In the process that measures.


def children(pid):
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        listed = " ".join((task / "children").read_text(encoding="ascii") for task in tasks)
    except OSError:
        return []
    return [found for child in listed.split() for found in (child, *children(child))]


def measure(case, folder):
    path = folder / "rows.parquet"
    if case == "parquet" and not path.exists():
        write_file(path, 10 * MILLION)
    command = [sys.executable, __file__, "--inside", case, "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0.0

    def watch():
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(pss(pid) for pid in (process.pid, *children(process.pid))))
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    found = {}
    for line in process.stdout:
        found |= json.loads(line)
    watcher.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    found["peak"] = peak
    (folder / f"{case}.json").write_text(json.dumps(found), encoding="utf-8")
    return found


def page(found):
    table = MILLION * (COVARIATES + 1) * 8 / 2**20
    rows = [
        [
            label,
            f"{part['seconds']:.0f}",
            f"{part['cpu']:.0f}",
            part["populations"],
            f"{part['peak'] - part['baseline']:.0f}",
            f"{(part['peak'] - part['baseline']) / size:.1f}" if size else "",
            f"{part['peak']:.0f}",
            f"`{part['best']}`",
        ]
        for label, part, size in (
            ("Gaussian, n = 10⁶, in memory", found["gaussian"], table),
            ("logistic, n = 10⁶, in memory", found["binomial"], table),
            ("Gaussian, n = 10⁷, Parquet", found["parquet"], 10 * table),
        )
    ]
    header = [
        "search",
        "s",
        "CPU s",
        "populations",
        "MB",
        "of the table",
        "MB in all",
        "best model",
    ]
    each = found["evaluation"]
    errors, dask = found["expansion"], found["dask"]
    models = [
        [name, f"{errors[key][0]:.2g}", f"{errors[key][1]:.2g}", cost]
        for name, key, cost in (
            ("expansion at the fitted population", "expansion", f"{errors['passes']:.1f}"),
            ("50,000 rows, scaled up", "subsample", "0"),
        )
    ]
    return f"""# Very many rows

Whole searches with {COVARIATES} covariates, of which four matter through `x1*x2`, `sin(x3)` and `x4`;
`n_jobs=-1` on two cores. The first two with default settings, the file of ten million rows with
`{SHORTER}`. Memory is the largest proportional set size of the process and its children, sampled
every 100 ms, beyond what the interpreter held after a small fit (the table itself is part of it: {table:.0f} MB
with the response for a million rows); and in all.

{markdown_table(header, rows)}

A Gaussian evaluation inside a population of 15 features takes {1e9 * each["1000"]:.0f} ns with a thousand rows and
{1e9 * each["1000000"]:.0f} ns with a million, a ratio of {each["1000000"] / each["1000"]:.2f}: after one pass the rows play no part.

How a search tells logistic models apart without a pass over the rows for each: error of the difference in log
evidence to the best model, in nats, over {errors["models"]} models within 30 nats of it, n = 10⁶, against Newton's method
over all rows ({errors["newton"]:.0f} s for these models). The last column is what a population costs in passes over the rows, in seconds.

{markdown_table(["", "median error", "largest error", "s per population"], models)}

The expansion is therefore the default, and `subsample=` a choice for rows that are slow to read.

A search on Dask arrays in five partitions (n = 300,000, {dask["models"]} models) gives the posterior of the rows in memory:
probabilities differ by {dask["gap"]:.1g} at most. It takes {dask["dask"]:.0f} s, in memory {dask["memory"]:.0f} s.

{machine()}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--inside", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "dbrm-tall")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.inside:
        print(json.dumps(run_case(given.inside, given.folder / "rows.parquet")), flush=True)
        return
    given.folder.mkdir(exist_ok=True, parents=True)
    for case in [given.only] if given.only else ([] if given.page else CASES):
        print(case, measure(case, given.folder), flush=True)
    if given.only is None:
        found = {
            case: json.loads((given.folder / f"{case}.json").read_text(encoding="utf-8"))
            for case in CASES
        }
        (RESULTS / "tall_data.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
