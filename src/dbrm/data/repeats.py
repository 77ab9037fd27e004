"""Rows that occur more than once: found by content, listed in an order of their own.

The order depends on what the rows hold, not on where they stand, so that a table with
repeated rows and one with weights in their place become the same.
"""

from collections.abc import Iterable

import numpy as np

from dbrm._typing import Column, IntArray

__all__ = ["find_repeats"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def find_repeats(columns: Iterable[Column]) -> tuple[IntArray, IntArray] | None:
    """First row of each pattern, and the pattern of each row.

    ``None`` if two patterns share a hash, which happens about once in a lifetime.
    """
    listed = list(columns)
    code = np.zeros(listed[0].size, dtype=np.uint64)
    for column in listed:
        # Adding zero makes one number of the two zeros.
        code = (code ^ (column + 0.0).view(np.uint64)) * _MULTIPLIER
        code ^= code >> _SHIFT
    _, first, pattern = np.unique(code, return_index=True, return_inverse=True)
    if all(np.array_equal(column[first][pattern], column) for column in listed):
        return first.astype(np.int64), pattern.astype(np.int64)
    return None
