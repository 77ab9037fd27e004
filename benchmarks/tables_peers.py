"""Other methods on real tables, at their defaults, on one thread.

Each method is fitted to training rows of a data frame with categories and missing values, and
predicts means, or probabilities of classes. Those that cannot take missing values get medians and
indicators, those that cannot take categories a column for each level. What is not a default:

* logistic regression chooses its penalty by log loss, by which it is judged here;
* pyGAM searches its smoothing by its default grid, with a linear term for columns of fewer than
  five values; more than two classes are one against the rest;
* APLR, boosted products of hinges, stands for MARS: `py-earth` has no wheels;
* BART (`bartz`) is given the response's standard deviation where least squares has no residuals,
  as in R; more than two classes are one against the rest.

Needs ``pip install dbrm[benchmarks]``; BART also ``bartz``, and may run in an environment of its
own. Packages are imported when a method is called.
"""

from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp, ndtr
from scipy.stats import norm
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

__all__ = ["PEERS", "Fold", "Peer", "Prediction"]


@dataclass(frozen=True)
class Fold:
    """Training rows, and rows to predict; classes are numbered from zero."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    n_classes: int
    seed: int


@dataclass(frozen=True)
class Prediction:
    """Means, or probabilities with a column for each class; CPU seconds; what else a method tells."""

    mean: np.ndarray
    fit_seconds: float
    predict_seconds: float
    # Log density of the test responses, and their 95 % intervals in two columns.
    log_density: np.ndarray | None = None
    interval: np.ndarray | None = None
    size: float | None = None


@dataclass(frozen=True)
class Peer:
    """A method, on how many of the folds it is run at most, and the package that it needs."""

    run: Callable[[Fold], Prediction]
    folds: int = 5
    package: str = "sklearn"


def _numbers(*, scale: bool, impute: bool = True) -> ColumnTransformer:
    """Numbers only: a column for each level, and indicators of missing values."""
    steps: list[Any] = [SimpleImputer(strategy="median", add_indicator=True)] if impute else []
    numeric = make_pipeline(*steps, *([StandardScaler()] if scale else []), "passthrough")
    levels = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing", missing_values=np.nan),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        *([StandardScaler()] if scale else []),
    )
    return ColumnTransformer(
        [
            ("numeric", numeric, make_column_selector(dtype_include="number")),
            ("levels", levels, make_column_selector(dtype_exclude="number")),
        ]
    )


def _objects(fold: Fold) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Categories as objects, missing ones as NaN."""

    def change(X: pd.DataFrame) -> pd.DataFrame:
        X = X.copy()
        for name in X.select_dtypes(exclude="number"):
            X[name] = X[name].astype(object).where(X[name].notna())
        return X

    return change(fold.X), change(fold.X_test)


