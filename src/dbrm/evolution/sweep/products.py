"""Products of distinct covariates, of every size, in batches of columns.

A product of many covariates shows in none of its parts (the parity of five signs is the plainest
case), so that nothing but looking at it finds it.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from dbrm.evolution.operators import Grammar
from dbrm.evolution.sweep.levels import Scored

__all__ = ["Subset", "draw_subsets", "most_factors", "product_columns"]

Subset = tuple[int, ...]

_MOST_FACTORS = 10


def most_factors(grammar: Grammar, n_covariates: int) -> int:
    """Most distinct covariates in a product that the grammar admits; none without products."""
    if not grammar.operators.crossover > 0:
        return 0
    return min(grammar.max_complexity, 1 << grammar.max_depth, n_covariates, _MOST_FACTORS)


def product_columns(values: Scored, subsets: list[Subset]) -> npt.NDArray[np.float32]:
    """Products of these columns, all of the same number of factors, in single precision.

    The columns should be of order one: products of many large numbers overflow.
    """
    # One covariate after the other, so that copies are of whole stretches.
    factors = np.ascontiguousarray(values.T, dtype=np.float32)
    index = np.array(subsets).T
    columns = factors[index[0]]
    for others in index[1:]:
        columns *= factors[others]
    return np.asarray(columns.T)


def draw_subsets(
    rng: np.random.Generator, n_items: int, smallest: int, largest: int, count: int
) -> Iterator[list[Subset]]:
    """Subsets of each size from `smallest` to `largest`: all of them where there is room.

    Each size may take three quarters of what the smaller ones have left.
    """
    for size in range(smallest, largest + 1):
        allotted = 3 * count // 4
        if comb(n_items, size) <= allotted:
            subsets = list(combinations(range(n_items), size))
        elif n_items < size**2:
            order = rng.random((allotted, n_items)).argpartition(size - 1, axis=1)[:, :size]
            subsets = [tuple(row) for row in order.tolist()]
        else:
            drawn = rng.integers(n_items, size=(allotted, size))
            subsets = [tuple(row) for row in drawn.tolist() if len(set(row)) == size]
        count -= len(subsets)
        if subsets:
            yield subsets
