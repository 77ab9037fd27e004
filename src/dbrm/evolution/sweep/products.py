"""Products of distinct covariates, of every size, in batches of columns.

A product of many covariates shows in none of its parts (the parity of five signs is the plainest
case), so that nothing but looking at it finds it.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from dbrm._kernels.products import unit_products
from dbrm.evolution.operators import Grammar
from dbrm.evolution.sweep.levels import Scored

__all__ = ["Subsets", "draw_subsets", "most_factors", "product_columns"]

# Subsets of one size, a row each.
Subsets = npt.NDArray[np.int64]

_MOST_FACTORS = 10


def most_factors(grammar: Grammar, n_covariates: int) -> int:
    """Most distinct covariates in a product that the grammar admits; none without products."""
    if not grammar.operators.crossover > 0:
        return 0
    return min(grammar.max_complexity, 1 << grammar.max_depth, n_covariates, _MOST_FACTORS)


def product_columns(values: Scored, subsets: Subsets, smallest: float) -> npt.NDArray[np.float32]:
    """Products of these columns, all of the same number of factors, at unit length.

    The columns should be of order one: products of many large numbers overflow. A product that
    varies less than `smallest`, relative to its root mean square, is constant: not a number.
    """
    factors = np.ascontiguousarray(values.T, dtype=np.float32)
    columns = np.empty((len(subsets), len(values)), dtype=np.float32)
    # Contiguous: one compiled version is enough.
    unit_products(factors, np.ascontiguousarray(subsets), smallest, columns)
    return columns.T


def draw_subsets(
    rng: np.random.Generator, n_items: int, smallest: int, largest: int, count: int
) -> Iterator[Subsets]:
    """Subsets of each size from `smallest` to `largest`: all of them where there is room.

    Each size may take three quarters of what the smaller ones have left.
    """
    for size in range(smallest, largest + 1):
        allotted = 3 * count // 4
        if comb(n_items, size) <= allotted:
            subsets = np.array(list(combinations(range(n_items), size)))
        elif n_items < size**2:
            subsets = rng.random((allotted, n_items)).argpartition(size - 1, axis=1)[:, :size]
        else:
            drawn = rng.integers(n_items, size=(allotted, size))
            ordered = np.sort(drawn, axis=1)
            subsets = drawn[np.all(np.diff(ordered, axis=1) > 0, axis=1)]
        count -= len(subsets)
        if len(subsets):
            yield subsets
