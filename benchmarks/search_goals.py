"""The goals of the search: what was aimed at, what is measured, and whether it holds.

    python -m benchmarks search_goals [--only parity --only laws] [--seeds 4] [--page]

Every row of the page ``docs/results/search.md`` is measured by a function of its own here; what
it found is kept in ``docs/results/numbers/search_goals.json``, so that rows can be measured one
by one (``--list`` names them). All times are processor times of one core, once compiled. The mass
missed inside populations is read from ``missed_mass.csv``: run ``missed_mass.py`` first.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import json  # noqa: E402
import warnings  # noqa: E402
from collections import Counter  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from statistics import median  # noqa: E402
from time import process_time  # noqa: E402

import laws as known_laws  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from mass_found import parity as signs  # noqa: E402
from memory import measure as measure_memory  # noqa: E402
from page import RESULTS, keep, kept, machine, read_rows  # noqa: E402
from search_goals_page import GOALS, write_page  # noqa: E402
from tall_data import simulate  # noqa: E402

import dbrm  # noqa: E402
from dbrm.evolution.newcomers import draw as newcomers_draw  # noqa: E402
from dbrm.evolution.newcomers.screen import Candidates, Screen  # noqa: E402
from dbrm.latent import AR1, IID, OU, RW1  # noqa: E402

SIZES = {"gaussian": (10**3, 10**4, 10**5), "binomial": (10**3, 10**4, 10**5, 10**6)}
# Fits of these many rows and more are measured once.
LONG = 10**5
SMALL = {"n_chains": 1, "n_populations": 2, "random_state": 1}
LIGHT = {"prior": "zellner-siow", "penalty": "multiplicity", "transforms": "paper-g1"}
# The best log posterior of the exoplanets that any run has met, by response.
BEST_EVER = RESULTS / "exoplanets_best.json"


def fit(X, y, seed, **settings):
    """A fit in this process, and its processor time."""
    started = process_time()
    posterior = dbrm.fit(X, y, n_jobs=1, random_state=seed, **settings)
    return posterior, process_time() - started


def best_of(posterior):
    return " + ".join(sorted(posterior.models["features"][0]))


def _frame(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


@contextmanager
def watched_newcomers(scored):
    """Add up in `scored` how many candidates a fit draws, makes and scores, and the seconds."""
    parts = [
        (newcomers_draw, "draw_recipes"),
        (newcomers_draw, "fill_columns"),
        (Screen, "weigh"),
        (Candidates, "gains"),
    ]
    usual = [getattr(owner, name) for owner, name in parts]

    def timed(function):
        def run(*given):
            started = process_time()
            result = function(*given)
            scored["seconds"] += process_time() - started
            if function.__name__ == "fill_columns":
                scored["candidates"] += len(given[1])
                scored["rows"] = given[2].shape[1]
            return result

        return run

    for (owner, name), function in zip(parts, usual, strict=True):
        setattr(owner, name, timed(function))
    try:
        yield
    finally:
        for (owner, name), function in zip(parts, usual, strict=True):
            setattr(owner, name, function)


def candidates(n_seeds, n=1000, settings=None):
    """Candidate features that default fits draw, make and score per second."""
    X, y = simulate(n, "gaussian")
    dbrm.fit(X, y, **SMALL)
    scored = {"candidates": 0, "seconds": 0.0}
    with watched_newcomers(scored):
        for seed in range(n_seeds):
            fit(X, y, seed, **(settings or {}))
    return scored


def default_fits(family, n_seeds, sizes):
    """Median processor time of default fits of `tall_data.simulate`, by number of rows."""
    dbrm.fit(*simulate(200, family), family=family, **SMALL)
    found = {}
    for n in sizes:
        X, y = simulate(n, family)
        fits = [fit(X, y, seed, family=family) for seed in range(1 if n >= LONG else n_seeds)]
        found[str(n)] = {
            "seconds": median(seconds for _, seconds in fits),
            "best": best_of(fits[0][0]),
        }
        print(family, n, found[str(n)], flush=True)
    return found


def gaussian(n_seeds, sizes=SIZES["gaussian"]):
    return default_fits("gaussian", n_seeds, sizes)


def logistic(n_seeds, sizes=SIZES["binomial"]):
    return default_fits("binomial", n_seeds, sizes)


def missed_mass(n_seeds):  # noqa: ARG001
    """From the file that `missed_mass.py` wrote."""
    rows = read_rows(RESULTS / "missed_mass.csv")
    missed = np.array([float(row["missed"]) for row in rows])
    return {
        "populations": len(rows),
        "data": list(dict.fromkeys(row["data"] for row in rows)),
        "share": float(np.mean(missed <= 1e-3)),
        "99 %": float(np.quantile(missed, 0.99)),
        "most": float(missed.max()),
    }


def checks(estimator):
    """scikit-learn's own checks of an estimator at default effort."""
    from sklearn.utils.estimator_checks import check_estimator

    X, y = simulate(50, "binomial")
    type(estimator)(**SMALL).fit(X, y).predict(X)
    started = process_time()
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    seconds = process_time() - started
    failed = [one["check_name"] for one in results if one["status"] == "failed"]
    return {"seconds": seconds, "checks": len(results), "failed": failed}


