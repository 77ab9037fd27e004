"""Sums of two or three simple features, all of them tried.

Step by step a sum is found only if one of its terms alone beats what looks like the whole, and
without noise there is nearly always something that does: a smooth function of one covariate is
approximated by many. All pairs of a thousand columns take milliseconds. Nothing of it is random,
and it only decides where chains look first.
"""

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import affine_mark
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.inverses import invertible_functions
from dbrm.evolution.sweep.law_columns import law_covariates, law_rows
from dbrm.evolution.sweep.levels import Index, Maker, build_levels, level_sizes
from dbrm.evolution.sweep.terms import Terms, functions_of_two
from dbrm.features import Feature, covariate
from dbrm.status import Status

__all__ = ["sweep_sums"]

# Squares that are left, and positions of the columns.
Subset = tuple[float, tuple[int, ...]]

# Simple features of which all pairs are tried, those of which all triples are, functions of two
# covariates among them, and largest complexity.
_PAIRED, _TRIPLED, _OF_TWO, _MOST_COMPLEXITY = 2_000, 400, 300, 4
# Sums of each size whose gain is looked at, and sums whose features are returned.
_LISTED, _TAKE = 60, 4
# Sums that one more term is tried beside, and the share of a column's squares beside them below
# which it is one of them.
_EXTENDED, _DEPENDENT = 20, 1e-10
# Smallest share of the variance that counts: less is rounding.
_ROUNDING = 1e-20


def sweep_sums(
    problem: Problem, max_complexity: int = _MOST_COMPLEXITY, pause: Pause = never
) -> list[Feature]:
    """The features of the sums of largest expected gain, best first; for Gaussian responses.

    None without powers, exponential or logarithm among the transforms: those are no laws.

    Parameters
    ----------
    max_complexity
        Of a simple feature; none are looked for if it is one.
    """
    engine = problem.engine
    if not isinstance(engine, GaussianEngine) or problem.table.n_columns == 0 or pause():
        return []
    if max_complexity < 2 or not invertible_functions(problem.grammar.transforms):
        return []
    rows = law_rows(problem)
    response = engine.response[rows]
    variation = float(np.sum((response - response.mean()) ** 2))
    if not variation > 0.0:
        return []
    candidates = _Candidates(problem, rows, min(max_complexity, _MOST_COMPLEXITY))
    columns, prices = candidates.columns, problem.complexity_price * candidates.complexity
    weight = np.ones(rows.size)

    def gain(subset: Subset) -> float:
        left, members = subset
        share = max(left / variation, _ROUNDING)
        return float(-0.5 * rows.size * np.log(share) - prices[list(members)].sum())

    found = best_sums(response, weight, columns, prices, 2, _LISTED, smallest=2)
    some = columns[:, :_TRIPLED], prices[:_TRIPLED]
    if not pause():
        found += best_sums(response, weight, *some, 3, _LISTED, smallest=3)
    for _, members in sorted(found, key=gain, reverse=True)[:_EXTENDED]:
        if pause():
            break
        found += _with_one_more(response, columns, prices, members)
    features: dict[int, Feature] = {}
    for _, members in sorted(found, key=gain, reverse=True)[:_TAKE]:
        for place in members:
            feature = problem.simplify(candidates.feature(place))
            whole, _, status = problem.column_of(feature)
            if status is Status.OK and problem.grammar.admits_law(whole):
                features.setdefault(whole.key, whole)
    return list(features.values())


def _with_one_more(
    response: Column, columns: Matrix, prices: FloatArray, members: tuple[int, ...]
) -> list[Subset]:
    """The sum with the column of largest gain beside it."""
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(columns)), columns[:, members]]))
    beside = columns - basis @ (basis.T @ columns)
    residual = response - basis @ (basis.T @ response)
    squares = np.einsum("nk,nk->k", beside, beside)
    usable = squares > _DEPENDENT * np.einsum("nk,nk->k", columns, columns)
    explained = (residual @ beside) ** 2 / np.where(usable, squares, np.inf)
    left = np.maximum(float(residual @ residual) - explained, 1e-300)
    worth = -0.5 * response.size * np.log(left) - prices
    best = int(np.argmax(np.where(usable, worth, -np.inf)))
    after = residual - beside[:, best] * (residual @ beside[:, best] / squares[best])
    return [(float(after @ after), (*members, best))] if usable[best] else []


class _Candidates:
    """Simple features and functions of two covariates, the simplest first.

    ``columns`` are divided by their largest absolute value; those that cannot be computed are left
    out, and of those that are equal up to an affine map all but the simplest.
    """

    def __init__(self, problem: Problem, rows: Index, most: int) -> None:
        names, transforms = law_covariates(problem), problem.grammar.transforms
        counts = np.cumsum(level_sizes(len(names), len(transforms), most))
        held = max(1, int(np.sum(counts <= _PAIRED)))
        levels = build_levels(problem.table, names, rows, transforms, held)
        self._maker = Maker(levels, names, transforms)
        # Where weights of projections are drawn at random none are given.
        fits = problem.grammar.fits_numbers
        plain = [g for g in transforms if fits and g.base is None and not g.affine]
        of_two = functions_of_two([covariate(name) for name in names], plain)
        more = Terms.of(of_two, problem.grammar.admits, problem.table.take(rows), _OF_TWO)
        self._of_two, sizes = more.features, [level.size for level in levels]
        self._n_simple = sum(sizes)
        columns = np.hstack([*(level.columns for level in levels), more.columns])
        complexity = np.concatenate([np.repeat(np.arange(1, held + 1), sizes), more.complexity])
        with np.errstate(all="ignore"):
            largest = np.max(np.abs(columns), axis=0)
        sound = np.flatnonzero(np.isfinite(largest) & (largest > 0.0))
        sound = sound[np.argsort(complexity[sound], kind="stable")]
        marks: dict[bytes, int] = {}
        for place in sound:
            marks.setdefault(affine_mark(columns[:, place]), int(place))
        self._places = np.array(list(marks.values()), dtype=np.int64)
        self.columns = columns[:, self._places] / largest[self._places]
        self.complexity = complexity[self._places]

    def feature(self, number: int) -> Feature:
        """The feature of a column."""
        place = int(self._places[number])
        if place < self._n_simple:
            return self._maker.feature(place)
        return self._of_two[place - self._n_simple]
