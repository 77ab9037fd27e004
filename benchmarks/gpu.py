"""A graphics processor beside the cores of the same machine: models per second, and whole fits.

Run ``python benchmarks/gpu.py`` on a machine with one; it writes ``docs/results/gpu.md``.
``--only limits``, ``evaluations``, ``chains``, ``fits`` or ``accuracy`` runs a part and keeps its
numbers in ``--folder``; ``--page`` writes the page from the parts kept there.
``--quick`` takes few rows: does the program run? On the CPU that takes a minute.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
from page import RESULTS, machine, markdown_table  # noqa: E402

import dbrm  # noqa: E402
from dbrm.evidence import GlmEngine, resolve_prior  # noqa: E402
from dbrm.evidence.device.platform import load_program  # noqa: E402

PARTS = ("limits", "evaluations", "chains", "fits", "accuracy")
# Rows and columns of populations.
CASES = [(n, q) for n in (1_536, 10_000, 100_000, 1_000_000) for q in (15, 20)]
# All models of these would take minutes: some of them stand for all.
TOO_MANY = {(1_000_000, 20)}
COVARIATES, MILLION = 10, 1_000_000


def simulate(n, q, seed=1):
    """Columns correlated in pairs, of which five matter, and a binary response."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q))
    X[:, 1::2] = 0.6 * X[:, 0::2][:, : q // 2] + 0.8 * X[:, 1::2]
    eta = -0.3 + X[:, :5] @ np.array([0.8, -0.6, 0.5, 0.4, 0.1])
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


# What the device can do at best.


def measure_limits(quick):
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        size = 512 if quick else 8192
        square = jax.random.normal(jax.random.key(0), (size, size), dtype=jnp.float64)
        long = jnp.ones(1 << (20 if quick else 28))
        product = timed(jax, jax.jit(lambda a: a @ a), square)
        copy = timed(jax, jax.jit(lambda a: a + 1.0), long)
        device = jax.devices()[0]
    return {
        "device": device.device_kind,
        "jax": jax.__version__,
        "tflops": 2 * size**3 / product / 1e12,
        "terabytes": 16 * long.size / copy / 1e12,
    }


def timed(jax, function, argument):
    jax.block_until_ready(function(argument))
    seconds = []
    for _ in range(7):
        started = perf_counter()
        jax.block_until_ready(function(argument))
        seconds.append(perf_counter() - started)
    return median(seconds)


# Models per second.


def measure_evaluations(platform, quick):
    cases = [(300, 8)] if quick else CASES
    found = []
    for n, q in cases:
        X, y = simulate(n, q)
        prior = resolve_prior("bic")
        started = perf_counter()
        population = GlmEngine(y, prior, platform=platform).prepare(X)
        prepared = perf_counter() - started
        case = {"n": n, "q": q, "prepare": prepared} | on_device(population, n, q)
        case["cpu"], masks, values = on_cores(y, prior, X)
        if "all" in case:
            index = masks @ (1 << np.arange(q))
            case["gap"] = float(np.max(np.abs(case.pop("all")[index] - values)))
        else:
            case["gap"] = float(np.max(np.abs(population.log_evidence(masks)[0] - values)))
        found.append(case)
        print({k: v for k, v in case.items() if k != "all"}, flush=True)
    return found


def on_device(population, n, q):
    """Seconds for all models of a population once compiled, and the first time."""
    if (n, q) in TOO_MANY:
        return {}
    seconds = []
    for _ in range(3 if n < 100_000 or q < 20 else 2):
        started = perf_counter()
        values, _ = population.log_evidence_of_all(q)
        seconds.append(perf_counter() - started)
    rate = (1 << q) / min(seconds[1:])
    return {"first": seconds[0], "seconds": min(seconds[1:]), "rate": rate, "all": values}


def on_cores(y, prior, X):
    """Models per second on all cores, and the log evidence of some models."""
    n, q = X.shape
    cores = os.cpu_count()
    n_models = int(np.clip(3e7 / n, 2, 4_000))
    rng = np.random.default_rng(0)
    masks = rng.random((cores, n_models, q)) < 0.5
    populations = [GlmEngine(y, prior).prepare(X) for _ in range(cores if n < MILLION else 4)]
    populations[0].log_evidence(masks[0][:1])
    found = [None] * len(populations)

    def work(number):
        found[number] = populations[number].log_evidence(masks[number])[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(populations))]
    started = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = perf_counter() - started
    used = len(populations) * n_models / seconds * (cores / len(populations))
    return used, masks[0], found[0]


