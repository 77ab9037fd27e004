r"""The low-complexity sweep: every simple feature is looked at once before the search.

All canonical features up to a small complexity (covariates, modifications, products;
no projections) are computed column by column in blocks, on at most a fixed number of
cells, and ranked by the log posterior they promise to add: first to the null model,
then to the model of the leaders found so far. The best form a pool that every chain
draws from. Nothing of this is random, and the ranking is never reported: it only
decides where chains look first.
"""

from dataclasses import dataclass
from math import comb
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evolution.problem import Grammar, Problem
from dbrm.evolution.registry import Registry
from dbrm.features import Feature, covariate, evaluate, fit_knots, modify, multiply
from dbrm.status import Status

__all__ = ["simple_features", "sweep_features"]

# Cells (rows times features) held at once, and rows below which screening is too noisy.
_MOST_CELLS = 12_000_000
_FEWEST_ROWS = 250
# Rounds of ranking (the null model, then one more leader each) and features taken from each.
_TAKE = (60, 20, 20, 20)
# With more covariates than this the sweep uses those most correlated with the response.
_MOST_COVARIATES = 60

Index = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """All features of one complexity: columns, how each was made, its largest atom.

    ``made[:, 0]`` is the transform's number, or -1 for a product, -2 for a covariate;
    ``made[:, 1:]`` are the positions of what it was made from. Positions count over all
    levels. An atom is a feature that is not a product; a product is generated once, by
    multiplying with its largest atom last.
    """

    columns: Matrix
    made: Index
    largest_atom: Index


