r"""How well are real tables predicted, out of the box, beside other methods?

    python benchmarks/tables.py [--methods dbrm lasso ebm] [--half choose] [--folds 5]

Tables and their halves are in ``tables_data.py``, other methods in ``tables_peers.py``. Five folds
of every table, the same for all methods, stratified by class; a few slow methods run on the first
two. Results are added to ``docs/results/tables.csv`` one by one, and a run goes on where the last
one ended; ``--page`` writes ``docs/results/tables.md`` from that file. A method that fails has a
row with its error.

Other settings than the defaults have a name, and results in a file of their own:

    python benchmarks/tables.py --methods dbrm --half choose --folds 2 --file other.csv \
        --setting robust --json '{"prior": "robust"}'
    python benchmarks/tables.py --summary --file other.csv --half choose --folds 2

``--summary`` prints them beside the defaults and the other methods, on the same folds.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import argparse  # noqa: E402
import csv  # noqa: E402
import json  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Iterator, Mapping, Sequence  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from functools import cache  # noqa: E402
from hashlib import sha256  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402
from time import monotonic, process_time  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from defaults_scores import log_density  # noqa: E402
from page import RESULTS, read_rows  # noqa: E402
from sklearn.metrics import accuracy_score, log_loss, r2_score  # noqa: E402
from sklearn.model_selection import KFold, StratifiedKFold  # noqa: E402
from tables_data import TABLES, half, load  # noqa: E402
from tables_page import print_summary, write_page  # noqa: E402
from tables_peers import PEERS, Fold, Prediction  # noqa: E402

FILE = RESULTS / "tables.csv"
KEY = ("table", "method", "setting", "fold")
SCORES = ("r2", "log_score", "log_loss", "accuracy", "coverage", "size")
SECONDS = ("fit_seconds", "predict_seconds")
COLUMNS = (
    *("table", "half", "kind", "rows", "columns", "method", "setting", "fold", "test_rows"),
    *(*SCORES, *SECONDS, "warning", "error"),
)
FOLDS = 5
# Probabilities are at least this, as scikit-learn had it.
SMALLEST = 1e-15
# No row costs more than this, with a response of standard deviation one.
LOWEST = -20.0


@dataclass(frozen=True)
class Task:
    """One fit: a method with its settings on a fold of a table."""

    table: str
    method: str
    fold: int
    setting: str = "default"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.table, self.method, self.setting, str(self.fold))


@cache
def _loaded(name: str) -> tuple[pd.DataFrame, np.ndarray, int]:
    """Covariates, response (classes are numbered) and number of classes, 0 for a number."""
    X, y = load(name)
    if not TABLES[name].classes:
        return X, y.to_numpy(float), 0
    classes, numbers = np.unique(y.to_numpy().astype(str), return_inverse=True)
    return X, numbers, len(classes)


def split(name: str, number: int) -> Fold:
    """A fold of a table; the shuffle depends on the table's name only.

    Training rows are in random order: some methods validate on neighbouring rows.
    """
    X, y, n_classes = _loaded(name)
    seed = int.from_bytes(sha256(f"folds of {name}".encode()).digest()[:4], "big")
    kind = StratifiedKFold if n_classes else KFold
    folds = list(kind(FOLDS, shuffle=True, random_state=seed).split(X, y))
    train, test = folds[number]
    train = np.random.default_rng([seed, number]).permutation(train)
    return Fold(X.iloc[train], y[train], X.iloc[test], y[test], n_classes, number)


def run_dbrm(fold: Fold, settings: Mapping[str, Any]) -> Prediction:
    """The estimators as users call them, on one core."""
    import dbrm

    kind = dbrm.DBRMClassifier if fold.n_classes else dbrm.DBRMRegressor
    model = kind(**{"random_state": fold.seed, "n_jobs": 1, **settings})
    started = process_time()
    model.fit(fold.X, fold.y)
    fitted = process_time()
    mean = model.predict_proba(fold.X_test) if fold.n_classes else model.predict(fold.X_test)
    predicted = process_time()
    size = float(len(model.posterior_.best_model.features))
    times = (fitted - started, predicted - fitted)
    if fold.n_classes or model.posterior_.family.name != "gaussian":
        return Prediction(mean, *times, size=size)
    density = log_density(model.posterior_, fold.X_test, fold.y_test)
    interval = model.predict_interval(fold.X_test, level=0.95)
    return Prediction(mean, *times, density, interval, size)


def score(found: Prediction, fold: Fold) -> dict[str, float]:
    """R² and log score, or log loss and accuracy; coverage where there are intervals."""
    if not np.all(np.isfinite(found.mean)):
        raise ValueError("predictions are not finite")
    scores = {"fit_seconds": found.fit_seconds, "predict_seconds": found.predict_seconds}
    if found.size is not None:
        scores["size"] = found.size
    if fold.n_classes:
        p = np.clip(found.mean, SMALLEST, 1.0 - SMALLEST)
        p /= p.sum(axis=1, keepdims=True)
        labels = range(fold.n_classes)
        scores["log_loss"] = log_loss(fold.y_test, p, labels=labels)
        scores["accuracy"] = accuracy_score(fold.y_test, p.argmax(axis=1))
        return scores
    scores["r2"] = r2_score(fold.y_test, found.mean)
    if found.log_density is not None:
        standard = np.nan_to_num(found.log_density + np.log(fold.y.std()), nan=LOWEST)
        scores["log_score"] = float(np.mean(np.maximum(standard, LOWEST)))
    if found.interval is not None:
        low, high = found.interval.T
        scores["coverage"] = float(np.mean((low <= fold.y_test) & (fold.y_test <= high)))
    return scores


def run(task: Task) -> dict[str, Any]:
    """One row of results."""
    fold = split(task.table, task.fold)
    kind = {0: "regression", 2: "two classes"}.get(fold.n_classes, "more classes")
    row = dict(zip(KEY, task.key, strict=True)) | {
        "half": half(task.table),
        "kind": kind,
        "rows": len(fold.y) + len(fold.y_test),
        "columns": fold.X.shape[1],
        "test_rows": len(fold.y_test),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if task.method == "dbrm":
                found = run_dbrm(fold, task.settings)
            else:
                found = PEERS[task.method].run(fold)
            row |= {name: f"{value:.6g}" for name, value in score(found, fold).items()}
        except ImportError:
            raise
        except Exception as error:
            row["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    told = dict.fromkeys(" ".join(str(one.message).split())[:160] for one in caught)
    return row | {"warning": " | ".join(told)[:500]}


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """Fits that were asked for: by method, small tables first, then by fold."""
    names = [
        name
        for name in options.tables or TABLES
        if options.half in ("all", half(name)) and (options.classes in (None, _kind(name)))
    ]
    names.sort(key=lambda name: _loaded(name)[0].size)
    settings = json.loads(options.json)
    for method in options.methods:
        most = FOLDS if method == "dbrm" else PEERS[method].folds
        ours = {"setting": options.setting, "settings": settings} if method == "dbrm" else {}
        for name in names:
            for number in range(min(options.folds, most)):
                yield Task(name, method, number, **ours)


def _kind(name: str) -> str:
    return "classification" if TABLES[name].classes else "regression"


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to the file, with a header where it is new."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, restval="")
        if new:
            writer.writeheader()
        writer.writerow(row)


def _warm_up(methods: Sequence[str]) -> None:
    """Compile what is compiled at the first call, outside the measured time."""
    if "dbrm" in methods:
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
        for y, n_classes in ((X["a"].to_numpy(), 0), ((X["a"] > 0).to_numpy().astype(int), 2)):
            run_dbrm(Fold(X, y, X, y, n_classes, 0), {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    installed = ["dbrm", *(name for name, peer in PEERS.items() if find_spec(peer.package))]
    parser.add_argument("--methods", nargs="+", choices=("dbrm", *PEERS), default=installed)
    parser.add_argument("--half", choices=("choose", "confirm", "all"), default="all")
    parser.add_argument("--classes", choices=("regression", "classification"), metavar="KIND")
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="TABLE")
    parser.add_argument("--folds", type=int, default=FOLDS, help="the first so many")
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no fit after these")
    parser.add_argument("--setting", default="default", help="a name for other settings of dbrm")
    parser.add_argument("--json", default="{}", help="these settings, as JSON")
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--page", action="store_true", help="write the page, run nothing")
    parser.add_argument("--summary", action="store_true", help="print a comparison, run nothing")
    options = parser.parse_args()
    if options.page:
        print(write_page(read_rows(FILE)))
        return
    if options.summary:
        rows = read_rows(FILE) + (read_rows(options.file) if options.file != FILE else [])
        print_summary(rows, options.half, options.folds)
        return
    if options.setting == "default" and json.loads(options.json):
        parser.error("settings other than the defaults need a name: --setting NAME")
    found = read_rows(options.file) if options.file.exists() else []
    done = {tuple(row[name] for name in KEY) for row in found}
    _warm_up(options.methods)
    ends = monotonic() + 60.0 * options.minutes
    for task in tasks(options):
        if task.key in done:
            continue
        if monotonic() > ends:
            break
        row = run(task)
        append(options.file, row)
        shown = row.get("r2") or row.get("log_loss") or row["error"]
        print(*task.key, shown, row.get("fit_seconds", ""), row["warning"][:60], flush=True)
    if options.file == FILE and find_spec("dbrm"):
        print(write_page(read_rows(FILE)))


if __name__ == "__main__":
    main()
