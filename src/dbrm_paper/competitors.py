"""The methods that the paper compares with, at the settings of its scripts.

Boosting, LASSO and RIDGE follow the scripts to the digit. The others were run with H2O,
and their counterparts here come from scikit-learn: the same kind of model with the
closest settings, and labels at the threshold that maximises F1 in training, as H2O does.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm_paper.glmnet import last_of_path, with_penalty

__all__ = ["COMPETITORS", "DETERMINISTIC", "available"]

# Training columns, labels, new columns, seed -> probabilities of the new rows, threshold.
Competitor = Callable[[Matrix, Column, Matrix, int], tuple[Column, float]]

_BOOSTING = {
    "objective": "binary:logistic",
    "eta": 0.05,
    "subsample": 0.86,
    "colsample_bytree": 0.92,
    "colsample_bylevel": 0.9,
    "min_child_weight": 0,
    "gamma": 0.005,
    "max_depth": 15,
    "base_score": 0.5,
    "nthread": 1,
}
_ROUNDS = 10_000
# Random forest: trees per step, maximum, and steps without a better AUC before it stops.
_TREES, _MOST_TREES, _PATIENCE = 50, 10_000, 3


def available(method: str) -> bool:
    """Whether the library of a method is installed."""
    return method not in ("TXGBOOST", "LXGBOOST") or find_spec("xgboost") is not None


def _boost(x: Matrix, y: Column, new: Matrix, parameters: dict[str, Any]) -> Column:
    import xgboost

    model = xgboost.train(parameters, xgboost.DMatrix(x, y), _ROUNDS)
    return np.asarray(model.predict(xgboost.DMatrix(new)), dtype=np.float64)


def _tree_boosting(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:
    return _boost(x, y, new, {**_BOOSTING, "tree_method": "exact", "seed": seed}), 0.5


def _linear_boosting(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:
    """Coordinates in random order: on the asteroids the cyclic order changes one label."""
    linear = {"booster": "gblinear", "updater": "shotgun", "feature_selector": "shuffle"}
    shared = ("objective", "eta", "base_score", "nthread")
    parameters = {name: _BOOSTING[name] for name in shared}
    return _boost(x, y, new, {**parameters, **linear, "reg_lambda": 0.0, "seed": seed}), 0.5


def _lasso(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:  # noqa: ARG001
    return _logistic(last_of_path(x, y, mixing=1.0).linear_predictor(new)), 0.5


def _ridge(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:  # noqa: ARG001
    return _logistic(last_of_path(x, y, mixing=0.0).linear_predictor(new)), 0.5


def _logistic(eta: Column) -> Column:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(eta, -700.0, 700.0))))


def _deep_net(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:
    """Six hidden layers of 200 rectifiers."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    net = MLPClassifier(hidden_layer_sizes=(200,) * 6, max_iter=200, random_state=seed)
    return _at_best_f1(make_pipeline(StandardScaler(), net).fit(x, y), x, y, new)


def _forest(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:
    """At most 10,000 trees; fewer once the out-of-bag AUC stops improving."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    forest = RandomForestClassifier(_TREES, oob_score=True, warm_start=True, random_state=seed)
    best, waited = -np.inf, 0
    while waited < _PATIENCE and forest.n_estimators <= _MOST_TREES:
        forest.fit(x, y)
        auc = roc_auc_score(y, forest.oob_decision_function_[:, 1])
        waited = 0 if auc > best + 1e-3 else waited + 1
        best = max(best, auc)
        forest.n_estimators += _TREES
    threshold = _best_f1(forest.oob_decision_function_[:, 1], y)
    return np.asarray(forest.predict_proba(new)[:, 1]), threshold


def _naive_bayes(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:  # noqa: ARG001
    from sklearn.naive_bayes import GaussianNB

    return _at_best_f1(GaussianNB(var_smoothing=0.0).fit(x, y), x, y, new)


def _regression(x: Matrix, y: Column, new: Matrix, seed: int) -> tuple[Column, float]:  # noqa: ARG001
    """Half lasso, half ridge, at a thousandth of the penalty that leaves the intercept only."""
    model = with_penalty(x, y, mixing=0.5, share=1e-3)
    threshold = _best_f1(_logistic(model.linear_predictor(x)), y)
    return _logistic(model.linear_predictor(new)), threshold


def _at_best_f1(model: Any, x: Matrix, y: Column, new: Matrix) -> tuple[Column, float]:
    threshold = _best_f1(model.predict_proba(x)[:, 1], y)
    return np.asarray(model.predict_proba(new)[:, 1]), threshold


def _best_f1(probability: Column, y: Column) -> float:
    from sklearn.metrics import precision_recall_curve

    precision, recall, thresholds = precision_recall_curve(y, probability)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    return float(thresholds[int(np.argmax(f1[:-1]))])


COMPETITORS: Mapping[str, Competitor] = MappingProxyType(
    {
        "TXGBOOST": _tree_boosting,
        "LXGBOOST": _linear_boosting,
        "LASSO": _lasso,
        "RIDGE": _ridge,
        "DEEPNETS": _deep_net,
        "RFOREST": _forest,
        "NBAYES": _naive_bayes,
        "LR": _regression,
    }
)

# Methods without randomness: one run is enough.
DETERMINISTIC = ("LASSO", "RIDGE", "LXGBOOST", "NBAYES", "LR")
