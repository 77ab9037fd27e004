"""Bit arithmetic on models packed into 64-bit words.

Feature ``j`` of a population is bit ``j % 64`` of word ``j // 64``.
"""

import numba as nb
import numpy as np

__all__ = ["lowest_bit", "mix", "pack", "popcount", "unpack_index"]


@nb.njit(cache=True, nogil=True, inline="always")
def lowest_bit(word):
    """Position of the lowest set bit of a positive integer."""
    position = 0
    while (word >> position) & 1 == 0:
        position += 1
    return position


@nb.njit(cache=True, nogil=True, inline="always")
def popcount(word):
    """Count the set bits of a non-negative integer."""
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


@nb.njit(cache=True, nogil=True)
def pack(mask, words):
    """Write a boolean mask into ``words`` (cleared first)."""
    for w in range(words.size):
        words[w] = np.uint64(0)
    for j in range(mask.size):
        if mask[j]:
            words[j >> 6] |= np.uint64(1) << np.uint64(j & 63)


@nb.njit(cache=True, nogil=True)
def mix(words):
    """Hash packed words to 64 bits (the finaliser of splitmix64, word by word)."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for w in range(words.size):
        h = h ^ words[w]
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h = h ^ (h >> np.uint64(31))
    return h


def unpack_index(indices, size):
    """Turn integers (bit ``j`` = feature ``j``) into a boolean matrix, one row each."""
    shifts = np.arange(size, dtype=np.int64)
    return ((np.asarray(indices, dtype=np.int64)[:, None] >> shifts) & 1).astype(np.bool_)
