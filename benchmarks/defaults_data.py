r"""Data for the study of defaults: simulated truths, and public tables to predict.

Simulated covariates are normal with standard deviation 1.5 and correlation 0.3. A feature of
strength :math:`s` is standardised and enters with a slope of :math:`\pm s`, beside noise of
standard deviation one or, for a binary response, on the scale of the logit. Strengths are
drawn log-uniformly between a weak and a strong one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import sklearn.datasets

import dbrm

KINDS = ("null", "linear", "interaction", "nonlinear")
CURVES = ("sin", "cos", "gauss", "tanh")
STRENGTHS = {"gaussian": (0.3, 1.0), "binomial": (0.6, 2.0)}
COVARIATES = (6, 12, 30)
ROWS = {"gaussian": (100, 500), "binomial": (150, 600)}


@dataclass(frozen=True)
class Truth:
    """A data set with the features that made it."""

    X: pd.DataFrame
    y: np.ndarray
    features: tuple[str, ...]


def simulate(family: str, kind: str, n: int, replicate: int) -> Truth:
    """One data set, with 6, 12 or 30 covariates in turn."""
    rng = np.random.default_rng([list(ROWS).index(family), KINDS.index(kind), n, replicate])
    p = COVARIATES[replicate % len(COVARIATES)]
    common = rng.normal(size=(n, 1))
    X = 1.5 * (np.sqrt(0.3) * common + np.sqrt(0.7) * rng.normal(size=(n, p)))
    table = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(p)])
    features = draw_features(rng, kind, list(table.columns))
    eta = np.zeros(n)
    weak, strong = np.log(STRENGTHS[family])
    for text in features:
        column = evaluate(text, table)
        slope = np.exp(rng.uniform(weak, strong)) * rng.choice([-1.0, 1.0])
        eta += slope * (column - column.mean()) / column.std()
    if family == "gaussian":
        return Truth(table, eta + rng.normal(size=n), features)
    return Truth(table, (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float), features)


def draw_features(rng: np.random.Generator, kind: str, names: list[str]) -> tuple[str, ...]:
    """Three features of one kind, of different covariates; none for "null"."""
    a, b, c, d, e = rng.choice(names, size=5, replace=False)
    f, g = rng.choice(CURVES, size=2)
    return {
        "null": (),
        "linear": (a, b, c),
        "interaction": (a, f"{b}*{c}", f"{d}*{e}"),
        "nonlinear": (a, f"{f}({b})", f"{c}*{g}({d})"),
    }[kind]


def evaluate(text: str, table: pd.DataFrame) -> np.ndarray:
    columns = {name: table[name].to_numpy() for name in table}
    return np.asarray(dbrm.parse_feature(text, names=list(table.columns)).evaluate(columns))


def law(name: str, replicate: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw from a law of three of five covariates; the noise is half as strong as the signal."""
    rng = np.random.default_rng([list(LAWS).index(name), replicate])
    X = rng.uniform(0.2, 3.0, size=(600, 5))
    signal = LAWS[name](*X.T[:3])
    y = signal + 0.5 * signal.std() * rng.normal(size=len(X))
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(5)]), y


LAWS: dict[str, Callable[..., np.ndarray]] = {
    "saturation": lambda a, b, c: a * b / (0.5 + b) + c,
    "power law": lambda a, b, c: a**1.5 * np.sqrt(b) / c,
}


@dataclass(frozen=True)
class Table:
    """A table to predict from; `n_train` rows are for training in every split."""

    family: str
    n_train: int
    load: Callable[[int], tuple[pd.DataFrame, np.ndarray]]


def _frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])])


def _diabetes(_: int) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = sklearn.datasets.load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X, y.to_numpy()


def _friedman(which: int) -> Callable[[int], tuple[pd.DataFrame, np.ndarray]]:
    make = getattr(sklearn.datasets, f"make_friedman{which}")
    noise = {1: 1.0, 3: 0.1}[which]

    def load(replicate: int) -> tuple[pd.DataFrame, np.ndarray]:
        X, y = make(n_samples=600, noise=noise, random_state=replicate)
        return _frame(X), y

    return load


def _wine(_: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The second cultivar against the others."""
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    return _frame(X), (y == 1).astype(float)


def _hastie(replicate: int) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = sklearn.datasets.make_hastie_10_2(n_samples=900, random_state=replicate)
    return _frame(X), (y > 0).astype(float)


def _cancer(_: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The paper's training rows only, so that nothing is chosen on its test rows."""
    data = dbrm.datasets.load_breast_cancer()
    y = data.train[data.response].to_numpy(dtype=float)
    return data.train.drop(columns=data.response), y


def _above_median(replicate: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Diabetes again: is progression above its median?"""
    X, y = _diabetes(replicate)
    return X, (y > np.median(y)).astype(float)


TABLES = {
    "diabetes": Table("gaussian", 300, _diabetes),
    "friedman1": Table("gaussian", 200, _friedman(1)),
    "friedman3": Table("gaussian", 200, _friedman(3)),
    **{
        name: Table("gaussian", 200, lambda replicate, name=name: law(name, replicate))
        for name in LAWS
    },
    "diabetes above median": Table("binomial", 300, _above_median),
    "breast cancer, training rows": Table("binomial", 95, _cancer),
    "wine": Table("binomial", 120, _wine),
    "hastie": Table("binomial", 300, _hastie),
}
