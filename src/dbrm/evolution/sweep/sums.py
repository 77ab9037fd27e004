"""Sums of two or three simple features, all of them tried.

Step by step a sum is found only if one of its terms alone beats what looks like the whole, and
without noise there is nearly always something that does: a smooth function of one covariate is
approximated by many. All pairs of a thousand columns take milliseconds. Nothing of it is random,
and it only decides where chains look first.
"""

import numpy as np

from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.levels import Index, Maker, build_levels, level_sizes
from dbrm.evolution.sweep.projections import law_covariates, law_rows
from dbrm.evolution.sweep.terms import Terms, functions_of_two
from dbrm.features import Feature, covariate
from dbrm.status import Status

__all__ = ["sweep_sums"]

# Simple features of which all pairs are tried, those of which all triples are, functions of two
# covariates among them, and largest complexity.
_PAIRED, _TRIPLED, _OF_TWO, _MOST_COMPLEXITY = 2_000, 400, 300, 4
# Sums of each size whose gain is looked at, and sums whose features are returned.
_LISTED, _TAKE = 60, 4
# Smallest share of the variance that counts: less is rounding.
_ROUNDING = 1e-20


def sweep_sums(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The features of the sums of largest expected gain, best first; for Gaussian responses."""
    engine = problem.engine
    if not isinstance(engine, GaussianEngine) or problem.table.n_columns == 0 or pause():
        return []
    rows = law_rows(problem)
    response = engine.response[rows]
    variation = float(np.sum((response - response.mean()) ** 2))
    if not variation > 0.0:
        return []
    candidates = _Candidates(problem, rows)
    columns, prices = candidates.columns, problem.complexity_price * candidates.complexity
    weight = np.ones(rows.size)
    found: list[tuple[float, tuple[int, ...]]] = []
    for size, count in ((2, columns.shape[1]), (3, _TRIPLED)):
        if pause():
            break
        some = columns[:, :count], prices[:count]
        found += best_sums(response, weight, *some, size, _LISTED, smallest=size)

    def gain(subset: tuple[float, tuple[int, ...]]) -> float:
        left, members = subset
        share = max(left / variation, _ROUNDING)
        return float(-0.5 * rows.size * np.log(share) - prices[list(members)].sum())

    features: dict[int, Feature] = {}
    for _, members in sorted(found, key=gain, reverse=True)[:_TAKE]:
        for place in members:
            feature = problem.simplify(candidates.feature(place))
            whole, _, status = problem.column_of(feature)
            if status is Status.OK and problem.grammar.admits_law(whole):
                features.setdefault(whole.key, whole)
    return list(features.values())


class _Candidates:
    """Simple features and functions of two covariates, the simplest first.

    ``columns`` are divided by their largest absolute value; those that cannot be computed are left
    out.
    """

    def __init__(self, problem: Problem, rows: Index) -> None:
        names, transforms = law_covariates(problem), problem.grammar.transforms
        counts = np.cumsum(level_sizes(len(names), len(transforms), _MOST_COMPLEXITY))
        held = max(1, int(np.sum(counts <= _PAIRED)))
        levels = build_levels(problem.table, names, rows, transforms, held)
        self._maker = Maker(levels, names, transforms)
        plain = [g for g in transforms if g.base is None and not g.affine]
        of_two = functions_of_two([covariate(name) for name in names], plain)
        more = Terms.of(of_two, problem.grammar, problem.table.take(rows), _OF_TWO)
        self._of_two, sizes = more.features, [level.size for level in levels]
        self._n_simple = sum(sizes)
        columns = np.hstack([*(level.columns for level in levels), more.columns])
        complexity = np.concatenate([np.repeat(np.arange(1, held + 1), sizes), more.complexity])
        with np.errstate(all="ignore"):
            largest = np.max(np.abs(columns), axis=0)
        sound = np.flatnonzero(np.isfinite(largest) & (largest > 0.0))
        self._places = sound[np.argsort(complexity[sound], kind="stable")]
        self.columns = columns[:, self._places] / largest[self._places]
        self.complexity = complexity[self._places]

    def feature(self, number: int) -> Feature:
        """The feature of a column."""
        place = int(self._places[number])
        if place < self._n_simple:
            return self._maker.feature(place)
        return self._of_two[place - self._n_simple]
