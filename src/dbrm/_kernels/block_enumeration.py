"""What all subsets of columns explain where a column has several coefficients."""

import numba as nb
import numpy as np

__all__ = ["explained_by_all_blocks"]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _include(gram, right, m, gram_after, right_after):
    """Fit the first block; return what it explains and its log determinant, minus one if none."""
    size = len(right)
    # The factor of the first block, and behind it what it shares with the others.
    rows = np.empty((m, size))
    lead = np.empty(m)
    explained, log_det = 0.0, 0.0
    for i in range(m):
        rows[i] = gram[i]
        lead[i] = right[i]
        for k in range(i):
            share = rows[k, i]
            for j in range(i, size):
                rows[i, j] -= share * rows[k, j]
            lead[i] -= share * lead[k]
        pivot = rows[i, i]
        if not pivot > 0.0:
            return -1.0, 0.0
        root = np.sqrt(pivot)
        for j in range(i, size):
            rows[i, j] /= root
        lead[i] /= root
        explained += lead[i] * lead[i]
        log_det += np.log(pivot)
    for i in range(m, size):
        right_after[i - m] = right[i]
        for k in range(m):
            right_after[i - m] -= rows[k, i] * lead[k]
        for j in range(i, size):
            value = gram[i, j]
            for k in range(m):
                value -= rows[k, i] * rows[k, j]
            gram_after[i - m, j - m] = value
            gram_after[j - m, i - m] = value
    return explained, log_det


@nb.njit(cache=True, nogil=True, error_model="numpy")
def explained_by_all_blocks(gram, right, m, max_size):
    r"""Return :math:`r'G^{-1}r` and :math:`\log|G|` of all subsets of blocks of `m` coefficients.

    Subsets are numbered by their bits; ``-inf`` where there are more than `max_size` blocks or the
    block of a matrix is not positive definite. Neighbours share the factors of their first blocks,
    so that the time is that of the last few blocks of each.
    """
    q = len(right) // m
    explained = np.full(1 << q, -np.inf)
    log_det = np.zeros(1 << q)
    grams = np.zeros((q + 1, len(right), len(right)))
    rights = np.zeros((q + 1, len(right)))
    so_far = np.zeros(q + 1)
    log_det_so_far = np.zeros(q + 1)
    sizes = np.zeros(q + 1, dtype=np.int64)
    grams[0, : len(right), : len(right)] = gram
    rights[0, : len(right)] = right
    for path in range(1 << q):
        # Blocks are decided from the first to the last; bits of the path from the highest down.
        changed = 0
        if path:
            bits = path ^ (path - 1)
            changed = q
            while bits:
                bits >>= 1
                changed -= 1
        subset = 0
        for depth in range(q):
            included = (path >> (q - 1 - depth)) & 1
            subset |= included << depth
            if depth < changed:
                continue
            left = m * (q - depth)
            now, then = grams[depth, :left, :left], rights[depth, :left]
            after, right_after = grams[depth + 1], rights[depth + 1]
            if included:
                gain, determinant = _include(now, then, m, after, right_after)
                so_far[depth + 1] = so_far[depth] + gain if gain >= 0.0 else -np.inf
                log_det_so_far[depth + 1] = log_det_so_far[depth] + determinant
            else:
                after[: left - m, : left - m] = now[m:, m:]
                right_after[: left - m] = then[m:]
                so_far[depth + 1] = so_far[depth]
                log_det_so_far[depth + 1] = log_det_so_far[depth]
            sizes[depth + 1] = sizes[depth] + included
        if sizes[q] <= max_size:
            explained[subset] = so_far[q]
            log_det[subset] = log_det_so_far[q]
    return explained, log_det
