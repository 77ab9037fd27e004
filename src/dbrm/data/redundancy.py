r"""Find columns that add nothing to an intercept and earlier columns, and repeated rows.

It sees finite numbers and no names. A column is redundant if it is constant or an affine copy
of an earlier one: their correlation is :math:`\pm 1` within `TOLERANCE`.
"""

from collections.abc import Iterable

import numpy as np

from dbrm._typing import Column, IntArray, Matrix
from dbrm.data.standardize import to_unit_length

__all__ = ["find_redundant", "find_repeats"]

# On 1 - |correlation|.
TOLERANCE = 1e-12
# Copies within `TOLERANCE` have sketches that differ by N(0, 2 * TOLERANCE) at most;
# this is seven standard deviations.
SKETCH_TOLERANCE = 1e-5
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def find_redundant(values: Matrix) -> dict[int, int | None]:
    r"""Map every redundant column to the earlier column it copies, or to None if constant.

    Each column is centred, scaled to unit length and reduced to one number, its
    product with a fixed vector of standard normal weights, up to sign. Copies have
    equal numbers, so only neighbours in sorted order are compared in full: the
    cost is :math:`O(n p + p \log p)`.
    """
    # A hash function, not randomness: the weights are the same in every run.
    weights = np.random.default_rng(20180606).standard_normal(values.shape[0])
    redundant: dict[int, int | None] = {}
    sketches: list[tuple[float, int]] = []
    for index, column in enumerate(values.T):
        unit = _to_unit(column)
        if unit is None:
            redundant[index] = None
        else:
            sketches.append((abs(float(weights @ unit)), index))
    for group in _group_copies(values, sorted(sketches)):
        first = min(group)
        redundant.update({index: first for index in group if index != first})
    return redundant


def find_repeats(columns: Iterable[Column]) -> tuple[IntArray, IntArray] | None:
    """Return the first row of each distinct row, and for each row the distinct row it equals.

    Distinct rows are ordered by a hash of what differs between rows, so that a table with repeated
    rows and one with weights in their place become the same. None if two of them share a hash,
    which practically never happens.
    """
    listed = list(columns)
    code = np.zeros(listed[0].size, dtype=np.uint64)
    for column in listed:
        if np.all(column == column[:1]):
            continue
        # Adding zero makes one number of the two zeros.
        code = (code ^ (column + 0.0).view(np.uint64)) * _MULTIPLIER
        code ^= code >> _SHIFT
    _, first, pattern = np.unique(code, return_index=True, return_inverse=True)
    if all(np.array_equal(column[first][pattern], column) for column in listed):
        return first.astype(np.int64), pattern.astype(np.int64)
    return None


def _group_copies(values: Matrix, sketches: list[tuple[float, int]]) -> list[list[int]]:
    groups: list[list[int]] = []
    # Groups whose first member has a sketch within the tolerance.
    near: list[tuple[float, list[int]]] = []
    for sketch, index in sketches:
        near = [entry for entry in near if sketch - entry[0] <= SKETCH_TOLERANCE]
        for _, group in near:
            if _are_copies(values[:, group[0]], values[:, index]):
                group.append(index)
                break
        else:
            groups.append([index])
            near.append((sketch, groups[-1]))
    return groups


def _are_copies(first: Column, second: Column) -> bool:
    a, b = _to_unit(first), _to_unit(second)
    if a is None or b is None:
        return False
    # |a -+ b|^2 = 2 (1 - |correlation|), without the cancellation of the right-hand side.
    difference = a - np.copysign(1.0, a @ b) * b
    return float(difference @ difference) <= 2.0 * TOLERANCE


def _to_unit(column: Column) -> Column | None:
    """Centre a column and scale it to unit length; None if it is constant."""
    unit = to_unit_length(column[:, None])[:, 0]
    return unit if np.isfinite(unit[0]) else None