def regressor_checks(n_seeds):  # noqa: ARG001
    return checks(dbrm.DBRMRegressor())


def classifier_checks(n_seeds):  # noqa: ARG001
    return checks(dbrm.DBRMClassifier())


def tiny(n_seeds):
    """Twelve rows and one covariate, a Gaussian and a binary response; the longest fit counts."""
    found = {}
    for family in ("gaussian", "binomial"):
        dbrm.fit(*simulate(50, family), family=family, **SMALL)
        seconds = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(12, 1))
            y = X[:, 0] + 0.5 * rng.normal(size=12)
            y = (y > np.median(y)).astype(float) if family == "binomial" else y
            seconds.append(fit(X, y, seed, family=family)[1])
        found[family] = {"median": median(seconds), "longest": max(seconds)}
    return found


def first_prediction(n_seeds):
    """Probabilities of a thousand rows, asked for the first time after a default fit."""
    X, y = simulate(1000, "binomial")
    dbrm.DBRMClassifier(**SMALL).fit(X[:200], y[:200]).predict_proba(X)
    times = []
    for seed in range(n_seeds):
        model = dbrm.DBRMClassifier(random_state=seed, n_jobs=1).fit(X, y)
        started = process_time()
        model.predict_proba(X)
        times.append((process_time() - started, model.posterior_.n_averaged))
    seconds, averaged = max(times)
    return {"seconds": seconds, "averaged": averaged}


def latent(n_seeds, n=300, settings=None):
    """Counts along irregular positions: an Ornstein-Uhlenbeck process and two of five covariates."""
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.exponential(size=n))
    X = rng.normal(size=(n, 5))
    process = np.zeros(n)
    for i in range(1, n):
        decay = np.exp(-0.4 * (t[i] - t[i - 1]))
        process[i] = decay * process[i - 1] + 0.8 * np.sqrt(1.0 - decay**2) * rng.normal()
    y = rng.poisson(np.exp(1.5 + 0.4 * X[:, 0] - 0.3 * X[:, 1] + process))
    table = _frame(X).assign(t=t)
    offered = {"family": "poisson", "latent": [IID("t"), AR1("t"), RW1("t"), OU("t")]}
    dbrm.fit(table[:60], y[:60], **offered, **SMALL)
    fits = [fit(table, y, seed, **offered, **(settings or {})) for seed in range(n_seeds)]
    posterior = fits[0][0]
    effects = posterior.models["latent"][0]
    return {
        "seconds": median(seconds for _, seconds in fits),
        "best": " + ".join([best_of(posterior), *effects]),
    }


def laws(n_seeds):
    """Kepler's law and the mass law with default settings, as `laws.py` counts them."""
    known_laws.run("mass", "paper-g1", "default", 0)
    found = {}
    for law in known_laws.LAWS:
        runs = [known_laws.run(law, "paper-g1", "default", seed) for seed in range(n_seeds)]
        seconds = [one.cpu_seconds for one in runs]
        found[law] = {
            "found": sum(max(one.inclusion) > known_laws.THRESHOLD for one in runs),
            "runs": n_seeds,
            "median": median(seconds),
            "longest": max(seconds),
        }
    return found


