r"""The low-complexity sweep: every simple feature is scored once before the search.

All canonical features up to a small complexity (covariates, modifications, products;
no projections), and products of many distinct covariates, are ranked by their expected gain in
log posterior: first beside the null model, then beside the model of the leaders found so far,
until no gain exceeds the cost in the prior. The best features form a pool that every chain draws
from. The sweep is deterministic, and its ranking is never reported: it only decides where
chains look first.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log

import numpy as np

from dbrm._typing import Matrix
from dbrm.data import to_unit_length
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.candidates import SimpleFeatures
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.scores import Baselines
from dbrm.features import ColumnCache, Feature, fit_knots, shortened

__all__ = ["sweep_features"]

# Rows on which the best candidates are compared; with more of them, evenly spaced ones.
_MOST_ROWS = 10_000
# Features taken in the first round of ranking and in each of the later ones.
_TAKE_FIRST, _TAKE_LATER, _ROUNDS = 60, 15, 14
# Features scored again for each one that is taken.
_WIDER = 3
# Passes over the leaders to exchange them, populations of a chain for each (a short search has a
# short sweep), and most features weighed against each other.
_EXCHANGES, _POPULATIONS_PER_PASS, _MOST_CANDIDATES = 2, 5, 20
# Most features taken in because they are combinations of the leaders.
_MOST_COMBINED = 8
# Share of a column's variance outside a span below which it counts as inside.
_IN_SPAN = 1e-9
# With more covariates than this the sweep uses those most correlated with the response.
_MOST_COVARIATES = 60
# Columns scored again at once.
_AT_ONCE = 64


def sweep_features(
    problem: Problem,
    max_complexity: int,
    pause: Pause = never,
    note: Callable[[str], None] | None = None,
) -> list[Feature]:
    """Return the features of largest expected gain and at most this complexity, best first.

    The complexity is lowered, and rows are thinned out evenly, until the work fits the
    limits of this package. When `pause` returns true, those found until then are returned.
    `note` is told what was not looked at, for either reason.
    """
    most = min(max_complexity, problem.grammar.max_complexity)
    if most < 2 or problem.table.n_columns == 0:
        return []
    thinned = _thin(problem)
    candidates = SimpleFeatures(thinned, _strongest(thinned, _MOST_COVARIATES), most, pause)
    sweep = _Sweep(thinned, candidates, pause, problem.n_rows)
    found = sweep.features()
    unseen = list(dict.fromkeys([*candidates.unseen, *sweep.unseen]))
    if note is not None and unseen:
        note("; ".join(unseen))
    # Numbers in features (knots, centres, scales) come from all rows.
    cache = ColumnCache()
    return [fit_knots(feature, problem.table, cache) for feature in found]


def _thin(problem: Problem) -> Problem:
    """The same problem on evenly spaced rows, if there are many."""
    n_rows = problem.table.n_rows
    rows = np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.int64)
    engine = problem.engine.take(rows) if rows.size < n_rows else None
    if engine is None:
        return problem
    rule = problem.information
    return replace(
        problem,
        table=problem.table.take(rows),
        engine=engine,
        information=None if rule is None else replace(rule, weights=rule.weights[rows]),
    )


def _strongest(problem: Problem, most: int) -> list[str]:
    """Names of the covariates, the strongest ones if there are too many."""
    names = list(problem.table.names)
    if len(names) <= most:
        return names
    strength = problem.marginal_strength()
    return [names[j] for j in np.sort(np.argsort(-strength, kind="stable")[:most])]


def _counted(count: int) -> str:
    return "feature" if count == 1 else f"{count} features"


class _Sweep:
    """Finds leaders among the candidates, and collects what ranks high beside them."""

    def __init__(
        self, problem: Problem, candidates: SimpleFeatures, pause: Pause, n_rows: int
    ) -> None:
        self._problem = problem
        self._candidates = candidates
        self._pause = pause
        self._pool = SweepPool(problem)
        # On some of the rows the best of many candidates looks better than it is.
        thinned = problem.table.n_rows < n_rows
        self._noise = 2.0 * log(candidates.count) / problem.table.n_rows if thinned else 0.0
        self.unseen: list[str] = []

    def features(self) -> list[Feature]:
        """Find leaders one by one, exchange each for something better, collect the best.

        The model of the leaders comes first in the pool, then other features of large expected
        gain, in the order in which they were found.
        """
        leaders = self._find_leaders()
        n_populations = self._problem.budget.n_populations
        for _ in range(min(_EXCHANGES, n_populations // _POPULATIONS_PER_PASS)):
            before = set(leaders)
            leaders = self._exchange(leaders)
            if set(leaders) == before or self._pause():
                break
        return self._pool.features(first=self._shorten(leaders))

    def _find_leaders(self) -> list[int]:
        """Rank beside the model so far and add the best feature, while its gain is positive."""
        pool = self._pool
        leaders: list[int] = []
        for round_ in range(_ROUNDS):
            take = _TAKE_LATER if round_ else _TAKE_FIRST
            (ranked,) = self._rank(pool.columns(leaders), [None], _WIDER * take)
            if not ranked or (round_ and ranked[0][0] <= 0.0):
                break
            features = [feature for _, feature in ranked]
            best = pool.add(features, 1, fresh_only=False)
            if not best or best[0] in leaders:
                break
            leaders.extend(best)
            pool.add(features, take)
            if self._pause():
                self.unseen.append(f"what fits beside the best {_counted(len(leaders))}")
                break
        return pool.best_subset(leaders, leaders)

    def _exchange(self, leaders: list[int]) -> list[int]:
        """Try to replace every leader once, and keep the best model."""
        pool = self._pool
        if not leaders or self._pause():
            return leaders
        model = pool.columns(leaders)
        candidates = [*leaders, *pool.add(self._combined(model), _MOST_COMBINED)]
        for ranked in self._rank(model, range(len(leaders)), _TAKE_LATER):
            features = [feature for _, feature in ranked]
            known = pool.add(features, _TAKE_LATER, fresh_only=False)
            candidates.extend(number for number in known[:2] if number not in candidates)
        return pool.best_subset(candidates[:_MOST_CANDIDATES], leaders)

    def _shorten(self, leaders: list[int]) -> list[int]:
        """Take functions and factors away from leaders where that makes the model more probable.

        The ranking beside a GLM is approximate: it prefers features that level off,
        sin(x*z) to x*z, and dozens of these can leave no room for the feature in them.
        """
        pool, leaders = self._pool, list(leaders)
        for place, best in enumerate(leaders):
            others = [*leaders[:place], *leaders[place + 1 :]]
            while not self._pause():
                shorter = shortened(pool.feature(best))
                found = pool.add(shorter, _MOST_CANDIDATES, fresh_only=False)
                options = [n for n in found if n not in others and n != best]
                if not options:
                    break
                better = pool.best_of(others, [best, *options])
                if better == best:
                    break
                best = better
            leaders[place] = best
        return leaders

    def _combined(self, model: Matrix) -> list[Feature]:
        """Features in the span of those with these columns, simplest first.

        One of them may say alone what several leaders say together: x and x*z span x*not(z).
        """
        if model.shape[1] < 2:
            return []
        baselines = Baselines(self._problem, model, [])
        near = self._candidates.inside(baselines.on(self._candidates.rows), _MOST_CANDIDATES)
        found = []
        for feature in near:
            pair = self._pool.evaluate(feature)
            if pair is not None:
                column = to_unit_length(pair[1][:, None], fill=0.0)
                if baselines.outside(column)[0] < _IN_SPAN:
                    found.append(feature)
        return found

    def _rank(
        self, model: Matrix, left_out: Sequence[int | None], count: int
    ) -> list[list[tuple[float, Feature]]]:
        """The features of largest expected gain beside a model or parts of it, best first.

        They are found on the rows of the candidates, and scored again on all of them.
        """
        baselines = Baselines(self._problem, model, left_out)
        found = self._candidates.best(baselines.on(self._candidates.rows), count)
        gains = self._gains(baselines, [feature for features in found for feature in features])
        return [
            sorted(
                ((gains[f.key][k], f) for f in features if gains[f.key][k] > -np.inf),
                key=lambda pair: (-pair[0], pair[1].canonical),
            )
            for k, features in enumerate(found)
        ]

    def _gains(self, baselines: Baselines, features: list[Feature]) -> dict[int, list[float]]:
        """Expected gain in log posterior of each feature beside each baseline, by its key."""
        prior = self._problem.model_prior.feature_log_prior
        n_baselines = len(baselines.score_tests)
        gains = {feature.key: [-np.inf] * n_baselines for feature in features}
        unique = list({feature.key: feature for feature in features}.values())
        for start in range(0, len(unique), _AT_ONCE):
            if start and self._pause():
                break
            pairs = [(f, self._pool.evaluate(f)) for f in unique[start : start + _AT_ONCE]]
            columns = [pair[1] for _, pair in pairs if pair is not None]
            known = [f for f, pair in pairs if pair is not None]
            if not known:
                continue
            shares = baselines.shares(to_unit_length(np.column_stack(columns), fill=0.0))
            for k, score_test in enumerate(baselines.score_tests):
                usable = np.isfinite(shares[k])
                share = np.where(usable, np.clip(shares[k] - self._noise, 0.0, 1.0), 0.0)
                found = np.where(usable, score_test.gain(share), -np.inf)
                for feature, gain in zip(known, found, strict=True):
                    gains[feature.key][k] = float(gain) + prior(feature)
        return gains
