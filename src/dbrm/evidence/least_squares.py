"""Least squares: of one model from its rows, and of many over the same columns at once.

`TriangularRows` is the QR of all columns, of which the triangular factor stands in for the rows: it
has the same inner products to rounding, without their squared condition number. `GramMatrix` is
faster, and says where it is not accurate enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import scipy.linalg

from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.status import Status

__all__ = [
    "DEPENDENCE_TOLERANCE",
    "GramMatrix",
    "TriangularRows",
    "least_squares",
    "of_one_size",
    "residual_fraction",
]

# A column keeps less than this share of its variance beside the others: it is one of them.
DEPENDENCE_TOLERANCE = 1e-9
# Models are fitted from one Gram matrix if its smallest eigenvalue and the residual fraction are
# larger than these, and the lengths of its columns neither tiny nor huge.
_WELL_APART, _FAR_FROM_PERFECT, _SHORTEST = 1e-6, 1e-6, 1e-60
_EPSILON = np.finfo(np.float64).eps
# Models that are factorised at a time.
_AT_A_TIME = 500


@final
@dataclass(frozen=True, slots=True, eq=False)
class TriangularRows:
    """The triangular factor of columns of unit length, and the response in its coordinates.

    Parameters
    ----------
    inside, outside
        The response within the span of the columns, and its square outside.
    log_lengths
        Decimal logarithms of the lengths that the columns had, in units of the response.
    """

    triangle: Matrix
    inside: FloatArray
    outside: float
    log_lengths: FloatArray

    @classmethod
    def of(cls, columns: Matrix, response: FloatArray, log_lengths: FloatArray) -> Self:
        """Factorise columns of unit length, or of none."""
        basis, triangle = np.linalg.qr(columns)
        inside = basis.T @ response
        rest = response - basis @ inside
        rest -= basis @ (basis.T @ rest)
        return cls(triangle, inside, float(rest @ rest), log_lengths)

    def left(self, masks: Masks) -> FloatArray:
        """Squared length of what each model leaves; infinite where its columns depend."""
        found = np.full(len(masks), float(self.inside @ self.inside))
        for models, members in of_one_size(masks):
            if members.shape[1] > len(self.triangle):
                found[models] = np.inf
                continue
            basis, triangles = self._factorised(members)
            rest = np.tile(self.inside, (len(models), 1))
            for _ in range(2):
                projected = np.einsum("mqk,mq->mk", basis, rest)
                rest -= np.einsum("mqk,mk->mq", basis, projected)
            squares = np.einsum("mq,mq->m", rest, rest)
            found[models] = np.where(_depend(triangles), np.inf, squares)
        return found + self.outside

    def estimates(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients and inverse Gram matrices of models of one size, given by their columns.

        Those of columns of unit length; not finite where columns depend on each other.
        """
        if members.shape[1] > len(self.triangle):
            shape = (len(members), members.shape[1], members.shape[1])
            return np.full(shape[:2], np.nan), np.full(shape, np.nan)
        basis, triangles = self._factorised(members)
        depend = _depend(triangles)[:, None, None]
        sound = np.where(depend, np.eye(members.shape[1]), triangles)
        inverses = np.where(depend, np.nan, np.linalg.inv(sound))
        projected = np.einsum("mqk,q->mk", basis, self.inside)
        coefficients = np.einsum("mij,mj->mi", inverses, projected)
        return coefficients, np.einsum("mij,mkj->mik", inverses, inverses)

    def _factorised(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        basis, triangles = np.linalg.qr(np.moveaxis(self.triangle[:, members], 0, 1))
        return basis, triangles


def of_one_size(masks: Masks) -> Iterator[tuple[IntArray, IntArray]]:
    """Models of one size and their columns, a limited number at a time; none without columns."""
    sizes = masks.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        models = np.flatnonzero(sizes == size)
        for start in range(0, models.size, _AT_A_TIME):
            some = models[start : start + _AT_A_TIME]
            yield some, np.nonzero(masks[some])[1].reshape(-1, size)


def _depend(triangles: FloatArray) -> Mask:
    """Whether columns of unit length depend on each other, by their triangular factors."""
    diagonal = np.diagonal(triangles, axis1=1, axis2=2) ** 2
    return np.asarray(~(diagonal.min(axis=1, initial=1.0) > DEPENDENCE_TOLERANCE))


@final
@dataclass(frozen=True, eq=False)
class GramMatrix:
    """Inner products of columns of unit length about their means, and with the response.

    Parameters
    ----------
    lengths, means, mean
        Lengths and means of the columns, and the mean of the response.
    total
        Sum of squares of the response about its mean.
    """

    products: Matrix
    cross: FloatArray
    lengths: FloatArray
    means: FloatArray
    mean: float
    total: float

    @classmethod
    def of(cls, y: Column, columns: Matrix, weights: Column) -> Self:
        """Of these columns and a response, for rows of these weights."""
        with np.errstate(all="ignore"):
            means = weights @ columns / weights.sum()
            mean = float(weights @ y / weights.sum())
            root = np.sqrt(weights)
            block = (columns - means) * root[:, None]
            lengths = np.sqrt(np.einsum("ij,ij->j", block, block))
            block /= lengths
            target = (y - mean) * root
            products = (block.T @ block, block.T @ target)
        return cls(*products, lengths, means, mean, float(target @ target))

    def solve(self, members: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, Mask]:
        """Inverse Gram matrices, slopes and residual fractions; and where they are accurate."""
        cross = self.cross[members]
        products = self.products[members[:, :, None], members[:, None, :]]
        finite = np.isfinite(products).all(axis=(1, 2)) & np.isfinite(cross).all(axis=1)
        accurate: Mask = np.asarray(finite)
        # Lengths whose squares neither overflow nor vanish.
        inside = (self.lengths > _SHORTEST) & (self.lengths < 1.0 / _SHORTEST)
        accurate &= inside[members].all(axis=1)
        products = np.where(accurate[:, None, None], products, np.eye(members.shape[1]))
        accurate &= np.linalg.eigvalsh(products)[:, 0] > _WELL_APART
        products = np.where(accurate[:, None, None], products, np.eye(members.shape[1]))
        inverses = np.linalg.inv(products)
        slopes = np.einsum("mij,mj->mi", inverses, cross)
        with np.errstate(all="ignore"):
            fractions = 1.0 - np.einsum("mi,mi->m", slopes, cross) / self.total
            accurate &= fractions > _FAR_FROM_PERFECT
            lengths = self.lengths[members]
            inverses = inverses / (lengths[:, :, None] * lengths[:, None, :])
            return inverses, slopes / lengths, fractions, accurate


def residual_fraction(block: Matrix, target: FloatArray) -> tuple[float, Status]:
    """Squared length of what unit columns leave of the target, by pivoted QR."""
    if block.shape[1] == 0:
        return float(target @ target), Status.OK
    q, r, _ = scipy.linalg.qr(block, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(r))
    if diagonal.size < block.shape[1] or not np.all(diagonal**2 > DEPENDENCE_TOLERANCE):
        return np.inf, Status.RANK_DEFICIENT
    residual = target - q @ (q.T @ target)
    residual -= q @ (q.T @ residual)
    return float(residual @ residual), Status.OK


def least_squares(
    columns: Matrix,
    response: Column,
    weights: Column,
    shrinkage: float,
    *,
    intercept: bool = True,
) -> tuple[FloatArray, Matrix]:
    r"""Weighted least squares, shrunk towards the mean, or towards zero without an intercept.

    Returns the coefficients, intercept first, and the scale matrix of
    :math:`(\beta_0, \beta)` implied by :math:`\bar\mu \sim 1/n` and
    :math:`\beta \sim s (X_c' X_c)^{-1}`.
    """
    n = weights.sum()
    # A power of two brings every column to size one without rounding.
    _, exponents = np.frexp(np.max(np.abs(columns), axis=0, initial=0.0))
    scaled = np.ldexp(columns, -exponents)
    means = weights @ scaled / n
    mean = float(weights @ (response / 2) / n) * 2
    if not intercept:
        means, mean = np.zeros_like(means), 0.0
    centred = (scaled - means) * np.sqrt(weights)[:, None]
    target = (response - mean) * np.sqrt(weights)
    scale = np.maximum(np.linalg.norm(centred, axis=0), np.finfo(float).tiny)
    left, values, right = np.linalg.svd(centred / scale, full_matrices=False)
    kept = values > _EPSILON * max(centred.shape) * values.max(initial=0.0)
    inverse = (right[kept].T / values[kept]) / scale[:, None]
    slopes = shrinkage * inverse @ (left[:, kept].T @ target)
    covariance = np.empty((slopes.size + 1, slopes.size + 1))
    covariance[1:, 1:] = shrinkage * inverse @ inverse.T
    covariance[0, 1:] = covariance[1:, 0] = -covariance[1:, 1:] @ means
    covariance[0, 0] = intercept / n + means @ covariance[1:, 1:] @ means
    coefficients = np.concatenate([[mean - means @ slopes], slopes])
    powers = -np.concatenate([[0], exponents])
    with np.errstate(over="ignore"):
        return np.ldexp(coefficients, powers), np.ldexp(covariance, powers + powers[:, None])
