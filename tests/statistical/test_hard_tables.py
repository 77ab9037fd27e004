"""Predictions on random hard tables: finite everywhere, sensible inside the training box.

Heavy tails, outliers, rare binary columns, few rows, huge and tiny units, all families, default
and lighter penalties. One table per family by default, two thousand in the slow suite.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import DBRMWarning, InvalidDataError

FAMILIES = ("gaussian", "binomial", "poisson", "gamma", "negative_binomial")
QUICK = {"n_chains": 1, "n_populations": 3, "n_iter": 60, "sweep": 3, "n_jobs": 1}
# Ranges of the response by which a prediction inside the training box may leave the data.
SENSIBLE = 3.0


def draw_column(rng, n):
    """A column as tables have them."""
    match rng.integers(8):
        case 0:
            column = rng.normal(size=n)
        case 1:
            column = np.exp(2.0 * rng.normal(size=n))
        case 2:
            column = rng.standard_cauchy(size=n)
        case 3:
            column = np.where(np.arange(n) == rng.integers(n), 1000.0, rng.uniform(20, 30, n))
        case 4:
            column = (rng.random(n) < rng.choice([0.05, 0.2, 0.5])).astype(float)
        case 5:
            column = rng.choice([-1.0, 1.0], size=n)
        case 6:
            column = rng.poisson(2.0, n).astype(float)
        case _:
            column = rng.uniform(0.0, 1.0, n)
    return column * 10.0 ** rng.choice([0, 0, 0, -12, -3, 3, 12])


def draw_response(rng, signal, family):
    """A response with some signal in it, and sometimes an outlier."""
    n = signal.size
    match family:
        case "gaussian":
            noise = rng.normal(size=n) if rng.random() < 0.7 else rng.standard_t(2, size=n)
            y = signal + rng.choice([0.1, 1.0]) * noise
            if rng.random() < 0.3:
                y[rng.integers(n)] += 20.0
            return y * 10.0 ** rng.choice([0, 0, -9, 9])
        case "binomial":
            return (rng.random(n) < 1 / (1 + np.exp(-2.0 * signal))).astype(float)
        case "poisson":
            return rng.poisson(np.exp(signal)).astype(float)
        case "gamma":
            return rng.gamma(2.0, np.exp(signal) / 2.0) + 1e-6
    return rng.negative_binomial(2, 2 / (2 + np.exp(signal))).astype(float)


def draw_case(seed):
    """A table, its response, and how it is fitted."""
    rng = np.random.default_rng([19, seed])
    n, p = int(rng.choice([6, 10, 15, 25, 60])), int(rng.integers(1, 5))
    X = pd.DataFrame({f"x{j}": draw_column(rng, n) for j in range(p)})
    ranks = X.rank().to_numpy() / n - 0.5
    signal = 2.0 * ranks[:, 0] * rng.choice([0.0, 1.0]) + ranks.prod(axis=1)
    family = FAMILIES[seed % len(FAMILIES)]
    options = dict(QUICK, family=family, random_state=seed)
    if rng.random() < 0.5:
        options["penalty"] = ["multiplicity", 1.0][int(rng.integers(2))]
    if family == "gaussian" and rng.random() < 0.3:
        options["prior"] = "zellner-siow"
    return rng, X, draw_response(rng, signal, family), options


def new_rows(rng, X):
    """Rows inside the training box, then rows up to two ranges outside it."""
    low, high = X.min().to_numpy(), X.max().to_numpy()
    width, p = high - low, X.shape[1]
    mixed = np.column_stack([rng.choice(X[name], 15) for name in X])
    inside = np.vstack([mixed, low + width * rng.random((15, p)), low, high])
    outside = low - 2.0 * width + 5.0 * width * rng.random((20, p))
    corners = np.vstack([low - 2.0 * width, high + 2.0 * width])
    return len(inside), pd.DataFrame(np.vstack([inside, outside, corners]), columns=X.columns)


def complaints(seed):
    """What is wrong with the predictions of one table; nothing if it cannot be fitted."""
    rng, X, y, options = draw_case(seed)
    with warnings.catch_warnings():
        # Rows far outside are what this is about.
        warnings.simplefilter("ignore", DBRMWarning)
        try:
            posterior = dbrm.fit(X, y, **options)
        except InvalidDataError:
            return []
        n_inside, rows = new_rows(rng, X)
        mean, interval = posterior.predict(rows), posterior.predict_interval(rows, level=0.9)
        sd = posterior.predict_sd(rows)
    found = []
    if not np.all(np.isfinite(mean)):
        found.append("a prediction is not finite")
    if np.any(np.isnan(interval)) or np.any(np.isnan(sd)):
        found.append("an interval is not a number")
    reach = np.ptp(y) + (options["family"] != "gaussian")
    far = np.maximum(mean[:n_inside] - y.max(), y.min() - mean[:n_inside])
    if not np.all(far <= SENSIBLE * reach):
        found.append(f"a prediction inside the box is {np.max(far / reach):.3g} ranges off")
    return found


def all_complaints(seeds):
    found = {seed: complaints(seed) for seed in seeds}
    return {seed: problems for seed, problems in found.items() if problems}


@pytest.mark.parametrize("seed", range(5, 10), ids=FAMILIES)
def test_predictions_on_hard_tables_are_sensible(seed):
    assert complaints(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 2000, 100))
def test_predictions_on_two_thousand_hard_tables_are_sensible(start):
    assert all_complaints(range(start, start + 100)) == {}


def test_a_dummy_of_one_row_would_be_caught(monkeypatch):
    """Negative control: without the rule on information and held edges predictions explode."""
    from dbrm.evolution.information import InformationRule
    from dbrm.status import Status

    monkeypatch.setattr(InformationRule, "status", lambda *_: Status.OK)
    draw = np.random.default_rng(0)
    x = draw.uniform(20, 1000, 200)
    y = 0.5 * x + draw.normal(0, 30, 200)
    x[0], y[0] = 4.0, 600.0
    options = dict(QUICK, transforms=["erf", "sigmoid", "tanh"], random_state=0)
    posterior = dbrm.fit(pd.DataFrame({"x": x}), y, **options)
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    assert np.max(np.abs(posterior.predict(rows, extrapolate="follow"))) > 1e6