def sweep_features(problem: Problem, max_complexity: int) -> list[Feature]:
    """Return the most promising features of at most this complexity, best first.

    The complexity is lowered, and rows are thinned out evenly, until the work fits the
    limits of this module.
    """
    grammar = problem.grammar
    most = min(max_complexity, grammar.max_complexity)
    if most < 2 or problem.table.n_columns == 0:
        return []
    names = _strongest(problem, _MOST_COVARIATES)
    sizes = _level_sizes(len(names), len(grammar.transforms), most)
    rows_wanted = min(problem.table.n_rows, _FEWEST_ROWS)
    while len(sizes) > 1 and sum(sizes) * rows_wanted > _MOST_CELLS:
        sizes.pop()
    n_rows = max(rows_wanted, min(problem.table.n_rows, _MOST_CELLS // max(sum(sizes), 1)))
    rows = np.linspace(0, problem.table.n_rows - 1, n_rows).astype(np.int64)
    levels = _build_levels(problem, names, rows, len(sizes))
    return _Ranking(problem, names, levels, rows).pool()


def simple_features(problem: Problem, max_complexity: int) -> tuple[list[Feature], Matrix]:
    """Return every canonical feature of at most this complexity, with its training column.

    For exact enumeration: whatever work and memory that takes. Some columns may not be
    finite, and some features may share a column.
    """
    names, rows = list(problem.table.names), np.arange(problem.table.n_rows)
    levels = _build_levels(problem, names, rows, max_complexity)
    ranking = _Ranking(problem, names, levels, rows)
    columns = np.hstack([level.columns for level in levels])
    features = [ranking.feature(position) for position in range(columns.shape[1])]
    return [fit_knots(feature, problem.table) for feature in features], columns


def _strongest(problem: Problem, most: int) -> list[str]:
    """Names of the covariates, the strongest ones if there are too many."""
    names = list(problem.table.names)
    if len(names) <= most:
        return names
    strength = problem.marginal_strength()
    return [names[j] for j in np.sort(np.argsort(-strength, kind="stable")[:most])]


def _level_sizes(n_covariates: int, n_transforms: int, most: int) -> list[int]:
    """Number of canonical features of complexity 1, 2, ..., most."""
    atoms, totals = [n_covariates], [n_covariates]
    # products[c]: multisets of atoms with total complexity c, grown atom class by atom class.
    products = [1] + [0] * most
    _add_atoms(products, n_covariates, 1, most)
    for complexity in range(2, most + 1):
        atoms.append(n_transforms * totals[-1])
        _add_atoms(products, atoms[-1], complexity, most)
        totals.append(products[complexity])
    return totals


def _add_atoms(products: list[int], count: int, complexity: int, most: int) -> None:
    """Allow any multiset of `count` new atoms of this complexity in the products."""
    if count == 0:
        return
    before = products.copy()
    for total in range(complexity, most + 1):
        products[total] = sum(
            before[total - used * complexity] * comb(count + used - 1, used)
            for used in range(total // complexity + 1)
        )


def _build_levels(problem: Problem, names: list[str], rows: Index, most: int) -> list[_Level]:
    covariates = np.column_stack([problem.table.column(name)[rows] for name in names])
    atoms = np.arange(len(names), dtype=np.int64)
    made = np.column_stack([np.full(len(names), -2), atoms, atoms])
    levels = [_Level(covariates, made, atoms)]
    offset = len(names)
    with np.errstate(all="ignore"):
        for complexity in range(2, most + 1):
            level = _next_level(problem.grammar, levels, complexity, offset)
            levels.append(level)
            offset += level.made.shape[0]
    return levels


def _next_level(grammar: Grammar, levels: list[_Level], complexity: int, offset: int) -> _Level:
    """Modifications of the level below, and products of an atom with a smaller feature."""
    below = levels[complexity - 2]
    starts = np.cumsum([0, *(level.made.shape[0] for level in levels)])
    columns, made = [], []
    children = starts[complexity - 2] + np.arange(below.made.shape[0])
    for number, transform in enumerate(grammar.transforms):
        # One knot per column; broadcasting does the rest.
        knots: Any = None
        if transform.quantile is not None:
            knots = np.nanquantile(below.columns, transform.quantile, axis=0)
        columns.append(transform(below.columns, knots))
        made.append(np.column_stack([np.full(children.size, number), children, children]))
    n_atoms = sum(block.shape[0] for block in made)
    largest = [offset + np.arange(n_atoms)]
    for of_atom in range(1, complexity):
        first, second = levels[of_atom - 1], levels[complexity - of_atom - 1]
        is_atom = np.flatnonzero(first.made[:, 0] != -1)
        atom_position = starts[of_atom - 1] + is_atom
        left, right = np.nonzero(atom_position[:, None] >= second.largest_atom[None, :])
        columns.append(first.columns[:, is_atom[left]] * second.columns[:, right])
        positions = starts[complexity - of_atom - 1] + right
        made.append(np.column_stack([np.full(left.size, -1), atom_position[left], positions]))
        largest.append(atom_position[left])
    return _Level(np.hstack(columns), np.concatenate(made), np.concatenate(largest))


class _Ranking:
    """Ranks the swept features by what they promise, and rebuilds the best as features."""

    def __init__(
        self, problem: Problem, names: list[str], levels: list[_Level], rows: Index
    ) -> None:
        self._problem = problem
        self._names = names
        self._made = np.concatenate([level.made for level in levels])
        self._columns = _standardise(np.hstack([level.columns for level in levels]))
        self._rows = rows
        self._features: dict[int, Feature] = {}
        self._sound = ~np.isnan(self._columns[0])
        self._prior = self._log_prior(levels)

    def _log_prior(self, levels: list[_Level]) -> FloatArray:
        """Prior of each feature, taken from one example of its complexity class."""
        prior = self._problem.model_prior
        values, position = [], 0
        for level in levels:
            example = prior.feature_log_prior(self.feature(position))
            values.append(np.full(level.made.shape[0], example))
            position += level.made.shape[0]
        return np.concatenate(values)

    def feature(self, position: int) -> Feature:
        """Rebuild one swept feature."""
        if position not in self._features:
            kind, first, second = (int(value) for value in self._made[position])
            if kind == -2:
                built: Feature = covariate(self._names[first])
            elif kind == -1:
                built = multiply(self.feature(first), self.feature(second))
            else:
                built = modify(self._problem.grammar.transforms[kind], self.feature(first))
            self._features[position] = built
        return self._features[position]

    def pool(self) -> list[Feature]:
        """Rank against the null model, then against the leaders, and collect the best."""
        registry = Registry(self._problem.table)
        chosen: dict[int, Feature] = {}
        leaders: list[Column] = []
        for take in _TAKE:
            promise = self._promise(leaders)
            order = np.argsort(-promise, kind="stable")[: 3 * take]
            fresh = self._materialise(order[np.isfinite(promise[order])], registry, chosen, take)
            if not fresh:
                break
            leaders.append(fresh[0])
        return list(chosen.values())

    def _promise(self, leaders: list[Column]) -> FloatArray:
        """Log posterior each feature promises to add to the model of the leaders."""
        model = np.column_stack(leaders) if leaders else np.empty((self._problem.table.n_rows, 0))
        screen = self._problem.engine.screen(model)
        residual = screen.residual[self._rows]
        residual = residual - residual.mean()
        columns = self._columns
        if leaders:
            basis, _ = np.linalg.qr(_standardise(model[self._rows]))
            columns = columns - basis @ (basis.T @ columns)
            residual = residual - basis @ (basis.T @ residual)
        left = np.einsum("nk,nk->k", columns, columns)
        norm = float(residual @ residual)
        with np.errstate(all="ignore"):
            share = (residual @ columns) ** 2 / (left * norm)
        usable = self._sound & (left > 1e-6) & (norm > 0)
        share = np.where(usable, np.minimum(share, 1.0), 0.0)
        return np.where(usable, screen.gain(share) + self._prior, -np.inf)

    def _materialise(
        self, order: Index, registry: Registry, chosen: dict[int, Feature], take: int
    ) -> list[Column]:
        """Add the features at these positions to the pool; return their training columns."""
        table = self._problem.table
        fresh: list[Column] = []
        for position in order:
            feature = fit_knots(self.feature(int(position)), table)
            if feature.depth > self._problem.grammar.max_depth:
                continue
            columns, statuses = evaluate([feature], table)
            if statuses[0] != Status.OK:
                continue
            number = registry.number(feature, columns[:, 0])
            if number not in chosen:
                fresh.append(columns[:, 0])
            chosen[number] = registry.features[number]
            if len(fresh) == take:
                break
        return fresh


def _standardise(columns: Matrix) -> Matrix:
    """Centred columns of unit length; NaN where a column is not finite or constant."""
    with np.errstate(all="ignore"):
        scaled: Matrix = columns / np.max(np.abs(columns), axis=0)
        scaled -= scaled.mean(axis=0)
        length = np.sqrt(np.einsum("nk,nk->k", scaled, scaled))
        scaled /= np.where(length > 1e-9 * np.sqrt(len(columns)), length, np.nan)
    return scaled
