"""Tests of `dbrm._kernels.meeting`: pairs against all sums, new numbers against a Python set."""

import numpy as np

from dbrm._kernels.meeting import add_new, pairs_with_sum


def test_pairs_are_those_of_all_sums(rng):
    keys, others = np.sort(rng.integers(0, 60, 80) / 8.0), rng.integers(0, 4, 80) / 2.0
    found = pairs_with_sum(keys, others, 7.0, 1.5, 1e-9, 1e-9, 10_000)
    first, second = np.triu_indices(80)
    right = (keys[first] + keys[second] == 7.0) & (others[first] + others[second] == 1.5)
    expected = set(zip(first[right].tolist(), second[right].tolist(), strict=True))
    assert expected
    assert {tuple(pair) for pair in found.tolist()} == expected


def test_no_more_pairs_than_asked_for():
    assert len(pairs_with_sum(np.ones(50), np.ones(50), 2.0, 2.0, 1e-9, 1e-9, 7)) == 7


def test_a_sum_that_is_none_has_no_pairs(rng):
    keys = np.sort(rng.normal(size=50))
    assert len(pairs_with_sum(keys, keys, 100.0, 100.0, 1e-9, 1e-9, 7)) == 0


def test_new_numbers_are_those_a_set_does_not_have(rng):
    marks, slots = rng.integers(1, 300, 400), np.zeros(1024, dtype=np.int64)
    is_new, known = np.zeros(400, dtype=np.bool_), set[int]()
    count = add_new(marks, slots, is_new)
    for mark, new in zip(marks.tolist(), is_new.tolist(), strict=True):
        assert new == (mark not in known)
        known.add(mark)
    assert count == len(known) == np.count_nonzero(slots)