# Populations of several chains.


def measure_chains(platform, quick):
    """All models of four populations, one after the other and in four threads."""
    found = []
    for n, q in [(300, 8)] if quick else [(1_536, 15), (10_000, 15), (100_000, 15)]:
        prior = resolve_prior("bic")
        tables = [simulate(n, q, seed) for seed in range(4)]
        populations = [GlmEngine(y, prior, platform=platform).prepare(X) for X, y in tables]

        def evaluate(population, q=q):
            return population.log_evidence_of_all(q)[0]

        alone = [evaluate(population) for population in populations]
        seconds = {"one": [], "four": []}
        for _ in range(3):
            started = perf_counter()
            for population in populations:
                evaluate(population)
            seconds["one"].append(perf_counter() - started)
            started = perf_counter()
            with ThreadPoolExecutor(4) as pool:
                together = list(pool.map(evaluate, populations))
            seconds["four"].append(perf_counter() - started)
        same = all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
        best = {name: min(values) for name, values in seconds.items()}
        found.append({"n": n, "q": q, "same": same} | best)
        print(found[-1], flush=True)
    return found


# Whole fits.


def linear_predictor(X):
    return 0.6 * X[:, 0] * X[:, 1] - 0.5 * np.sin(X[:, 2]) + 0.3 * X[:, 3]


def table(n, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, COVARIATES))
    return X, (rng.random(n) < 1 / (1 + np.exp(-linear_predictor(X)))).astype(float)


