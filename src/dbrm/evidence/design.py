"""Columns made ready for the row loops: equal rows merged, columns centred and scaled.

Sees columns, weights and responses; neither family nor prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._kernels.glm_linalg import cross_products, standardise, weighted_gram
from dbrm._typing import Column, FloatArray, IntArray, Masks, Matrix

__all__ = [
    "Design",
    "build_design",
    "group_rows",
    "in_blocks",
    "independent_columns",
    "share_columns",
]

# A centred column shorter than this share of its largest value is a constant.
_CONSTANT = 3e-8
# Rows handled together by the kernels.
_BLOCK = 512
_LANES = 8
# Up to so many rows equal ones are looked for without asking a sample first.
_FEW_ROWS = 2_000
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

    def gram(self, weight: Column, chosen: IntArray | None = None) -> Matrix:
        """Cross products of all columns, or of those chosen, with one weight per row.

        Compiled rather than by BLAS, whose sums depend on the number of threads.
        """
        n_columns, n_blocks, block = self.blocks.shape
        members = np.arange(n_columns) if chosen is None else chosen
        k = members.size
        padded = np.zeros(k + 4, dtype=np.int64)
        padded[:k] = members
        out = np.zeros((k + 4, k + 4))
        shaped = weight.reshape(n_blocks, block)
        weighted_gram(self.blocks, padded, k, shaped, np.zeros((2, block)), out)
        lower = np.tril(out[:k, :k])
        return np.asarray(lower + np.tril(lower, -1).T)

    def times(self, vector: Column) -> FloatArray:
        """Inner products of all columns with a vector; compiled, as in `gram`."""
        out = np.zeros(len(self.flat))
        cross_products(self.flat, np.arange(len(self.flat)), len(self.flat), vector, out)
        return out

    def unit_gram(self) -> Matrix:
        """Cross products of the columns scaled to unit length; zero for constant columns."""
        gram = self.gram(self.total)
        norm = np.sqrt(np.diag(gram))
        norm[norm == 0] = np.inf
        return np.asarray(gram / np.outer(norm, norm))

    def raw_coefficients(self, scaled: Matrix, columns: IntArray) -> Matrix:
        """Coefficients on the scale of the raw columns, intercept first; one model in each row.

        `columns` are the columns of each model.
        """
        location, scale = self.location[columns], self.scale[columns]
        # Coefficients of subnormal columns may overflow: they are capped.
        with np.errstate(over="ignore"):
            slopes = np.nan_to_num(scaled[:, 1:] / scale[:, 1:])
        shift = np.sum(scaled[:, 1:] * (location[:, 1:] / scale[:, 1:]), axis=1)
        return np.column_stack([scaled[:, 0] - shift, slopes])

    def raw_covariance(self, scaled: FloatArray, columns: IntArray) -> FloatArray:
        """Covariances of the raw coefficients from those of the scaled ones."""
        location, scale = self.location[columns], self.scale[columns]
        jacobian = np.eye(columns.shape[1]) / scale[:, :, None]
        jacobian[:, 0, 1:] = -location[:, 1:] / scale[:, 1:]
        # Variances in extreme units may overflow: they are capped, never NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            raw = jacobian @ scaled @ jacobian.transpose(0, 2, 1)
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
    n_rows, n_columns = columns.shape
    first = pattern = None
    if merge and _may_merge(columns, offset):
        candidate, groups = group_rows(np.column_stack([columns, offset]))
        if 2 * candidate.size <= n_rows:
            first, pattern = candidate, groups
    means, group_mean = mean, mean
    average = float(np.average(mean, weights=total))
    if first is not None and pattern is not None:
        sums = np.bincount(pattern, weights=total, minlength=first.size).astype(np.float64)
        successes = np.bincount(pattern, weights=total * mean, minlength=first.size)
        means = successes / np.where(sums > 0, sums, 1.0)
        group_mean = means[pattern]
        columns, total, offset = columns[first], sums, offset[first]
    n_live = total.size
    block, n_blocks = _blocking(n_live)
    padded = block * n_blocks
    flat = np.empty((n_columns + 1, padded))
    flat[0, :n_live] = 1.0
    flat[1:, :n_live] = columns.T
    flat[:, n_live:] = 0.0
    location, scale = np.zeros(len(flat)), np.ones(len(flat))
    total = np.array(total, dtype=np.float64)
    for j in range(1, len(flat)):
        location[j], scale[j] = standardise(flat[j], total, _CONSTANT)
    design = Design(
        flat,
        flat.reshape(len(flat), n_blocks, block),
        location,
        scale,
        _pad(means, padded, average),
        _pad(total, padded, 0.0),
        _pad(offset, padded, filler),
        n_live,
    )
    return design, group_mean


def _may_merge(columns: Matrix, offset: Column) -> bool:
    r"""Whether at most half of the rows may be different.

    Of :math:`4 \sqrt n` rows drawn from :math:`n / 2` kinds about sixteen pairs are equal: with
    two or fewer there are more kinds, and sorting all rows would be in vain.
    """
    n_rows = offset.size
    if n_rows <= _FEW_ROWS:
        return n_rows > 1
    rows = np.random.default_rng(0).integers(0, n_rows, size=4 * int(np.sqrt(n_rows)))
    rows = np.unique(rows)
    kinds, _ = group_rows(np.column_stack([columns[rows], offset[rows]]))
    return rows.size - kinds.size > 2


def in_blocks(
    columns: Sequence[Column],
    n_rows: int,
    location: FloatArray | None = None,
    scale: FloatArray | None = None,
) -> FloatArray:
    """Ones, then ``(column - location) / scale``, by column, block and row; zero where padded."""
    block, n_blocks = _blocking(n_rows)
    flat = np.zeros((len(columns) + 1, n_blocks * block))
    flat[0, :n_rows] = 1.0
    for j, column in enumerate(columns):
        target = flat[j + 1, :n_rows]
        np.subtract(column, 0.0 if location is None else location[j], out=target)
        if scale is not None:
            target /= scale[j]
    return flat.reshape(len(flat), n_blocks, block)


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
    groups: list[tuple[list[int], set[int]]] = []
    columns: list[set[int]] = [set() for _ in masks]
    for row, column in zip(*(part.tolist() for part in np.nonzero(masks)), strict=True):
        columns[row].add(column)
    for row, own in enumerate(columns):
        for rows, union in groups:
            if len(union | own) <= _SHARED:
                rows.append(row)
                union |= own
                break
        else:
            groups.append(([row], own))
    return [(np.array(rows), np.array(sorted(union), dtype=np.int64)) for rows, union in groups]


def _blocking(n: int) -> tuple[int, int]:
    n_blocks = max(1, -(-n // _BLOCK))
    return _LANES * max(1, -(-n // (_LANES * n_blocks))), n_blocks


def _pad(values: Column, length: int, filler: float) -> Column:
    return np.concatenate([values, np.full(length - values.size, filler)])
