"""Predictions of dbrm, EBM, xgboost and pyGAM on known data, each with the same seconds.

Seconds are processor time: wall time on a machine with nothing else to do.
"""

from time import process_time

import numpy as np
import xgboost
from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor
from pygam import LinearGAM, LogisticGAM
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1, make_friedman2
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score
from sklearn.model_selection import train_test_split
from symbolic_regressors import count_processor_time

import dbrm

__all__ = ["CASES", "SECONDS", "SPLITS", "compare"]

SECONDS, SPLITS = 10.0, 3
CASES = {
    "breast cancer (classes)": lambda: load_breast_cancer(return_X_y=True),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "Friedman 1, n = 500": lambda: make_friedman1(500, noise=1.0, random_state=1),
    "Friedman 2, n = 500": lambda: make_friedman2(500, noise=125.0, random_state=1),
}


def compare(case):
    """Rows of the table for one data set: means over the splits."""
    x, y = CASES[case]()
    classes = "classes" in case
    rows = []
    for name, method in METHODS.items():
        if classes and method is _lenient:
            continue
        results = []
        for seed in range(SPLITS):
            train_x, test_x, train_y, test_y = train_test_split(
                x, y, test_size=1 / 3, random_state=seed, stratify=y if classes else None
            )
            started = process_time()
            predict = method(train_x, train_y, classes, process_time() + SECONDS)
            seconds = process_time() - started
            results.append((*_scores(test_y, predict(test_x), classes), seconds))
        score, other, seconds = np.mean(results, axis=0)
        row = {"data": case, "method": name, "score": f"{score:.4g}", "other": f"{other:.3f}"}
        rows.append(row | {"seconds": f"{seconds:.1f}"})
        print(*rows[-1].values(), sep="  ", flush=True)
    return rows


def _scores(y, predicted, classes):
    if classes:
        return log_loss(y, predicted), accuracy_score(y, predicted > 0.5)
    return np.sqrt(mean_squared_error(y, predicted)), r2_score(y, predicted)


def _dbrm(x, y, classes, ends, **settings):
    count_processor_time()
    family = "binomial" if classes else "gaussian"
    posterior = dbrm.fit(
        x,
        y,
        family=family,
        n_populations=10_000,
        time_budget=ends - process_time(),
        random_state=1,
        n_jobs=1,
        **settings,
    )
    return posterior.predict


def _lenient(x, y, classes, ends):
    """The default penalty of classes, for a Gaussian response too."""
    return _dbrm(x, y, classes, ends, penalty="multiplicity")


def _ebm(x, y, classes, ends):
    """As many bags as there is time for, 14 at most as by default; with interactions if any fit."""
    make = ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor
    for settings in ({}, {"interactions": 0}):
        started = process_time()
        model = make(**settings, outer_bags=1, n_jobs=1, random_state=1).fit(x, y)
        now = process_time()
        bags = min(int((ends - now) / (now - started)), 14)
        if bags > 1:
            model = make(**settings, outer_bags=bags, n_jobs=1, random_state=1).fit(x, y)
            break
    return _mean(model, classes)


def _gam(x, y, classes, ends):
    """One fit, and the grid search of 11 degrees of smoothing if there is time for it."""
    make = LogisticGAM if classes else LinearGAM
    started = process_time()
    model = make().fit(x, y)
    now = process_time()
    if 11 * (now - started) < ends - now:
        model = make().gridsearch(x, y, progress=False)
    return model.predict_proba if classes else model.predict


def _xgboost(x, y, classes, ends):
    rng = np.random.default_rng(1)
    inside, outside, y_inside, y_outside = train_test_split(x, y, test_size=0.2, random_state=1)
    make = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
    best, settings = np.inf, {"n_estimators": 100}
    spent = 0.0
    while process_time() + spent < ends:
        tried = {
            "n_estimators": int(rng.integers(50, 600)),
            "learning_rate": float(10 ** rng.uniform(-2, -0.3)),
            "max_depth": int(rng.integers(1, 7)),
            "subsample": float(rng.uniform(0.5, 1)),
            "reg_lambda": float(10 ** rng.uniform(-1, 2)),
        }
        started = process_time()
        model = make(**tried, n_jobs=1, random_state=1).fit(inside, y_inside)
        score = _scores(y_outside, _mean(model, classes)(outside), classes)[0]
        # Once more as long, for the fit to all training rows.
        spent = 2 * (process_time() - started)
        if score < best:
            best, settings = score, tried
    return _mean(make(**settings, n_jobs=1, random_state=1).fit(x, y), classes)


def _mean(model, classes):
    return (lambda z: model.predict_proba(z)[:, 1]) if classes else model.predict


METHODS = {
    "dbrm": _dbrm,
    "dbrm, penalty multiplicity": _lenient,
    "EBM": _ebm,
    "xgboost": _xgboost,
    "pyGAM": _gam,
}
