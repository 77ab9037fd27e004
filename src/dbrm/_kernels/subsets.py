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
def best_subsets(gram, cross, total, size, count, tolerance):
    """Residual sums of squares of the best subsets of `size` columns, and their members.

    Ascending; ``inf`` and -1 where there are fewer than `count`. Columns of which less than
    `tolerance` of their squares is left beside others do not count.
    """
    n_columns = cross.size
    left = np.full(count, np.inf)
    members = np.full((count, size), -1, dtype=np.int64)
    grams = np.empty((size, n_columns, n_columns))
    crosses = np.empty((size, n_columns))
    totals = np.empty(size)
    grams[0], crosses[0], totals[0] = gram, cross, total
    # The column added at each depth.
    chosen = np.full(size, -1, dtype=np.int64)
    depth = 0
    while depth >= 0:
        if depth == size - 1:
            for j in range(chosen[depth] + 1, n_columns):
                pivot = grams[depth, j, j]
                if not pivot > tolerance * gram[j, j]:
                    continue
                value = totals[depth] - crosses[depth, j] * crosses[depth, j] / pivot
                if value < left[count - 1]:
                    chosen_last = chosen[depth]
                    chosen[depth] = j
                    place = count - 1
                    while place > 0 and left[place - 1] > value:
                        left[place] = left[place - 1]
                        members[place] = members[place - 1]
                        place -= 1
                    left[place] = value
                    members[place] = chosen
                    chosen[depth] = chosen_last
            depth -= 1
            continue
        chosen[depth] += 1
        i = chosen[depth]
        if i > n_columns - (size - depth):
            depth -= 1
            continue
        pivot = grams[depth, i, i]
        if not pivot > tolerance * gram[i, i]:
            continue
        slope = crosses[depth, i] / pivot
        totals[depth + 1] = totals[depth] - crosses[depth, i] * slope
        is_last = depth + 1 == size - 1
        for j in range(i + 1, n_columns):
            share = grams[depth, i, j] / pivot
            crosses[depth + 1, j] = crosses[depth, j] - grams[depth, i, j] * slope
            if is_last:
                grams[depth + 1, j, j] = grams[depth, j, j] - grams[depth, i, j] * share
            else:
                for k in range(j, n_columns):
                    grams[depth + 1, j, k] = grams[depth, j, k] - share * grams[depth, i, k]
        chosen[depth + 1] = i
        depth += 1
    return left, members
