r"""Polynomials in few covariates: all monomials together, then fewer and fewer.

Sums of many powers are a law that is not found term by term: each step forward has a function that
fits better than the right power. Backwards nothing stands in the way. A monomial is left out as
long as that raises the expected log posterior.
"""

from itertools import product

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import ColumnCache, Feature, evaluate

__all__ = ["sweep_polynomials"]

# Largest degree, by the number of covariates.
_DEGREES = {1: 8, 2: 4, 3: 3}
# Smallest share of the variance that counts: less is rounding.
_ROUNDING, _EXACT = 1e-20, 1e-18
# Rows for every monomial.
_ROWS_PER_TERM = 3


def sweep_polynomials(
    problem: Problem, pause: Pause = never, *, only_exact: bool = False
) -> list[Feature]:
    """The monomials of the polynomial of largest expected gain; none of many covariates.

    Parameters
    ----------
    only_exact
        Whether none are returned unless nothing is left but rounding.
    """
    engine, bases = problem.engine, problem.covariates
    if not isinstance(engine, GaussianEngine) or len(bases) not in _DEGREES or pause():
        return []
    powers, degree = Powers(problem.grammar.transforms), _DEGREES[len(bases)]
    exponents = [np.array(k) for k in product(range(degree + 1), repeat=len(bases))]
    spelt = [powers.product(bases, 1.0 * k) for k in exponents if 0 < k.sum() <= degree]
    features = [f for f in spelt if f is not None and problem.grammar.admits_law(f)]
    if problem.table.n_rows < _ROWS_PER_TERM * len(features) or not np.ptp(engine.response) > 0:
        return []
    columns, _ = evaluate(features, problem.table, ColumnCache())
    response = engine.response - engine.response.mean()
    columns = columns - columns.mean(axis=0)
    lengths = np.linalg.norm(columns, axis=0)
    if not (np.all(np.isfinite(lengths)) and np.all(lengths > 0.0)):
        return []
    price = problem.complexity_price * np.array([feature.complexity for feature in features])
    columns, response = columns / lengths, response / np.linalg.norm(response)
    kept = _eliminate(columns, response, price)
    if only_exact and _share_left(columns[:, kept], response) > _EXACT:
        return []
    return [features[j] for j in kept]


def _share_left(columns: Matrix, response: Column) -> float:
    rest = response - columns @ np.linalg.lstsq(columns, response, rcond=None)[0]
    return float(rest @ rest)


def _eliminate(columns: Matrix, response: Column, price: FloatArray) -> list[int]:
    """Leave out the column whose loss is most welcome, again and again."""

    def gain(chosen: list[int]) -> float:
        share = max(_share_left(columns[:, chosen], response), _ROUNDING)
        return float(-0.5 * response.size * np.log(share) - price[chosen].sum())

    kept = list(range(columns.shape[1]))
    best = gain(kept)
    while len(kept) > 1:
        options = [(gain(fewer), fewer) for j in kept if (fewer := [k for k in kept if k != j])]
        value, fewer = max(options, key=lambda option: option[0])
        if not value > best:
            break
        best, kept = value, fewer
    return kept
