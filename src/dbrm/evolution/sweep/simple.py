r"""The low-complexity sweep: every simple feature is scored once before the search.

All canonical features up to a small complexity (covariates, modifications, products;
no projections) are ranked by their expected gain in log posterior: first beside the null
model, then beside the model of the leaders found so far, until no gain exceeds the cost in
the prior. Columns in memory are limited to a number of cells; products beyond that are
scored pair by pair without being formed. The best features form a pool that every chain draws
from. The sweep is deterministic, and its ranking is never reported: it only decides where
chains look first.
"""

from math import log

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.data import to_unit_length
from dbrm.evidence import ScoreTest
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.levels import Index, Level, Maker, build_levels, level_sizes
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.scores import PairProducts, rank_again
from dbrm.features import Feature, covariate, multiply, shortened

__all__ = ["sweep_features"]

# Cells (rows times features) held at once, in all and as a share of tall data, which is to need
# little memory beside itself; and rows below which screening is too noisy.
_MOST_CELLS, _TALL_SHARE = 20_000_000, 0.25
# Features of tall data, found on few rows, that are ranked again on the whole sample for each
# one that is taken.
_WIDER = 3
# Smallest standard deviation of a column, relative to its largest absolute value.
_FLAT = 1e-9
_FEWEST_ROWS = 1_000
# Most pairs of columns whose products are scored in one round.
_MOST_PAIRS = 3_000_000
# Features taken in the first round of ranking and in each of the later ones.
_TAKE_FIRST, _TAKE_LATER, _ROUNDS = 60, 15, 14
# Passes over the leaders to exchange them, and most features weighed against each other.
_EXCHANGES, _MOST_CANDIDATES = 2, 20
# Most features taken in because they are combinations of the leaders.
_MOST_COMBINED = 8
# Share of a column's variance outside a span below which it counts as inside.
_IN_SPAN = 1e-9
# With more covariates than this the sweep uses those most correlated with the response.
_MOST_COVARIATES = 60
# Covariates looked at together when there are more.
_OUTSIDERS = 1_000


