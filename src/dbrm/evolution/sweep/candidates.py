"""All simple features of a table, ranked beside a model by expected gain in log posterior.

Columns are held in single precision on some of the rows, as many as fit a number of cells; products
beyond that are scored pair by pair without being formed. It sees no exact evidence: what it ranks
first is to be scored again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, Matrix
from dbrm.evolution.algorithms.base import Pause
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.levels import Index, Level, Maker, Scored, build_levels, level_sizes
from dbrm.evolution.sweep.products import Subsets, draw_subsets, most_factors, product_columns
from dbrm.evolution.sweep.scores import Baselines, PairProducts
from dbrm.features import Feature, covariate, multiply

__all__ = ["SimpleFeatures"]

Single = npt.NDArray[np.float32]
# Expected gain of a feature, and how to build it.
Ranked = tuple[float, Callable[[], Feature]]

# Cells (rows times features) held at once, in all and as a share of data out of core, which are to
# need little memory beside themselves; and cells of products of many covariates, of which a search
# of fewer populations than so many has a share.
_MOST_CELLS, _OUT_OF_CORE_SHARE, _PRODUCT_CELLS = 20_000_000, 0.5, 8_000_000
_MANY_POPULATIONS = 10
# Largest complexity that is held as columns; of larger ones products are looked at.
_MOST_HELD = 5
# Rows on which features are ranked, and the fewest on which ranking is not too noisy.
_MOST_ROWS, _FEWEST_ROWS = 2_000, 1_000
# Most pairs of columns whose products are scored in one round.
_MOST_PAIRS = 3_000_000
# Fewer rows do not make room for more products: they could not tell them apart.
_FEW_ROWS = 200
# Smallest standard deviation of a column, relative to its largest absolute value, by precision.
_FLAT, _FLAT_SINGLE = 1e-9, 1e-6
# Share of a column's variance outside a span that single precision cannot tell from nothing.
_NEAR = 1e-5
# One of so many scores is looked at to find out which are among the best.
_ONE_OF = 8
# Columns converted at once.
_AT_ONCE = 256
# Covariates beyond the swept ones that are looked at together.
_OUTSIDERS = 1_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Products of features at two sets of positions, which together have this complexity."""

    products: PairProducts
    complexity: int
    left: Index
    right: Index

    @property
    def count(self) -> int:
        return self.left.size * self.right.size


