"""How good a posterior is where the truth is known, and on rows it has not seen.

Nothing here searches: a posterior comes in, numbers go out.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import scipy.special

from dbrm import Posterior
from dbrm.features import Feature, evaluate

EDGES = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
DETECTED = 0.5
# No probability may cost more than this when it was wrong.
SMALLEST = 1e-3
MOST_MODELS = 5_000
# Features with at least this correlation in the training rows are relatives.
RELATED = 0.95
# No row may cost more than this.
LOWEST = -20.0


def score_inclusion(
    posterior: Posterior, truth: Sequence[str], covariates: Sequence[str]
) -> dict[str, float]:
    """Power, false discoveries and calibration of features and of covariates."""
    inclusion = posterior.features["inclusion"].to_numpy()
    positions = [posterior._spellings.find(posterior.parse_feature(text)) for text in truth]
    names = [str(feature) for feature in posterior._merged.features]
    true_names = {names[j] for j in positions if j is not None}
    is_true = posterior.features["feature"].isin(true_names).to_numpy()
    missed = sum(j is None for j in positions)
    detected = inclusion > DETECTED
    false = int(np.sum(detected & ~is_true))
    scores = {
        "power": float(np.sum(detected & is_true)) / len(truth) if truth else np.nan,
        "false": false,
        "fdr": false / max(int(detected.sum()), 1),
        "brier": float(np.sum((inclusion - is_true) ** 2)) + missed,
        **reliability("feature", inclusion, is_true),
    }
    chosen = covariate_inclusion(posterior, covariates)
    involved = {name for text in truth for name in re.findall(r"\bx\d+\b", text)}
    values = np.array(list(chosen.values()))
    real = np.array([name in involved for name in chosen])
    return {
        **scores,
        **reliability("covariate", values, real),
        "covariate_brier": brier(values, real),
        "covariate_log": log_loss(values, real),
    }


def score_groups(posterior: Posterior, truth: Sequence[str], X: pd.DataFrame) -> dict[str, float]:
    """Calibration of groups: a feature and its relatives, of which one is in the model.

    The surest feature leads the first group, the surest of the others the next. A group is true
    if a relative of its leader is.
    """
    features, order = posterior._merged.features, np.argsort(-posterior._inclusion, kind="stable")
    order = order[posterior._inclusion[order] > 0.1 * EDGES[0]]
    found = _standardise([features[j] for j in order], X)
    true = _standardise([posterior.parse_feature(text) for text in truth], X)
    probability, happened, left = [], [], np.ones(len(order), dtype=np.bool_)
    while left.any():
        leader = found[:, np.argmax(left)]
        members = left & (np.abs(leader @ found) >= RELATED)
        members[np.argmax(left)] = True
        left &= ~members
        # Their sum is a bound; below the first bin nothing is counted.
        positions = order[members]
        if posterior._inclusion[positions].sum() <= EDGES[0]:
            continue
        probability.append(posterior._probability_of_any(positions.tolist()))
        happened.append(bool(np.any(np.abs(leader @ true) >= RELATED)))
    return reliability("group", np.array(probability), np.array(happened, dtype=np.bool_))


def _standardise(features: Sequence[Feature], X: pd.DataFrame) -> np.ndarray:
    """Columns of mean zero and length one."""
    columns = evaluate(features, X)[0]
    columns = columns - columns.mean(axis=0)
    return columns / np.linalg.norm(columns, axis=0)


def reliability(what: str, probability: np.ndarray, happened: np.ndarray) -> dict[str, float]:
    """Number, sum of probabilities and number of true ones, in bins of probability."""
    counts: dict[str, float] = {}
    for i, (low, high) in enumerate(pairwise(EDGES)):
        inside = (probability > low) & (probability <= high)
        counts[f"{what}{i}_n"] = int(inside.sum())
        counts[f"{what}{i}_claimed"] = float(probability[inside].sum())
        counts[f"{what}{i}_true"] = int(happened[inside].sum())
    return counts


def calibration_error(results: pd.DataFrame, what: str) -> float:
    """Mean distance between claimed and realised, over all that is claimed above 0.05."""
    totals = results.filter(like=what).sum()
    bins = range(len(EDGES) - 1)
    number = sum(totals[f"{what}{i}_n"] for i in bins)
    gaps = (totals[f"{what}{i}_claimed"] - totals[f"{what}{i}_true"] for i in bins)
    return sum(abs(gap) for gap in gaps) / number if number else np.nan


def covariate_inclusion(posterior: Posterior, names: Sequence[str]) -> Mapping[str, float]:
    """Probability that a covariate takes part, in whatever feature."""
    models = posterior.models.head(MOST_MODELS)
    shares = models["probability"].to_numpy()
    total = dict.fromkeys(names, 0.0)
    parts: dict[str, set[str]] = {}
    for features, share in zip(models["features"], shares, strict=True):
        inside: set[str] = set()
        for text in features:
            if text not in parts:
                parts[text] = set(re.findall(r"\bx\d+\b", text))
            inside |= parts[text]
        for name in inside:
            total[name] += share
    return {name: min(value / shares.sum(), 1.0) for name, value in total.items()}


def score_prediction(
    posterior: Posterior, X: pd.DataFrame, y: np.ndarray, family: str
) -> dict[str, float]:
    """Score of new rows, the smaller the better, and coverage of 95 % intervals.

    Minus the mean log density for Gaussian and binary responses, half the mean deviance of the
    predicted means for counts and positive ones.
    """
    mean = posterior.predict(X)
    if family == "binomial":
        return {"prediction": log_loss(mean, y, 1e-15)}
    low, high = posterior.predict_interval(X, level=0.95).T
    coverage = float(np.mean((low <= y) & (y <= high)))
    match family:
        case "gaussian":
            density = np.nan_to_num(log_density(posterior, X, y), nan=LOWEST)
            score = -float(np.mean(np.maximum(density, LOWEST)))
        case "poisson":
            score = float(np.mean(scipy.special.xlogy(y, y / mean) - (y - mean)))
        case _:
            score = float(np.mean((y - mean) / mean - np.log(y / mean)))
    return {"prediction": score, "coverage": coverage}


def common_scores(posterior: Posterior) -> dict[str, float]:
    """Features in the best model, and how far chains agree where there are several."""
    scores = {"size": float(len(posterior.best_model.features))}
    found = posterior.diagnostics
    if found.unexplored is not None:
        scores["disagree"] = float(not found.agree)
        scores["unexplored"] = found.unexplored
    return scores


def log_density(posterior: Posterior, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Log predictive density of a response."""
    values, start = [], 0
    for block in posterior.checks._blocks(posterior.rows(X, y)):
        stop = start + block.weights.shape[1]
        values.append(block.log_density(y[start:stop]))
        start = stop
    return np.concatenate(values)


def brier(probability: np.ndarray, happened: np.ndarray) -> float:
    return float(np.mean((probability - happened) ** 2))


def log_loss(probability: np.ndarray, happened: np.ndarray, least: float = SMALLEST) -> float:
    p = np.clip(probability, least, 1.0 - least)
    return float(-np.mean(np.where(happened, np.log(p), np.log1p(-p))))