def _categories(fold: Fold) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Categories with the levels of the training rows; others are missing."""
    X, X_test = fold.X.copy(), fold.X_test.copy()
    for name in X.select_dtypes(exclude="number"):
        levels = sorted(X[name].dropna().unique())
        X[name] = pd.Categorical(X[name], categories=levels)
        # A level is taken as missing where it was not seen in training.
        seen = X_test[name].where(X_test[name].isin(levels))
        X_test[name] = pd.Categorical(seen, categories=levels)
    return X, X_test


def _scikit(model: Any, X: Any, X_test: Any, fold: Fold) -> Prediction:
    """Fit and predict with anything that follows scikit-learn."""
    started = process_time()
    model.fit(X, fold.y)
    fitted = process_time()
    mean = model.predict_proba(X_test) if fold.n_classes else model.predict(X_test)
    return Prediction(np.asarray(mean, float), fitted - started, process_time() - fitted)


def _nothing(fold: Fold) -> Prediction:
    """Without covariates: the mean, or shares of classes, of the training rows."""
    n = len(fold.y_test)
    if fold.n_classes:
        shares = np.bincount(fold.y, minlength=fold.n_classes) / len(fold.y)
        return Prediction(np.tile(shares, (n, 1)), 0.0, 0.0)
    mean, sd = fold.y.mean(), fold.y.std(ddof=1)
    return Prediction(np.full(n, mean), 0.0, 0.0, norm.logpdf(fold.y_test, mean, sd))


def _lasso(fold: Fold) -> Prediction:
    from sklearn.linear_model import LassoCV, LogisticRegressionCV

    if fold.n_classes:
        model: Any = LogisticRegressionCV(scoring="neg_log_loss", max_iter=1000)
    else:
        model = LassoCV(random_state=fold.seed)
    return _scikit(make_pipeline(_numbers(scale=True), model), *_objects(fold), fold)


def _forest(fold: Fold) -> Prediction:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if fold.n_classes else RandomForestRegressor
    model = make_pipeline(_numbers(scale=False, impute=False), kind(random_state=fold.seed))
    return _scikit(model, *_objects(fold), fold)


def _hist_boosting(fold: Fold) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if fold.n_classes else HistGradientBoostingRegressor
    return _scikit(kind(random_state=fold.seed), *_categories(fold), fold)


def _xgboost(fold: Fold) -> Prediction:
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if fold.n_classes else XGBRegressor
    model = kind(random_state=fold.seed, n_jobs=1, enable_categorical=True)
    return _scikit(model, *_categories(fold), fold)


def _ebm(fold: Fold) -> Prediction:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if fold.n_classes else ExplainableBoostingRegressor
    return _scikit(kind(random_state=fold.seed, n_jobs=1), *_objects(fold), fold)


def _as_numbers(fold: Fold) -> tuple[np.ndarray, np.ndarray, float]:
    """Covariates as numbers only, and the seconds it took; constant columns are left out."""
    started = process_time()
    X, X_test = _objects(fold)
    numbers = _numbers(scale=False)
    train, test = np.asarray(numbers.fit_transform(X), float), numbers.transform(X_test)
    varies = np.ptp(train, axis=0) > 0
    return train[:, varies], np.asarray(test, float)[:, varies], process_time() - started


def _one_against_rest(fold: Fold, fit: Callable[[np.ndarray], Any], predict: Any) -> Prediction:
    """Probabilities of each class against the others, divided by their sum."""
    started = process_time()
    classes = [1] if fold.n_classes == 2 else range(fold.n_classes)
    models = [fit((fold.y == k).astype(float)) for k in classes]
    fitted = process_time()
    p = np.column_stack([predict(model) for model in models])
    p = np.column_stack([1.0 - p, p]) if fold.n_classes == 2 else p / p.sum(axis=1, keepdims=True)
    return Prediction(p, fitted - started, process_time() - fitted)


def _pygam(fold: Fold) -> Prediction:
    import pygam

    X, X_test, seconds = _as_numbers(fold)
    values = [len(np.unique(column)) for column in X.T]
    terms = pygam.terms.TermList(
        *(pygam.s(j, n_splines=min(20, n)) if n >= 5 else pygam.l(j) for j, n in enumerate(values))
    )
    if fold.n_classes:

        def fit(y: np.ndarray) -> Any:
            return pygam.LogisticGAM(terms).gridsearch(X, y, progress=False)

        return _one_against_rest(fold, fit, lambda model: model.predict_proba(X_test))
    started = process_time()
    model = pygam.LinearGAM(terms).gridsearch(X, fold.y, progress=False)
    fitted = process_time()
    mean = np.asarray(model.predict(X_test), float)
    predicted = process_time()
    interval = np.asarray(model.prediction_intervals(X_test, width=0.95), float)
    sd = np.ptp(interval, axis=1) / (2.0 * norm.ppf(0.975))
    return Prediction(
        mean,
        seconds + fitted - started,
        predicted - fitted,
        norm.logpdf(fold.y_test, mean, sd),
        interval,
    )


def _aplr(fold: Fold) -> Prediction:
    from aplr import APLRClassifier, APLRRegressor

    X, X_test, seconds = _as_numbers(fold)
    started = process_time()
    if fold.n_classes:
        model: Any = APLRClassifier(random_state=fold.seed, n_jobs=1)
        model.fit(X, [str(k) for k in fold.y])
        order = [model.get_categories().index(str(k)) for k in range(fold.n_classes)]
    else:
        model = APLRRegressor(random_state=fold.seed, n_jobs=1)
        model.fit(X, fold.y)
    fitted = process_time()
    if fold.n_classes:
        mean = np.asarray(model.predict_class_probabilities(X_test))[:, order]
    else:
        mean = np.asarray(model.predict(X_test))
    return Prediction(mean, seconds + fitted - started, process_time() - fitted)


def _bart(fold: Fold) -> Prediction:
    from bartz.BART import gbart

    X, X_test, seconds = _as_numbers(fold)

    def fit(y: np.ndarray, **options: Any) -> Any:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return gbart(X, y, seed=fold.seed, **options)

    if fold.n_classes:

        def predict(model: Any) -> np.ndarray:
            return ndtr(np.asarray(model.predict(X_test))).mean(axis=0)

        return _one_against_rest(fold, lambda y: fit(y, type="pbart"), predict)
    started = process_time()
    known = len(X) > X.shape[1] + 1
    model = fit(fold.y, **({} if known else {"sigest": float(fold.y.std(ddof=1))}))
    fitted = process_time()
    draws = np.asarray(model.predict(X_test), float)
    mean = draws.mean(axis=0)
    predicted = process_time()
    sigma = np.asarray(model.sigma, float).ravel()[-len(draws) :, None]
    log_density = logsumexp(norm.logpdf(fold.y_test, draws, sigma), axis=0) - np.log(len(draws))
    noise = np.random.default_rng(fold.seed).standard_normal(draws.shape)
    interval = np.quantile(draws + sigma * noise, [0.025, 0.975], axis=0).T
    return Prediction(mean, seconds + fitted - started, predicted - fitted, log_density, interval)


# In the order in which they are run: fast ones first.
PEERS: Mapping[str, Peer] = {
    "nothing": Peer(_nothing),
    "lasso": Peer(_lasso),
    "hist boosting": Peer(_hist_boosting),
    "xgboost": Peer(_xgboost, package="xgboost"),
    "random forest": Peer(_forest),
    "pygam": Peer(_pygam, package="pygam"),
    "ebm": Peer(_ebm, package="interpret"),
    "aplr": Peer(_aplr, package="aplr"),
    "bart": Peer(_bart, folds=2, package="bartz"),
}
