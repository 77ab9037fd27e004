"""Tests of `dbrm._kernels.bits`: models packed into words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrm._kernels.bits import lowest_bit, mix, pack, popcount, unpack_index

# Both sides of the borders between words.
SIZES = [1, 63, 64, 65, 130]


def packed(mask, function=pack):
    words = np.full(max(1, -(-mask.size // 64)), 12345, dtype=np.uint64)
    function(mask, words)
    return words


@pytest.mark.parametrize("size", SIZES)
def test_pack_puts_feature_j_at_bit_j(rng, size):
    for mask in (rng.random(size) < 0.5, np.ones(size, bool), np.zeros(size, bool)):
        whole = sum(int(word) << (64 * w) for w, word in enumerate(packed(mask)))
        assert whole == sum(1 << j for j in np.flatnonzero(mask).tolist())


@pytest.mark.parametrize("size", SIZES)
def test_pack_agrees_with_its_plain_twin(rng, size):
    mask = rng.random(size) < 0.5
    np.testing.assert_array_equal(packed(mask), packed(mask, pack.py_func))


@pytest.mark.parametrize("size", [1, 5, 20, 62])
def test_unpack_index_inverts_packing(rng, size):
    masks = rng.random((50, size)) < 0.5
    indices = [int(packed(mask)[0]) for mask in masks]
    np.testing.assert_array_equal(unpack_index(indices, size), masks)


@given(word=st.integers(1, 2**62))
def test_bit_counts_are_those_of_python(word):
    for count, lowest in ((popcount, lowest_bit), (popcount.py_func, lowest_bit.py_func)):
        assert count(word) == word.bit_count()
        assert lowest(word) == (word & -word).bit_length() - 1


def test_mix_tells_neighbours_apart(rng):
    """All 2**14 masks and single-bit changes in every word give different hashes."""
    small = {int(mix(np.array([m], dtype=np.uint64))) for m in range(1 << 14)}
    assert len(small) == 1 << 14
    words = rng.integers(0, 2**63, size=3).astype(np.uint64)
    hashes = {int(mix(words))}
    for j in range(192):
        changed = words.copy()
        changed[j // 64] ^= np.uint64(1) << np.uint64(j % 64)
        hashes.add(int(mix(changed)))
    assert len(hashes) == 193
