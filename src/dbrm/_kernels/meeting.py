"""Pairs of numbers with a given sum, in one pass over a sorted array; and a set of numbers."""

import numba as nb
import numpy as np

__all__ = ["add_new", "pairs_with_sum"]


@nb.njit(cache=True, nogil=True)
def pairs_with_sum(keys, others, total, other, tolerance, other_tolerance, most):
    """Positions of the first pairs of keys with this sum, one row each.

    `keys` ascend. `others` are second keys, whose sum must be `other`: one key alone has the right
    sum by chance now and then, where there are millions of pairs. A key may be paired with itself.
    """
    found = np.empty((most, 2), dtype=np.int64)
    count = 0
    low, high = 0, keys.size - 1
    while low <= high and count < most:
        gap = keys[low] + keys[high] - total
        if gap < -tolerance:
            low += 1
        elif gap > tolerance:
            high -= 1
        else:
            place = high
            while place >= low and keys[low] + keys[place] - total >= -tolerance:
                if abs(others[low] + others[place] - other) <= other_tolerance:
                    found[count, 0], found[count, 1] = low, place
                    count += 1
                    if count == most:
                        break
                place -= 1
            low += 1
    return found[:count]


@nb.njit(cache=True, nogil=True)
def add_new(marks, slots, is_new):
    """Put marks into a hash set, and say which of them were not in it; how many these are.

    `slots` has a power of two of them, zero where it is empty, and more than there are marks; marks
    are positive.
    """
    last, count = slots.size - 1, 0
    for k in range(marks.size):
        mark = marks[k]
        # Fibonacci hashing: high bits of a product.
        place = ((mark * np.int64(-7046029254386353131)) >> 20) & last
        while slots[place] != 0 and slots[place] != mark:
            place = (place + 1) & last
        is_new[k] = slots[place] == 0
        if is_new[k]:
            slots[place] = mark
            count += 1
    return count
