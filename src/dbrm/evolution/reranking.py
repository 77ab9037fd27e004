"""Features found on few rows, ranked again on the whole sample of tall data."""

from math import log

import numpy as np

from dbrm._typing import Matrix
from dbrm.data import to_unit_length
from dbrm.evidence import ScoreTest
from dbrm.evolution.problem import Problem
from dbrm.features import Feature, evaluate, fit_knots

__all__ = ["rank_again"]

# Columns held at once.
_COLUMNS = 32


def rank_again(
    problem: Problem, score_test: ScoreTest, model: Matrix, features: list[Feature], tried: int
) -> list[tuple[float, Feature]]:
    """Log posterior that each feature promises to add to the model with these columns.

    The best of so many features `tried` look better than they are: the share of the residual
    that one of them explains by chance is taken off.
    """
    basis, _ = np.linalg.qr(to_unit_length(model, fill=0.0))
    residual = score_test.residual - score_test.residual.mean()
    residual = residual - basis @ (basis.T @ residual)
    norm = float(residual @ residual)
    shares = np.zeros(len(features))
    for start in range(0, len(features), _COLUMNS):
        part = features[start : start + _COLUMNS]
        fitted = [fit_knots(problem.simplify(feature), problem.table) for feature in part]
        columns = to_unit_length(evaluate(fitted, problem.table)[0], fill=0.0, in_place=True)
        left = 1.0 - np.sum((basis.T @ columns) ** 2, axis=0)
        with np.errstate(all="ignore"):
            found = (residual @ columns) ** 2 / (left * norm)
        shares[start : start + len(part)] = np.where(left > 1e-6, found, 0.0)
    noise = 2.0 * log(tried) / problem.table.n_rows
    gains = score_test.gain(np.clip(np.nan_to_num(shares - noise), 0.0, 1.0))
    prior = problem.model_prior.feature_log_prior
    return [(float(gain) + prior(f), f) for gain, f in zip(gains, features, strict=True)]
