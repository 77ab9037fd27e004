"""Tests of what all subsets of blocks explain."""

import numpy as np
import pytest

from dbrm._kernels.block_enumeration import explained_by_all_blocks


@pytest.mark.parametrize(("m", "q"), [(1, 4), (2, 5), (3, 4), (5, 1)])
def test_every_subset_is_that_of_a_direct_solution(rng, m, q):
    half = rng.normal(size=(3 * m * q, m * q))
    gram, right = half.T @ half, rng.normal(size=m * q)
    explained, log_det = explained_by_all_blocks(gram, right, m, q)
    for subset in range(1 << q):
        chosen = [j for j in range(q) if subset >> j & 1]
        own = [j * m + k for j in chosen for k in range(m)]
        part = gram[np.ix_(own, own)]
        expected = right[own] @ np.linalg.solve(part, right[own]) if own else 0.0
        assert explained[subset] == pytest.approx(expected, rel=1e-10)
        assert log_det[subset] == pytest.approx(
            np.linalg.slogdet(part)[1] if own else 0.0, rel=1e-9
        )


def test_subsets_that_are_too_large_or_have_no_maximum_are_left_out(rng):
    half = rng.normal(size=(20, 6))
    gram = half.T @ half
    gram[4:, 4:] *= -1.0
    explained, _ = explained_by_all_blocks(gram, half.T @ half[:, 0], 2, 2)
    assert np.all(explained[:4] >= 0.0)
    assert np.all(explained[4:] == -np.inf)
    explained, _ = explained_by_all_blocks(half.T @ half, half.T @ half[:, 0], 2, 2)
    assert explained[0b111] == -np.inf
    assert np.all(explained[:7] >= 0.0)