def sweep_features(problem: Problem, max_complexity: int, pause: Pause = never) -> list[Feature]:
    """Return the features of largest expected gain and at most this complexity, best first.

    The complexity is lowered, and rows are thinned out evenly, until the work fits the
    limits of this module. When `pause` returns true, those found until then are returned.
    """
    grammar = problem.grammar
    most = min(max_complexity, grammar.max_complexity)
    if most < 2 or problem.table.n_columns == 0 or pause():
        return []
    names = _strongest(problem, _MOST_COVARIATES)
    sizes = level_sizes(len(names), len(grammar.transforms), most)
    rows_wanted = min(problem.table.n_rows, _FEWEST_ROWS)
    cells = _MOST_CELLS
    if problem.out_of_core is not None:
        cells = min(cells, int(_TALL_SHARE * problem.n_rows * problem.table.n_columns))
    while len(sizes) > 1 and sum(sizes) * rows_wanted > cells:
        sizes.pop()
    n_rows = max(rows_wanted, min(problem.table.n_rows, cells // max(sum(sizes), 1)))
    rows = np.linspace(0, problem.table.n_rows - 1, n_rows).astype(np.int64)
    levels = build_levels(problem.table, names, rows, grammar.transforms, len(sizes))
    maker = Maker(levels, names, grammar.transforms)
    return _Ranking(problem, maker, levels, rows, most, pause).pool()


def _strongest(problem: Problem, most: int) -> list[str]:
    """Names of the covariates, the strongest ones if there are too many."""
    names = list(problem.table.names)
    if len(names) <= most:
        return names
    strength = problem.marginal_strength()
    return [names[j] for j in np.sort(np.argsort(-strength, kind="stable")[:most])]


class _Ranking:
    """Ranks the swept features by expected gain and builds the best ones."""

    def __init__(
        self,
        problem: Problem,
        maker: Maker,
        levels: list[Level],
        rows: Index,
        most: int,
        pause: Pause,
    ) -> None:
        self._problem = problem
        self._pause = pause
        self._maker = maker
        self._rows = rows
        self._starts = np.cumsum([0, *(level.size for level in levels)])
        self._raw = [_scale(level.columns, in_place=True) for level in levels]
        self._columns = to_unit_length(np.hstack(self._raw), smallest=_FLAT, in_place=True)
        self._sound = ~np.isnan(self._columns[0])
        self._prior = np.concatenate(
            [
                np.full(level.size, self._example(start))
                for level, start in self._with_starts(levels)
                if level.size
            ]
        )
        self._pairs = self._pair_levels(len(levels), most)
        self._products = {(a, b): PairProducts(self._raw[a], self._raw[b]) for a, b in self._pairs}
        n_candidates = self._columns.shape[1] + sum(
            self._raw[a].shape[1] * self._raw[b].shape[1] for a, b in self._pairs
        )
        # On thinned-out rows the best of many candidates looks better than it is.
        thinned = rows.size < problem.n_rows
        self._noise = 2.0 * log(n_candidates) / rows.size if thinned else 0.0
        self._tried = n_candidates

    def _with_starts(self, levels: list[Level]) -> list[tuple[Level, int]]:
        return [(level, int(start)) for level, start in zip(levels, self._starts, strict=False)]

    def _example(self, position: int, *others: int) -> float:
        """Prior of a class of features, taken from one example."""
        feature = multiply(*(self._maker.feature(p) for p in (position, *others)))
        return self._problem.model_prior.feature_log_prior(feature)

    def _pair_levels(self, held: int, most: int) -> list[tuple[int, int]]:
        """Pairs of levels whose products are too many to hold but not to score."""
        pairs = []
        for total in range(held + 1, most + 1):
            for first in range(1, total // 2 + 1):
                second = total - first
                if second > held:
                    continue
                n_pairs = self._raw[first - 1].shape[1] * self._raw[second - 1].shape[1]
                if 0 < n_pairs <= _MOST_PAIRS:
                    pairs.append((first - 1, second - 1))
        return pairs

    def pool(self) -> list[Feature]:
        """Find leaders one by one, exchange each for something better, collect the best.

        The model of the leaders comes first in the pool, then other features of large expected
        gain, in the order in which they were found.
        """
        pool = SweepPool(self._problem)
        leaders = self._find_leaders(pool)
        for _ in range(_EXCHANGES):
            before = set(leaders)
            leaders = self._exchange(pool, leaders)
            if set(leaders) == before or self._pause():
                break
        return pool.features(first=self._shorten(pool, leaders))

    def _find_leaders(self, pool: SweepPool) -> list[int]:
        """Rank beside the model so far and add the best feature, while its gain is positive."""
        leaders: list[int] = []
        for round_ in range(_ROUNDS):
            take = _TAKE_LATER if round_ else _TAKE_FIRST
            ranked = self._rank(pool.columns(leaders), 3 * take)
            if not ranked or (round_ and ranked[0][0] <= 0.0):
                break
            features = [feature for _, feature in ranked]
            best = pool.add(features, 1, fresh_only=False)
            if not best or best[0] in leaders:
                break
            leaders.extend(best)
            pool.add(features, take)
            if self._pause():
                break
        return pool.best_subset(leaders, leaders)

    def _exchange(self, pool: SweepPool, leaders: list[int]) -> list[int]:
        """Try to replace every leader once, and keep the best model."""
        combined = pool.add(self._combined(pool.columns(leaders)), _MOST_COMBINED)
        candidates = [*leaders, *combined]
        for left_out in leaders:
            if self._pause():
                break
            others = [leader for leader in leaders if leader != left_out]
            ranked = self._rank(pool.columns(others), _TAKE_LATER)
            known = pool.add([feature for _, feature in ranked], _TAKE_LATER, fresh_only=False)
            candidates.extend(number for number in known[:2] if number not in candidates)
        return pool.best_subset(candidates[:_MOST_CANDIDATES], leaders)

    def _shorten(self, pool: SweepPool, leaders: list[int]) -> list[int]:
        """Take functions and factors away from leaders where that makes the model more probable.

        The ranking beside a GLM is approximate: it prefers features that level off,
        sin(x*z) to x*z, and dozens of these can leave no room for the feature in them.
        """
        leaders = list(leaders)
        for place, best in enumerate(leaders):
            others = [*leaders[:place], *leaders[place + 1 :]]
            while not self._pause():
                shorter = shortened(pool.feature(best))
                found = pool.add(shorter, _MOST_CANDIDATES, fresh_only=False)
                better = pool.best_of(others, [best, *(n for n in found if n not in others)])
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
        basis, _ = np.linalg.qr(to_unit_length(model[self._rows], smallest=_FLAT))
        left = 1.0 - np.einsum("kn,kn->n", basis.T @ self._columns, basis.T @ self._columns)
        inside = np.flatnonzero(self._sound & (left < _IN_SPAN))
        inside = inside[np.argsort(-self._prior[inside], kind="stable")]
        return [self._maker.feature(int(p)) for p in inside[:_MOST_CANDIDATES]]

    def _rank(self, model: Matrix, count: int) -> list[tuple[float, Feature]]:
        """The features of largest expected gain beside a model with these columns, best first."""
        score_test = self._problem.engine.score_test(model)
        residual = score_test.residual[self._rows]
        residual = residual - residual.mean()
        basis = np.empty((residual.size, 0))
        if model.shape[1]:
            basis, _ = np.linalg.qr(to_unit_length(model[self._rows], smallest=_FLAT))
            residual = residual - basis @ (basis.T @ residual)
        if not float(residual @ residual) > 0:
            return []
        expected_gain = self._expected_gain(score_test, residual, basis)
        wide = count if self._problem.out_of_core is None else _WIDER * count
        best = np.argsort(-expected_gain, kind="stable")[:wide]
        ranked = [(float(expected_gain[p]), self._maker.feature(int(p))) for p in best]
        for first, second in self._pairs:
            ranked.extend(self._rank_products(score_test, residual, first, second, wide))
        if self._raw[0].shape[1] < self._problem.table.n_columns:
            ranked.extend(self._rank_outsiders(score_test, residual, wide))
        ranked = _best_first(ranked)[:wide]
        if self._problem.out_of_core is not None:
            features = [feature for _, feature in ranked]
            ranked = _best_first(
                rank_again(self._problem, score_test, model, features, self._tried)
            )
        return ranked[:count]

    def _expected_gain(self, score_test: ScoreTest, residual: Column, basis: Matrix) -> FloatArray:
        """Expected gain in log posterior of each feature in memory, beside the leaders."""
        left = 1.0 - np.einsum("kn,kn->n", basis.T @ self._columns, basis.T @ self._columns)
        usable = self._sound & (left > 1e-6)
        with np.errstate(all="ignore"):
            share = (residual @ self._columns) ** 2 / (left * float(residual @ residual))
        share = np.where(usable, np.clip(share - self._noise, 0.0, 1.0), 0.0)
        return np.where(usable, score_test.gain(share) + self._prior, -np.inf)

    def _rank_outsiders(
        self, score_test: ScoreTest, residual: Column, count: int
    ) -> list[tuple[float, Feature]]:
        """All covariates, also those too many to be swept, and their products with the swept.

        A covariate without an effect of its own can still matter beside the leaders, or in
        a product with a strong one.
        """
        table = self._problem.table
        left = np.hstack([np.ones((residual.size, 1)), self._raw[0]])
        ranked: list[tuple[float, Feature]] = []
        for start in range(0, table.n_columns, _OUTSIDERS):
            names = table.names[start : start + _OUTSIDERS]
            right = _scale(table.values[self._rows, start : start + _OUTSIDERS])
            blocks = PairProducts(left, right).shares(residual)
            shares = np.vstack([block for _, block in blocks])
            best = np.argsort(-shares, axis=None, kind="stable")[:count]
            rows, columns = np.unravel_index(best, shares.shape)
            gains = score_test.gain(np.clip(shares[rows, columns] - self._noise, 0.0, 1.0))
            for gain, i, j in zip(gains, rows, columns, strict=True):
                partner = [self._maker.feature(int(i) - 1)] if i else []
                feature = multiply(covariate(names[j]), *partner)
                prior = self._problem.model_prior.feature_log_prior(feature)
                ranked.append((float(gain) + prior, feature))
        return ranked

    def _rank_products(
        self, score_test: ScoreTest, residual: Column, first: int, second: int, count: int
    ) -> list[tuple[float, Feature]]:
        """The best products of a feature of one level and one of another."""
        right = self._raw[second]
        found: list[tuple[float, int, int]] = []
        for start, shares in self._products[first, second].shares(residual):
            flat = shares.ravel()
            best = np.argpartition(-flat, min(count, flat.size - 1))[:count]
            found.extend(
                (float(flat[k]), start + int(k) // right.shape[1], int(k) % right.shape[1])
                for k in best
            )
        found.sort(reverse=True)
        found = found[:count]
        shares = np.clip(np.array([share for share, _, _ in found]) - self._noise, 0.0, 1.0)
        gains = score_test.gain(shares) + self._example(
            int(self._starts[first]), int(self._starts[second])
        )
        return [
            (
                float(gain),
                multiply(
                    self._maker.feature(int(self._starts[first]) + i),
                    self._maker.feature(int(self._starts[second]) + j),
                ),
            )
            for gain, (_, i, j) in zip(gains, found, strict=True)
        ]


def _best_first(ranked: list[tuple[float, Feature]]) -> list[tuple[float, Feature]]:
    """In the order of expected gain, without those that have none."""
    finite = [(value, feature) for value, feature in ranked if np.isfinite(value)]
    return sorted(finite, key=lambda pair: (-pair[0], pair[1].canonical))


def _scale(columns: Matrix, *, in_place: bool = False) -> Matrix:
    """Columns divided by their largest absolute value; NaN where that is not finite."""
    with np.errstate(all="ignore"):
        largest = np.maximum(np.max(columns, axis=0), -np.min(columns, axis=0))
        unit = np.where(largest > 0, largest, np.nan)
        return np.divide(columns, unit, out=columns if in_place else None)