def write_file(path, n):
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{j + 1}" for j in range(COVARIATES)), "y"]
    writer = pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names]))
    for piece in range(n // MILLION):
        X, y = table(MILLION, seed=piece)
        writer.write_table(pa.table(dict(zip(names, [*X.T, y], strict=True))), MILLION // 4)
    writer.close()


# What a process has done before a fit.
NEW, KEPT, AGAIN = "nothing compiled", "programs kept", "again"


def measure_fits(device, only, quick):
    """Fits in new processes, and again in the same one; data and package are there before."""
    sizes = (2_000,) if quick else (1_000, 10_000, 40_000, 100_000, MILLION, 10 * MILLION)
    found = []
    if not quick:
        # Compiles what runs on the CPU.
        in_new_process(60_000, "cpu", ["cpu"], None, quick)
    for n in sizes:
        if only is not None and n not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            if n > MILLION:
                write_file(Path(folder) / "rows.parquet", n)
            plan = [(device, [NEW])]
            if n <= MILLION:
                plan += [(device, [KEPT, AGAIN]), ("cpu", [NEW, AGAIN])]
            for where, states in plan:
                found += in_new_process(n, where, states, folder, quick)
    return found


def in_new_process(n, device, states, folder, quick):
    """One fit for each state, in one new process that keeps its programs in the folder."""
    surroundings = os.environ | ({} if folder is None else {"XDG_CACHE_HOME": folder})
    surroundings.pop("JAX_COMPILATION_CACHE_DIR", None)
    task = json.dumps([n, device, states, folder, quick])
    command = [sys.executable, __file__, "--fits", task]
    done = subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    print(*found, sep="\n", flush=True)
    return found


def fit_several(n, device, states, folder, quick):
    rows = (Path(folder) / "rows.parquet", "y") if n > MILLION else table(n)
    return [fit_once(n, rows, device, quick) | {"state": state} for state in states]


def fit_once(n, rows, device, quick):
    settings = {"population_size": 6, "n_populations": 2} if quick else {}
    started, used = perf_counter(), process_time()
    # The four chains of a default fit are the units of work: as many workers.
    posterior = dbrm.fit(
        *rows, family="binomial", device=device, n_jobs=4, random_state=1, **settings
    )
    best = posterior.models.iloc[0]
    return {
        "n": n,
        "device": device,
        "seconds": perf_counter() - started,
        "cpu_seconds": process_time() - used,
        "best": " + ".join(best["features"]),
        "log_evidence": float(best["log_evidence"]),
    }


# Does it matter that all models of a population are evaluated?

ARMS = ("refined", "exact")


def measure_accuracy(device, seeds, seconds, found, keep):
    """Breast cancer and spam with refined and with exact populations, for the same seeds.

    Breast cancer, whose models take microseconds, runs on half of the cores by the compiled path;
    processes on the other half share the device for spam. None starts a seed after so many
    seconds; those `found` before are not run again.
    """
    ends, lock, found = perf_counter() + seconds, threading.Lock(), list(found)

    def collect(future):
        if not future.cancelled():
            with lock:
                found.extend(future.result())
                keep(found)

    done = {(row["data"], row["seed"]) for row in found}
    places = (
        {"breast cancer": "cpu"} if device == "cpu" else {"breast cancer": "cpu", "spam": device}
    )
    pools, waiting = [], []
    for name, where in places.items():
        pools.append(ProcessPoolExecutor(max(os.cpu_count() // 2, 1), get_context("spawn")))
        tasks = [(where, name, seed) for seed in range(seeds) if (name, seed) not in done]
        for number, task in enumerate(tasks):
            waiting.append(pools[-1].submit(score_arms, *task))
            waiting[-1].add_done_callback(collect)
            if number == 0:
                # It compiles the programs of all others.
                wait(waiting[-1:])
    wait(waiting, timeout=max(ends - perf_counter(), 0.0))
    for future in waiting:
        future.cancel()
    for pool in pools:
        pool.shutdown()
    return found


def score_arms(device, name, seed):
    from dbrm.datasets import load_breast_cancer, load_spam

    split = load_spam() if name == "spam" else load_breast_cancer()
    found = []
    for arm in ARMS:
        with populations(device, arm) as explored:
            row = {"data": name, "seed": seed, "arm": arm} | score(split, seed, device)
        found.append(row | {"n_populations": len(explored)})
        print(found[-1], flush=True)
    return found


@contextmanager
def populations(device, arm):
    """Populations of a fit refined or exact; the sweep before the search is exact in both.

    Features settle in both, too. Yields a list that gets an entry for every population.
    """
    from dbrm.evidence.device import DevicePopulation
    from dbrm.evidence.glm_population import GlmPopulation
    from dbrm.evolution.chain import ChainRecord

    explored, explore = [], ChainRecord.explore

    def counting(chain, *args, **kwargs):
        explored.append(None)
        return explore(chain, *args, **kwargs)

    changes = [(ChainRecord, "explore", counting)]
    if device == "cpu":
        changes.append((GlmPopulation, "enumeration_limit", 15))
        if arm == "exact":
            changes.append((GlmEngine, "settling_limit", GlmPopulation.expansion_limit))
            changes.append((GlmPopulation, "expansion_limit", 0))
    elif arm == "refined":
        limit = property(lambda population: population.base.expansion_limit)
        changes.append((DevicePopulation, "expansion_limit", limit))
    before = [(kind, name, getattr(kind, name)) for kind, name, _ in changes]
    for kind, name, value in changes:
        setattr(kind, name, value)
    try:
        yield explored
    finally:
        for kind, name, value in before:
            setattr(kind, name, value)


def score(split, seed, device):
    from sklearn.metrics import log_loss

    X, test = split.train.drop(columns=split.response), split.test
    started = perf_counter()
    posterior = dbrm.fit(
        *(X, split.train[split.response]),
        family="binomial",
        n_chains=1,
        random_state=seed,
        device=device,
    )
    chance = posterior.predict(test.drop(columns=split.response))
    truth = test[split.response].to_numpy()
    return {
        "seconds": perf_counter() - started,
        "accuracy": float(np.mean((chance > 0.5) == truth)),
        "log_loss": float(log_loss(truth, chance)),
        "log_evidence": float(posterior.models.iloc[0]["log_evidence"]),
        "n_features": len(posterior.best_model.features),
    }


# The page.


def floors(case, limits):
    """Seconds that the products and the traffic of one model take at the device's limits."""
    n, k = case["n"], case["q"] + 1
    products = 2 * n * (k * (k + 1) / 2 + 4 * k)
    # Two predictors, two scores and one weight per row are written and read again.
    traffic = 10 * 8 * n
    return products / limits["tflops"] / 1e12, traffic / limits["terabytes"] / 1e12


def write_page(folder):
    limits, cases, chains, fits, scores = (
        json.loads((folder / f"{part}.json").read_text(encoding="utf-8")) for part in PARTS
    )
    text = PAGE.format(
        where=cases["measured"],
        chains_where=chains["measured"],
        chains=markdown_table(CHAINS_HEADER, chain_rows(chains)),
        fits_where=fits["measured"],
        fits_earlier=fits["earlier"],
        scores_where=scores["measured"],
        **limits["numbers"],
        evaluations=markdown_table(HEADER, evaluation_rows(cases, limits)),
        fits=markdown_table(FITS_HEADER, fit_rows(fits)),
        scores=markdown_table(SCORES_HEADER, score_rows(scores)),
    )
    (RESULTS / "gpu.md").write_text(text, encoding="utf-8")


def evaluation_rows(cases, limits):
    for case in cases["numbers"]:
        if "rate" not in case:
            continue
        products, traffic = floors(case, limits["numbers"])
        yield (
            f"{case['n']:,}",
            case["q"],
            f"{case['rate']:,.0f}",
            f"{case['cpu']:,.0f}",
            f"{case['rate'] / case['cpu']:,.0f}",
            f"{case['seconds']:.2f}",
            f"{case['first']:.1f}",
            f"{1e6 * products:.2g}",
            f"{1e6 * traffic:.2g}",
            f"{1e6 / case['rate']:.2g}",
            f"{case['gap']:.0e}",
        )


def fit_rows(fits):
    for fit in fits["numbers"]:
        place = "4 of 16 cores" if fit["device"] == "cpu" else "device"
        before = fit["state"] if fit["device"] != "cpu" or fit["state"] != NEW else "new process"
        seconds = f"{fit['seconds']:.1f}", f"{fit['cpu_seconds']:.0f}"
        yield f"{fit['n']:,}", f"{place}, {before}", *seconds, f"{fit['log_evidence']:.6f}"


def chain_rows(chains):
    for case in chains["numbers"]:
        seconds = f"{case['one']:.2f}", f"{case['four']:.2f}"
        yield f"{case['n']:,}", case["q"], *seconds, "yes" if case["same"] else "no"


def score_rows(scores):
    """Means with standard errors, then those of the difference between the two arms."""
    found = scores["numbers"]
    for name in dict.fromkeys(row["data"] for row in found):
        by_arm = {
            arm: {row["seed"]: row for row in found if row["data"] == name and row["arm"] == arm}
            for arm in ARMS
        }
        seeds = sorted(set.intersection(*map(set, by_arm.values())))
        values = {
            arm: np.array([[rows[seed][key] for key in SCORES] for seed in seeds])
            for arm, rows in by_arm.items()
        }
        values["exact - refined"] = values["exact"] - values["refined"]
        for label, numbers in values.items():
            columns = zip(numbers.T, SCORES.values(), strict=True)
            yield name, label, len(seeds), *(mean_and_error(*column) for column in columns)


def mean_and_error(values, digits):
    if values.size == 1:
        return f"{values[0]:.{digits}f}"
    error = values.std(ddof=1) / np.sqrt(values.size)
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


HEADER = (
    *("rows", "columns", "models / s", "16 cores", "ratio", "all models, s", "first time, s"),
    *("products, µs", "traffic, µs", "a model, µs", "largest gap"),
)
FITS_HEADER = ("rows", "where", "seconds", "processor seconds", "log evidence of the best model")
CHAINS_HEADER = ("rows", "columns", "one after the other, s", "four threads, s", "same numbers")
# What is compared, and its digits.
SCORES = {"accuracy": 4, "log_loss": 4, "log_evidence": 2, "n_populations": 1, "seconds": 1}
SCORES_HEADER = (
    *("data", "populations", "seeds", "accuracy", "log loss", "log evidence of the best model"),
    *("number of populations", "seconds"),
)
PAGE = """# A graphics processor

`python -m benchmarks gpu` writes this page; [how to use one](../how-to/gpu.md). One {device} beside
the cores of the same machine, JAX {jax}, 64 bits throughout. {where}

## All models of a population

Logistic regressions on simulated rows, columns correlated in pairs, of which five matter; BIC. All
{{math}}`2^q` models of a population, once compiled; *first time* compiles the programs, which are then
kept in a folder. *16 cores*: random models by the compiled path, one thread for each core, in the
same run; with a million rows four threads, their rate times four. *largest gap*: of the log
evidence of those models between the two.

{evaluations}

*How far from the limit.* Measured in the same run, the device multiplies matrices of 64 bits at
{tflops:.0f} TFLOP/s and moves {terabytes:.1f} TB/s. A model takes two passes over the rows, one of
them with all weighted cross products: {{math}}`2n\\{{k(k+1)/2 + 4k\\}}` operations for
{{math}}`k = q + 1` columns (*products*), and linear predictors, scores and weights of
{{math}}`80 n` bytes that are written and read again (*traffic*). From 100,000 rows on both together
are three fifths to three quarters of the time of a model; the rest is exponentials and logarithms in 64 bits, and scores, whose
products with few columns reach a fourth of the bandwidth. At 1,536 rows and 20 columns a third of
the time is spent on the host, scoring and numbering a million models; a tenth on the corrections
of inverse information matrices. With 15 columns and few rows nearly all of it is the launching of
some 30 small batches. 32 bits for the first pass do not help: a prototype did 5.5 million models a
second with them and 6.0 million without, at 1,536 rows, because true 32-bit products are slower
on this device than those of 64 bits, which its matrix units do.

## Populations of several chains

All models of four populations on one device, one population after the other or each in a thread of
its own, as chains have them. {chains_where}

{chains}

Threads hand their batches to the device in turn: while it works for one chain, the others number,
score and make features. With few rows that takes half the time of one chain after the other; with
100,000 the device is busy all the time, and there is nothing to gain. Populations are not put
into common arrays: how many there are would change the order of summation, and with it the last
digits; so no number depends on how many chains run.

## Whole fits

Default logistic fits of 10 covariates, four chains on four workers; a table in memory, ten million
rows from a Parquet file. Each in a new process, which has imported the package and has the table, with functions
for the CPU compiled before: *nothing compiled* starts JAX and compiles its programs, *programs kept* starts JAX and finds
them in a folder, *again* is a second fit in the same process. {fits_where} {fits_earlier}

{fits}

Machines of this kind differ by a third. On others the first fit of 100,000 rows took 7.8 s where another process had
loaded JAX before, and 9.1 s, 10.6 s and 13.5 s as the first process since the machine started, which reads JAX from disk. On the
last of these, at commit 9000560, a process that found its programs took 10.2 s and a second fit 7.6 s (cores 11.6 s, then 8.9 s), a
million rows 25.0 s, 26.3 s and 22.1 s in the three states (cores 57.7 s). The day after, on a machine that had just started, at commit 5bb4915, it
took 9.5 s as its first process, 8.4 s with programs kept, 5.4 s again, and 7.1 s and 8.6 s in two more processes with nothing
compiled; a million rows 19.2 s with nothing compiled. Before
programs were compiled ahead (commit 7f463bc) it took 17.7 s on one where the cores took 8.4 s, then 7.4 s; a
process that found its programs 9.4 s, and a second fit 6.4 s. It compiled 15 programs, for 5.3 s: three sums over rows of
one to two seconds each, two that put columns together, and ten that make zeros. Now there are five, for 1.8 s, compiled
beside the search. Sums do not try out algorithms of matrix products: that took two thirds to five sixths of their compilation,
they are about as fast without (16 models 0.4 to 0.5 ms either way, 256 models 1.2 to 1.3 ms with, 1.3 to 1.7 ms without), and
their last digits do not depend on what was fastest at the time. JAX starts while the data are
read, and takes memory as it needs it: three quarters of the device at once took 1.5 s. For all models of a population that makes
no consistent difference (two processes each, median of six: 1.6 and 1.9 s against 1.5 and 1.4 s with all memory taken at once
for 10,000 rows and 20 columns, 0.04 s against 0.07 and 0.05 s for 1,536 rows and 15 columns). Their programs do try out
algorithms, without which they take up to 1.7 times as long.

A fit makes and screens thousands of features, and that is done on the CPU. The refinement of
populations needs tens of exact fits where enumeration needs {{math}}`2^{{15}}`: below a million rows a
fit waits for the device no more than for the CPU. What is left of a fit of 100,000 rows are the
columns of candidates on a sample of 50,000 rows, in four threads of Python that get two cores' worth
of work done.

Ten million rows take a minute. An earlier version was stopped after 180 s, unfinished. To read the
rows into memory once (as long as they are fewer than 500 million numbers), and to share the columns of
features that several chains have, brought it to 157 s; there 16 threads, which made blocks of
{{math}}`2^{{15}}` rows, got 2.4 cores' worth of work done. Larger blocks, {{math}}`2^{{18}}` rows, sent to the
device by the threads that make them, brought it to 62 s. Two thirds of what these threads do are the
functions of columns. The CPU path was not run on ten million rows: ten times its time at a million
would be 380 s, and it holds no columns of that length in memory, so that it should take longer.

*Screening.* The sweep before the search looks at 50,000 rows at most, and its products of score
vectors and candidate columns take 0.02 s of a fit of 100,000 rows, the whole sweep 0.4 s (profiled on one
core). They stay on the CPU: with a device there is nothing to gain.

## Does an exact posterior inside populations predict better?

The same seeds with populations that are refined (the default) and with all models evaluated; all
else is the same, the sweep before the search and the settling of features, too. One chain, the
paper's division of the data; means with standard errors. Breast cancer by the compiled path,
spam beside it on the device, which three to eight processes share: the seconds compare populations of one
data set, nothing else. {scores_where}

{scores}

There is no sign of a change of accuracy, for either. Nor is there of the log loss of breast cancer, whose
posterior is on models that separate the classes, with likelihoods equal to rounding. The log loss of
spam is larger with exact populations by two standard errors; by chance one of four differences is as
large in one of eight such tables. Nothing speaks for exact populations.

The best model of one seed may well be worse with them: in 43 of 91 seeds of spam it is. Its log evidence has a standard
deviation of eight nats between seeds, and the two are hardly correlated over seeds (0.1). That is what is to be expected if
slightly different inclusion probabilities delete another feature, whose place goes to another newcomer, so that soon
the two searches see different features. On average neither finds better models.

Populations of spam are hard for the device: columns with rows 20 standard deviations out and large
coefficients, and in a third of the populations of seed 0 the classes are separated. In populations looked at in
detail, leaving out one column and taking one step was accurate for none of a thousand models. That is noticed after
512 models, and the others take Newton's method, with steps that are halved where the likelihood falls; without that
a third of the models of one population were left to the compiled path.

## Tests on the device

`DBRM_TEST_PLATFORM=gpu` runs the tests that compare the two engines on a graphics processor instead of
JAX's CPU platform: families, priors, weights, offsets, trials, separated classes, dependent and settled
columns, padded sizes, steps that are halved, what is compiled ahead, whole fits, values of BAS and R-INLA. All 80 passed on an
H200 in half a minute (2026-11-17, commit 9000560; 16 processes, which need
`XLA_PYTHON_CLIENT_PREALLOCATE=false`).
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fits", help="some fits, as this program has them in new processes")
    parser.add_argument("--rows", type=int, nargs="*", help="rows of the fits")
    parser.add_argument("--seeds", type=int, default=100, help="of the fits for accuracy")
    parser.add_argument("--seconds", type=float, default=300.0, help="to start them in")
    parser.add_argument("--resume", action="store_true", help="go on with the fits for accuracy")
    parser.add_argument("--folder", type=Path, default=RESULTS / "numbers" / "gpu")
    options = parser.parse_args()
    if options.fits is not None:
        print(json.dumps(fit_several(*json.loads(options.fits))))
        return
    platform = device = "cpu" if options.quick else "gpu"
    if not (options.quick or options.page) and not load_program().find_devices("gpu"):
        print("There is no graphics processor here: nothing is measured.")
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    for part in () if options.page else PARTS:
        if options.only not in (None, part):
            continue

        def keep(numbers, part=part):
            kept = {"measured": machine(), "numbers": numbers}
            text = json.dumps(kept, indent=1, default=float) + "\n"
            (options.folder / f"{part}.json").write_text(text, encoding="utf-8")

        if part == "limits":
            numbers = measure_limits(options.quick)
        elif part == "evaluations":
            numbers = measure_evaluations(platform, options.quick)
        elif part == "chains":
            numbers = measure_chains(platform, options.quick)
        elif part == "accuracy":
            seeds = 2 if options.quick else options.seeds
            found = []
            if options.resume:
                kept = (options.folder / "accuracy.json").read_text(encoding="utf-8")
                found = json.loads(kept)["numbers"]
            numbers = measure_accuracy(device, seeds, options.seconds, found, keep)
        else:
            numbers = measure_fits(device, options.rows, options.quick)
        keep(numbers)
    if options.page or options.only is None:
        write_page(options.folder)


if __name__ == "__main__":
    main()
