r"""Simulated truths for the study of defaults, half of them for choosing and half for confirming.

Truth number `i` of a family is drawn with the seed (family, i): 40 to 2,000 rows (log-uniform),
4, 8, 15 or 30 covariates with correlation 0.3, and nothing, few (1 to 3) or many (5 to 9) true
features: covariates, products, functions of a covariate, and products with them. A feature
enters standardised, with a slope of either sign whose size is log-uniform: weak ones are hard to
see, strong ones easy. Every second truth has odd units: covariates are multiplied by powers of
ten and shifted, some are exponentials of normal ones. The functions are those of the default set,
so that a true feature is one that can be found; tables in which nobody knows the truth are a
benchmark of their own (``benchmarks/tables.py``).
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pandas as pd

from dbrm.features.sets import TRANSFORM_SETS, get_transform

FAMILIES = ("gaussian", "binomial", "poisson", "gamma")
TRUTHS = 200
KINDS = ("nothing", "few", "many")
COVARIATES = (4, 8, 15, 30)
NEW_ROWS = 300
# Smallest and largest slope of a standardised feature, on the scale of the predictor.
STRENGTHS = {
    "gaussian": (0.15, 1.0),
    "binomial": (0.3, 2.0),
    "poisson": (0.1, 0.5),
    "gamma": (0.1, 0.7),
}


@dataclass(frozen=True)
class Truth:
    """A data set, new rows to predict, and the features that made both."""

    kind: str
    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    y_new: np.ndarray
    features: tuple[str, ...]


def half(family: str, number: int) -> str:
    """The half of a truth, "choose" or "confirm", by a hash of its name."""
    return ("choose", "confirm")[sha256(f"{family} {number}".encode()).digest()[0] % 2]


def simulate(family: str, number: int) -> Truth:
    rng = np.random.default_rng([FAMILIES.index(family), number])
    kind = KINDS[number % len(KINDS)]
    n = round(np.exp(rng.uniform(np.log(40), np.log(2000))))
    p = int(rng.choice(COVARIATES))
    table = _covariates(rng, n + NEW_ROWS, p, odd=bool(rng.integers(2)))
    features = draw_features(rng, kind, list(table.columns))
    eta = np.zeros(len(table))
    weak, strong = np.log(STRENGTHS[family])
    for text in features:
        column = _evaluate(text, table, n)
        slope = np.exp(rng.uniform(weak, strong)) * rng.choice([-1.0, 1.0])
        eta += slope * (column - column[:n].mean()) / column[:n].std()
    y = _respond(rng, family, eta)
    return Truth(kind, table[:n], y[:n], table[n:].reset_index(drop=True), y[n:], features)


def _covariates(rng: np.random.Generator, n: int, p: int, *, odd: bool) -> pd.DataFrame:
    common = rng.normal(size=(n, 1))
    X = np.sqrt(0.3) * common + np.sqrt(0.7) * rng.normal(size=(n, p))
    if odd:
        X = np.where(rng.random(p) < 0.25, np.exp(X), X + rng.uniform(-3.0, 3.0, size=p))
        X *= 10.0 ** rng.uniform(-3.0, 3.0, size=p)
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(p)])


def draw_features(rng: np.random.Generator, kind: str, names: list[str]) -> tuple[str, ...]:
    """Different features, half of them plain covariates."""
    number = {"nothing": 0, "few": int(rng.integers(1, 4)), "many": int(rng.integers(5, 10))}[kind]
    found: dict[str, None] = {}
    while len(found) < number:
        a, b = map(str, rng.choice(names, size=2, replace=False))
        curve = str(rng.choice(TRANSFORM_SETS["smooth"]))
        share = rng.random()
        if share < 0.5:
            found[a] = None
        elif share < 0.7:
            found["*".join(sorted((a, b)))] = None
        elif share < 0.9:
            found[f"{curve}({a})"] = None
        else:
            found[f"{b}*{curve}({a})"] = None
        if len(found) >= len(names):
            break
    return tuple(found)


def _evaluate(text: str, table: pd.DataFrame, n: int) -> np.ndarray:
    """The column of a feature; functions standardise by the `n` training rows, as in a fit."""
    column = np.ones(len(table))
    for factor in text.split("*"):
        curve, bracket, name = factor.removesuffix(")").partition("[z](")
        x = table[name if bracket else factor].to_numpy()
        if bracket:
            x = get_transform(curve).function((x - x[:n].mean()) / x[:n].std())
        column *= x
    return column


def _respond(rng: np.random.Generator, family: str, eta: np.ndarray) -> np.ndarray:
    match family:
        case "gaussian":
            return eta + rng.normal(size=eta.size)
        case "binomial":
            return (rng.random(eta.size) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
        case "poisson":
            return rng.poisson(np.exp(np.clip(1.0 + eta, -5.0, 6.0))).astype(float)
    return rng.gamma(4.0, np.exp(np.clip(1.0 + eta, -5.0, 6.0)) / 4.0)
