"""Columns made ready for the row loops: equal rows merged, columns centred and scaled.

Sees columns, weights and responses; neither family nor prior.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._kernels.glm_linalg import weighted_gram
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix

__all__ = ["Design", "build_design", "group_rows", "independent_columns", "share_columns"]

# A centred column shorter than this share of its largest value is a constant.
_CONSTANT = 3e-8
# Rows handled together by the kernels.
_BLOCK = 512
_LANES = 8
# Columns that models fitted together may use, unless one model alone uses more.
_SHARED = 40


@final
@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """Standardised columns over grouped and padded rows.

    ``flat[j] = (raw[j] - location[j]) / scale[j]``, the intercept being column 0;
    ``blocks`` is the same memory by column, block and row. Padding rows have total zero.
    """

    flat: Matrix
    blocks: FloatArray
    location: FloatArray
    scale: FloatArray
    mean: Column
    total: Column
    offset: Column
    n_live: int

    def gram(self, weight: Column) -> Matrix:
        """Cross products of all columns with one weight per row.

        Compiled rather than by BLAS, whose sums depend on the number of threads.
        """
        n_columns, n_blocks, block = self.blocks.shape
        chosen = np.zeros(n_columns + 4, dtype=np.int64)
        chosen[:n_columns] = np.arange(n_columns)
        out = np.zeros((n_columns + 4, n_columns + 4))
        shaped = weight.reshape(n_blocks, block)
        weighted_gram(self.blocks, chosen, n_columns, shaped, np.zeros((2, block)), out)
        lower = np.tril(out[:n_columns, :n_columns])
        return np.asarray(lower + np.tril(lower, -1).T)

    def unit_gram(self) -> Matrix:
        """Cross products of the columns scaled to unit length; zero for constant columns."""
        gram = self.gram(self.total)
        norm = np.sqrt(np.diag(gram))
        norm[norm == 0] = np.inf
        return np.asarray(gram / np.outer(norm, norm))

    def raw_coefficients(self, scaled: FloatArray) -> FloatArray:
        """Coefficients on the scale of the raw columns, intercept first."""
        # Coefficients of subnormal columns may overflow: they are capped.
        with np.errstate(over="ignore"):
            slopes = np.nan_to_num(scaled[1:] / self.scale[1:])
        shift = float(scaled[1:] @ (self.location[1:] / self.scale[1:]))
        return np.concatenate([[scaled[0] - shift], slopes])

    def raw_covariance(self, scaled: Matrix) -> Matrix:
        """Covariance of the raw coefficients from that of the scaled ones."""
        jacobian = np.diag(1.0 / self.scale)
        jacobian[0, 1:] = -self.location[1:] / self.scale[1:]
        # Variances in extreme units may overflow: they are capped, never NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            raw = jacobian @ scaled @ jacobian.T
        return np.nan_to_num(raw)


def group_rows(table: Matrix) -> tuple[IntArray, IntArray]:
    """First row of each pattern, and the pattern of each row; equal rows compare equal."""
    words = np.ascontiguousarray(table + 0.0).view(np.uint64)
    code = np.zeros(len(table), dtype=np.uint64)
    for j in range(table.shape[1]):
        code = (code ^ words[:, j]) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    _, first, pattern = np.unique(code, return_index=True, return_inverse=True)
    if not np.array_equal(table[first[pattern]], table):
        every = np.arange(len(table))
        return every, every
    return first, pattern


def build_design(
    columns: Matrix, mean: Column, total: Column, offset: Column, *, filler: float, merge: bool
) -> tuple[Design, FloatArray]:
    """Build the design; also return each row's response mean after merging.

    Padding rows have the linear predictor ``filler``, which must be a possible one.
    """
    table = np.column_stack([columns, offset])
    first = pattern = np.arange(len(total))
    if merge and len(total) > 1:
        candidate, groups = group_rows(table)
        if 2 * candidate.size <= len(total):
            first, pattern = candidate, groups
    sums = np.bincount(pattern, weights=total, minlength=first.size).astype(np.float64)
    successes = np.bincount(pattern, weights=total * mean, minlength=first.size)
    means = successes / np.where(sums > 0, sums, 1.0) if first.size < len(total) else mean
    block, n_blocks = _blocking(first.size)
    padded = block * n_blocks
    flat = np.zeros((columns.shape[1] + 1, padded))
    location, scale = np.zeros(len(flat)), np.ones(len(flat))
    flat[0, : first.size] = 1.0
    for j in range(columns.shape[1]):
        flat[j + 1, : first.size], location[j + 1], scale[j + 1] = _standardise(
            columns[first, j], sums
        )
    design = Design(
        flat,
        flat.reshape(len(flat), n_blocks, block),
        location,
        scale,
        _pad(means, padded, float(np.average(mean, weights=total))),
        _pad(sums, padded, 0.0),
        _pad(offset[first], padded, filler),
        first.size,
    )
    return design, means[pattern]


def independent_columns(unit_gram: Matrix, tolerance: float, most: int) -> IntArray:
    """Columns in order, each kept when it is not a combination of those kept before."""
    left = unit_gram.copy()
    kept: list[int] = []
    for j in range(len(left)):
        pivot = left[j, j]
        if len(kept) < most and unit_gram[j, j] > 0.5 and pivot > tolerance:
            kept.append(j)
            left -= np.outer(left[:, j], left[j]) / pivot
    return np.array(kept, dtype=np.int64)


def share_columns(masks: Masks) -> list[tuple[IntArray, IntArray]]:
    """Group masks that together use few columns: rows of `masks`, and the columns they use."""
    groups: list[tuple[list[int], Mask]] = []
    for row, mask in enumerate(masks):
        for position, (rows, union) in enumerate(groups):
            wider = union | mask
            if wider.sum() <= _SHARED:
                rows.append(row)
                groups[position] = rows, wider
                break
        else:
            groups.append(([row], mask))
    return [(np.array(rows), np.flatnonzero(union)) for rows, union in groups]


def _standardise(column: Column, total: Column) -> tuple[Column, float, float]:
    """Centre and scale over the rows that count; constants become zero."""
    live = total > 0
    largest = float(np.max(np.abs(column), initial=0.0, where=live))
    if largest == 0.0:
        return np.zeros_like(column), 0.0, 1.0
    unit = np.where(live, column / largest, 0.0)
    centre = float(np.average(unit, weights=total))
    unit = np.where(live, unit - centre, 0.0)
    length = float(np.sqrt(np.average(unit * unit, weights=total)))
    if length <= _CONSTANT:
        return np.zeros_like(column), 0.0, 1.0
    return unit / length, centre * largest, max(length * largest, np.finfo(float).tiny)


def _blocking(n: int) -> tuple[int, int]:
    n_blocks = max(1, -(-n // _BLOCK))
    return _LANES * max(1, -(-n // (_LANES * n_blocks))), n_blocks


def _pad(values: Column, length: int, filler: float) -> Column:
    return np.concatenate([values, np.full(length - values.size, filler)])