def exoplanets(n_seeds, settings=None):
    """How often the best log posterior is within half a nat of the best ever met.

    ``SemiMajorAxisAU`` and ``PlanetaryMassJpt``, as in the paper's Examples 4 and 5, under a prior
    lighter than the default. The best ever met is kept in a file and raised here.
    """
    ever = json.loads(BEST_EVER.read_text(encoding="utf-8")) if BEST_EVER.exists() else {}
    found = {}
    for response, _ in known_laws.LAWS.values():
        table = dbrm.datasets.load_exoplanets()
        y = table.pop(response)
        dbrm.fit(table, y, **LIGHT, **SMALL)
        runs = []
        for seed in range(n_seeds):
            posterior, seconds = fit(table, y, seed, **LIGHT, **(settings or {}))
            first = posterior.models.iloc[0]
            value = float(first["log_evidence"] + first["log_prior"])
            runs.append((value, seconds))
            if value > ever.get(response, {}).get("log_posterior", -np.inf):
                ever[response] = {"log_posterior": value, "best": best_of(posterior)}
        best = ever[response]
        values = np.array([value for value, _ in runs])
        found[response] = {
            "found": int(np.sum(values >= best["log_posterior"] - 0.5)),
            "runs": n_seeds,
            "best": best,
            "short": sorted((best["log_posterior"] - values).round(2).tolist(), reverse=True)[:5],
            "seconds": median(seconds for _, seconds in runs),
        }
    BEST_EVER.write_text(json.dumps(ever, indent=1) + "\n", encoding="utf-8")
    return found


def parity(n_seeds, settings=None):
    """How often the product of five signs is in the best model, under default settings."""
    X, y, _ = signs()
    product = X.to_numpy()[:, :5].prod(axis=1)
    dbrm.fit(X, y, **SMALL)
    found, times = 0, []
    for seed in range(n_seeds):
        posterior, seconds = fit(X, y, seed, **(settings or {}))
        columns = [term.evaluate(X) for term in posterior.best_model.terms]
        found += any(abs(np.corrcoef(column, product)[0, 1]) > 1.0 - 1e-9 for column in columns)
        times.append(seconds)
    return {"found": found, "runs": n_seeds, "seconds": median(times)}


def deep_law(n_seeds, settings=None):
    """How often default settings end with the same best model of a law outside the sweep."""
    rng = np.random.default_rng(90)
    X = rng.normal(size=(200, 8))
    y = 2.0 * np.tanh(X[:, 0] * X[:, 1]) * X[:, 2] + 1.5 * np.sin(X[:, 3] + X[:, 4])
    y = y + 0.5 * rng.normal(size=200)
    dbrm.fit(_frame(X), y, **SMALL)
    fits = [fit(_frame(X), y, seed, **(settings or {})) for seed in range(n_seeds)]
    models = Counter(best_of(posterior) for posterior, _ in fits)
    (best, most), *_ = models.most_common()
    inclusion = pd.DataFrame(
        [dict(posterior.features[["feature", "inclusion"]].to_numpy()) for posterior, _ in fits]
    ).fillna(0.0)
    return {
        "found": most,
        "runs": n_seeds,
        "best": best,
        "others": dict(models.most_common()[1:4]),
        "spread": float((inclusion.max() - inclusion.min()).max()),
        "seconds": median(seconds for _, seconds in fits),
    }


def memory(n_seeds, sizes=(1_000, 1_000_000)):  # noqa: ARG001
    """Peak memory of default fits, each in a process of its own, as `memory.py` measures it."""
    families = ("gaussian", "binomial", "poisson")
    return {"fits": [measure_memory(family, n) for n in sizes for family in families]}


# Name of the row -> measurement and its usual number of seeds.
MEASUREMENTS = {
    "candidates": (candidates, 3),
    "gaussian": (gaussian, 3),
    "logistic": (logistic, 3),
    "missed_mass": (missed_mass, 0),
    "regressor_checks": (regressor_checks, 0),
    "classifier_checks": (classifier_checks, 0),
    "tiny": (tiny, 5),
    "first_prediction": (first_prediction, 3),
    "latent": (latent, 3),
    "laws": (laws, 100),
    "exoplanets": (exoplanets, 25),
    "parity": (parity, 20),
    "deep_law": (deep_law, 20),
    "memory": (memory, 0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="only these rows")
    parser.add_argument("--seeds", type=int, help="in place of each row's own number")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name:18} {GOALS[name].title}" for name in MEASUREMENTS))
        return
    warnings.simplefilter("ignore")
    for name in () if options.page else options.only or MEASUREMENTS:
        measurement, usual = MEASUREMENTS[name]
        numbers = measurement(usual if options.seeds is None else options.seeds)
        numbers["measured"] = machine()
        print(name, numbers, flush=True)
        keep(
            "search_goals", kept().get("search_goals", {}) | {"measured": machine(), name: numbers}
        )
    print(write_page())


if __name__ == "__main__":
    main()
