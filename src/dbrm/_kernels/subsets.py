r"""The best subsets of a few columns among many, by exhaustive elimination.

Columns are added in increasing order; adding column ``i`` to a subset is one Schur complement of
the columns after it,

.. math:: A_{jk} \leftarrow A_{jk} - A_{ij} A_{ik} / A_{ii}, \qquad j, k > i ,

and before the last column only the diagonal is needed. All :math:`\binom{m}{k}` subsets cost a
few multiplications each.
"""

import numba as nb
import numpy as np

__all__ = ["best_subsets"]


@nb.njit(cache=True, nogil=True)
def best_subsets(gram, cross, total, factors, size, count, tolerance, least):
    """Residual sums of squares of the best subsets of `size` columns, and their members.

    Ascending in the residual sum of squares, but at least `least`, times the factors of the
    members; ``inf`` and -1 where there are fewer than `count`. Columns of which less than
    `tolerance` of their squares is left beside others do not count.
    """
    n_columns = cross.size
    left = np.full(count, np.inf)
    ranked = np.full(count, np.inf)
    members = np.full((count, size), -1, dtype=np.int64)
    # Beside the columns chosen so far; whole matrices only where two more columns come.
    grams = np.empty((max(size - 2, 0), n_columns, n_columns))
    diagonals, crosses = np.empty((size, n_columns)), np.empty((size, n_columns))
    totals, products = np.empty(size), np.ones(size)
    for j in range(n_columns):
        diagonals[0, j] = gram[j, j]
    crosses[0], totals[0] = cross, total
    # The column added at each depth.
    chosen = np.full(size, -1, dtype=np.int64)
    depth = 0
    while depth >= 0:
        if depth == size - 1:
            for j in range(chosen[depth] + 1, n_columns):
                pivot = diagonals[depth, j]
                if not pivot > tolerance * gram[j, j]:
                    continue
                squares = totals[depth] - crosses[depth, j] * crosses[depth, j] / pivot
                value = max(squares, least) * products[depth] * factors[j]
                if value < ranked[count - 1]:
                    chosen_last = chosen[depth]
                    chosen[depth] = j
                    place = count - 1
                    while place > 0 and ranked[place - 1] > value:
                        left[place], ranked[place] = left[place - 1], ranked[place - 1]
                        members[place] = members[place - 1]
                        place -= 1
                    left[place], ranked[place] = squares, value
                    members[place] = chosen
                    chosen[depth] = chosen_last
            depth -= 1
            continue
        chosen[depth] += 1
        i = chosen[depth]
        if i > n_columns - (size - depth):
            depth -= 1
            continue
        pivot = diagonals[depth, i]
        if not pivot > tolerance * gram[i, i]:
            continue
        source = gram if depth == 0 else grams[depth - 1]
        slope = crosses[depth, i] / pivot
        totals[depth + 1] = totals[depth] - crosses[depth, i] * slope
        products[depth + 1] = products[depth] * factors[i]
        is_last = depth + 1 == size - 1
        for j in range(i + 1, n_columns):
            share = source[i, j] / pivot
            crosses[depth + 1, j] = crosses[depth, j] - source[i, j] * slope
            diagonals[depth + 1, j] = diagonals[depth, j] - source[i, j] * share
            if not is_last:
                for k in range(j, n_columns):
                    grams[depth, j, k] = source[j, k] - share * source[i, k]
        chosen[depth + 1] = i
        depth += 1
    return left, members