class SimpleFeatures:
    """All features of at most some complexity over these covariates, on some of the rows.

    When `pause` returns true while columns are computed, complexities that are not done are left
    out. `complexity` is the largest of which all products are looked at, `unseen` says what is
    not.
    """

    def __init__(self, problem: Problem, names: list[str], most: int, pause: Pause) -> None:
        self._problem, self._names, self._pause = problem, names, pause
        n_rows, held = _fit_size(problem, len(names), most)
        transforms = problem.grammar.transforms
        self.rows: Index = np.linspace(0, problem.table.n_rows - 1, n_rows).astype(np.int64)
        levels = build_levels(problem.table, names, self.rows, transforms, held, pause)
        self._maker = Maker(levels, names, transforms)
        self._starts = np.cumsum([0, *(level.size for level in levels)])
        self._raw: list[Single] = []
        # Columns at unit length, block by block.
        self._held: list[Single] = []
        for level in levels:
            raw, unit = _to_single(level.columns)
            self._raw.append(raw)
            self._held.append(unit)
        self._pairs, self.complexity = self._pair_levels(levels, most)
        self.unseen: list[str] = []
        if self.complexity < most:
            rest = ", ".join(str(k) for k in range(self.complexity + 1, most + 1))
            self.unseen.append(f"features of complexity {' and '.join(rest.rsplit(', ', 1))}")
        self._subsets = self._many_factors()
        for part in self._subsets:
            self._held.append(product_columns(self._raw[0], part, _FLAT_SINGLE))
        self._prior = self._log_priors(len(levels))
        self.count = self._prior.size + sum(pairs.count for pairs in self._pairs)
        # On some of the rows the best of many candidates looks better than it is.
        thinned = self.rows.size < problem.n_rows
        self._noise = 2.0 * log(self.count) / self.rows.size if thinned else 0.0

    def _pair_levels(self, levels: list[Level], most: int) -> tuple[list["_Pairs"], int]:
        """Products of two levels that are too many to hold but not to score.

        Also the largest complexity of which all products are looked at.
        """
        held = len(levels)
        pairs: list[_Pairs] = []
        for total in range(held + 1, most + 1):
            for first in range(max(total - held, 1), total // 2 + 1):
                left, right = first - 1, total - first - 1
                if levels[left].size * levels[right].size > _MOST_PAIRS or self._pause():
                    return pairs, total - 1
                # Products that have a covariate as a factor are among those of the first pair.
                atoms_only = first > 1 and total == held + 1
                pairs.append(self._pairs_of(levels, left, right, atoms_only=atoms_only))
        return [part for part in pairs if part.count], most

    def _pairs_of(
        self, levels: list[Level], left: int, right: int, *, atoms_only: bool
    ) -> "_Pairs":
        columns, positions = [], []
        for k in (left, right):
            chosen = np.flatnonzero(levels[k].without_covariates)
            whole = np.arange(levels[k].size)
            columns.append(self._raw[k][:, chosen] if atoms_only else self._raw[k])
            positions.append(self._starts[k] + (chosen if atoms_only else whole))
        products = PairProducts(columns[0], columns[1] if left != right else None)
        return _Pairs(products, left + right + 2, *positions)

    def _many_factors(self) -> list[Subsets]:
        """Products of more covariates than the others have, by size."""
        largest = most_factors(self._problem.grammar, len(self._names))
        if largest > self.complexity and self._pause():
            self.unseen.append(f"products of more than {self.complexity} covariates")
            return []
        share = min(self._problem.budget.n_populations / _MANY_POPULATIONS, 1.0)
        count = int(share * _PRODUCT_CELLS) // max(self.rows.size, _FEW_ROWS)
        # The generator is the same in every run: the sweep is not random.
        rng = np.random.default_rng(0)
        return list(draw_subsets(rng, len(self._names), self.complexity + 1, largest, count))

    def _log_priors(self, n_levels: int) -> FloatArray:
        """Log prior of each column, from an example of each complexity."""
        counts = [*np.diff(self._starts), *(len(part) for part in self._subsets)]
        first = [*self._starts[:n_levels], *self._starts[-1] + np.cumsum([0, *counts[n_levels:]])]
        prior = self._problem.model_prior.feature_log_prior
        return np.concatenate(
            [
                np.full(count, prior(self._feature(int(start))))
                for start, count in zip(first, counts, strict=False)
                if count
            ]
        )

    def _feature(self, position: int) -> Feature:
        """The feature of a held column."""
        past = position - int(self._starts[-1])
        if past < 0:
            return self._maker.feature(position)
        for part in self._subsets:
            if past < len(part):
                return multiply(*(covariate(self._names[j]) for j in part[past]))
            past -= len(part)
        raise IndexError(position)

    def _pair(self, pairs: "_Pairs", i: int, j: int) -> Feature:
        left, right = int(pairs.left[i]), int(pairs.right[j])
        return multiply(self._maker.feature(left), self._maker.feature(right))

    def best(self, baselines: Baselines, count: int) -> list[list[Feature]]:
        """The features of largest expected gain beside each baseline, which is on these rows."""
        found = []
        shares = np.hstack([baselines.shares(columns) for columns in self._held])
        for k, score_test in enumerate(baselines.score_tests):
            gain = partial(self._gain, score_test.gain)
            ranked = list(self._best_held(gain, shares[k], count))
            if np.any(residual := baselines.residuals[:, k]):
                for pairs in self._pairs:
                    ranked += self._best_pairs(gain, residual, pairs, count)
                if len(self._names) < self._problem.table.n_columns:
                    ranked += self._best_outsiders(gain, residual, count)
            ranked = [pair for pair in ranked if pair[0] > -np.inf]
            ranked.sort(key=lambda pair: -pair[0])
            found.append([build() for _, build in ranked[:count]])
        return found

    def _gain(self, gain: Callable[[FloatArray], FloatArray], shares: Scored) -> FloatArray:
        """Expected gain in log evidence, without what the best of many explains by chance."""
        return gain(np.clip(shares.astype(np.float64) - self._noise, 0.0, 1.0))

    def _best_held(
        self, gain: Callable[[Scored], FloatArray], shares: FloatArray, count: int
    ) -> Iterator[Ranked]:
        usable = np.isfinite(shares)
        gains = np.where(usable, gain(np.where(usable, shares, 0.0)) + self._prior, -np.inf)
        # Those of the same gain in their order, as if all were sorted.
        least = np.partition(gains, -count)[-count] if count < gains.size else -np.inf
        some = np.flatnonzero(gains >= least)
        for p in some[np.argsort(-gains[some], kind="stable")[:count]].tolist():
            yield float(gains[p]), partial(self._feature, p)

    def _best_pairs(
        self,
        gain: Callable[[Scored], FloatArray],
        residual: FloatArray,
        pairs: "_Pairs",
        count: int,
    ) -> Iterator[Ranked]:
        """The best products of a feature of one level and one of another."""
        n_right = pairs.right.size
        place, value = np.empty(0, np.int64), np.empty(0, np.float32)
        for start, first, shares in pairs.products.shares(residual):
            flat = shares.ravel()
            # Of later blocks few are better than the best so far.
            least = value[-1] if value.size == count else _least_of_best(flat, count)
            some = np.flatnonzero(flat >= least)
            left, right = np.divmod(some, shares.shape[1])
            place = np.concatenate([place, (start + left) * n_right + first + right])
            value = np.concatenate([value, flat[some]])
            order = np.lexsort((place, -value))[:count]
            place, value = place[order], value[order]
            if self._pause() and start + shares.shape[0] < pairs.left.size:
                self.unseen.append(f"some products of complexity {pairs.complexity}")
                break
        price = self._problem.model_prior.feature_log_prior(self._pair(pairs, 0, 0))
        for value_, at in zip(gain(value) + price, place.tolist(), strict=True):
            yield float(value_), partial(self._pair, pairs, *divmod(at, n_right))

    def _best_outsiders(
        self, gain: Callable[[Scored], FloatArray], residual: FloatArray, count: int
    ) -> Iterator[Ranked]:
        """All covariates, also those too many to be swept, and their products with the swept.

        A covariate without an effect of its own can still matter beside the leaders, or in
        a product with a strong one.
        """
        table, prior = self._problem.table, self._problem.model_prior.feature_log_prior
        left = np.hstack([np.ones((residual.size, 1), np.float32), self._raw[0]])
        for start in range(0, table.n_columns, _OUTSIDERS):
            if self._pause():
                self.unseen.append("some of the covariates")
                return
            names = table.names[start : start + _OUTSIDERS]
            right, _ = _to_single(table.values[self.rows, start : start + _OUTSIDERS])
            blocks = PairProducts(left, right).shares(residual)
            shares = np.vstack([block for _, _, block in blocks])
            best = np.argsort(-shares, axis=None, kind="stable")[:count]
            rows, columns = np.unravel_index(best, shares.shape)
            for value, i, j in zip(gain(shares[rows, columns]), rows, columns, strict=True):
                partner = [self._maker.feature(int(i) - 1)] if i else []
                feature = multiply(covariate(names[j]), *partner)
                yield float(value) + prior(feature), partial(_itself, feature)

    def inside(self, baselines: Baselines, count: int) -> list[Feature]:
        """Features near the span of a model, simplest first."""
        with np.errstate(all="ignore"):
            outside = np.concatenate([baselines.outside(columns) for columns in self._held])
            near = np.flatnonzero(outside < _NEAR)
        near = near[np.argsort(-self._prior[near], kind="stable")]
        return [self._feature(int(p)) for p in near[:count]]


def _least_of_best(values: Scored, count: int) -> float:
    """A number that the best `count` values reach, and not many others: of some of them."""
    some = values[::_ONE_OF]
    some = some if some.size >= count else values
    return float(np.partition(some, -count)[-count]) if some.size >= count else -np.inf


def _itself(feature: Feature) -> Feature:
    return feature


def _fit_size(problem: Problem, n_covariates: int, most: int) -> tuple[int, int]:
    """Number of rows, and of complexities held as columns, that fit the limits."""
    held = min(most, _MOST_HELD)
    sizes = level_sizes(n_covariates, len(problem.grammar.transforms), held)
    n_rows = problem.table.n_rows
    fewest = min(n_rows, _FEWEST_ROWS)
    cells = _MOST_CELLS
    if problem.out_of_core is not None:
        share = _OUT_OF_CORE_SHARE * problem.n_rows * problem.table.n_columns
        cells = min(cells, int(share))
    while len(sizes) > 1 and sum(sizes) * fewest > cells:
        sizes.pop()
    rows = max(fewest, min(n_rows, _MOST_ROWS, cells // max(sum(sizes), 1)))
    return rows, len(sizes)


def _to_single(columns: Matrix) -> tuple[Single, Single]:
    """Columns divided by their largest absolute value, and centred at unit length.

    NaN where a column is not finite, or, at unit length, constant.
    """
    raw = np.empty(columns.shape, dtype=np.float32)
    unit = np.empty(columns.shape, dtype=np.float32)
    for start in range(0, columns.shape[1], _AT_ONCE):
        part = np.array(columns[:, start : start + _AT_ONCE], order="C")
        with np.errstate(all="ignore"):
            largest = np.maximum(np.max(part, axis=0), -np.min(part, axis=0))
            part /= np.where(largest > 0, largest, np.nan)
            raw[:, start : start + _AT_ONCE] = part
            part -= part.mean(axis=0)
            length = np.sqrt(np.einsum("nk,nk->k", part, part))
            part /= np.where(length > _FLAT * sqrt(len(part)), length, np.nan)
            unit[:, start : start + _AT_ONCE] = part
    return raw, unit
