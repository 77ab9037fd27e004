r"""What candidates are to explain: the residual of a model, on weighted rows.

To second order around a model the log likelihood is that of a weighted linear regression
(`dbrm.evidence.ScoreTest`). With scores :math:`s_i`, weights :math:`w_i` and :math:`Q` an
orthonormal basis of the model's columns times :math:`\sqrt w`, the intercept among them, a column
:math:`x` explains the share

.. math:: \frac{(\sum_i s_i x_i)^2}
    {(\sum_i w_i x_i^2 - \|Q^T (\sqrt w\, x)\|^2) \sum_i s_i^2 / w_i} .
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm._typing import Column, IntArray, Matrix

__all__ = ["Target", "thinned_rows"]

# A column with a smaller share of its squares outside the model is inside.
_FLAT = 1e-10
# Length below which a direction, of columns of length one, depends on the others.
_DEPENDENT = 1e-7
# Below one, so that the logarithm of what is left is finite.
_MOST = 1.0 - 1e-12


@final
@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A residual and the model that it belongs to.

    Parameters
    ----------
    root
        Square roots of the weights.
    residual
        The scores divided by these, orthogonal to `span`.
    span
        Orthonormal columns; the first is that of the intercept.
    """

    root: Column
    residual: Column
    span: Matrix

    @classmethod
    def of(cls, scores: Column, span: Matrix | None = None, weights: Column | None = None) -> Self:
        """Of a model with these scores.

        Parameters
        ----------
        span
            Columns, times the roots of the weights, that span the model beside the intercept.
        weights
            The information in each row; one if omitted.
        """
        root = np.ones(scores.size) if weights is None else np.sqrt(weights)
        residual = np.divide(scores, root, out=np.zeros(scores.size), where=root > 0.0)
        basis = root[:, None] / np.linalg.norm(root)
        if span is not None and span.shape[1]:
            span = span / np.maximum(np.linalg.norm(span, axis=0), np.finfo(float).tiny)
            # The intercept may be among what the columns span.
            left, lengths, _ = np.linalg.svd(span - basis @ (basis.T @ span), full_matrices=False)
            basis = np.hstack([basis, left[:, lengths > _DEPENDENT]])
        residual = residual - basis @ (basis.T @ residual)
        return cls(root, residual, basis)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.residual.size

    def thinned(self, most: int) -> "Target":
        """The same on at most so many rows, evenly thinned out."""
        rows = thinned_rows(self.n_rows, most)
        if rows.size == self.n_rows:
            return self
        basis, _ = np.linalg.qr(self.span[rows])
        residual = self.residual[rows]
        return Target(self.root[rows], residual - basis @ (basis.T @ residual), basis)

    def share(self, column: Column) -> float:
        """Share that a column explains; zero if there is nothing to explain it with."""
        column = column * self.root
        squares, inside = float(column @ column), self.span.T @ column
        left = squares - float(inside @ inside)
        if not _FLAT * squares < left < np.inf:
            return 0.0
        whole = left * float(self.residual @ self.residual)
        # A perfect fit leaves nothing to explain.
        return min(float(self.residual @ column) ** 2 / whole, _MOST) if whole > 0.0 else 0.0

    def normal_equations(self, rows: Matrix) -> tuple[Matrix, Column]:
        """Inner products of columns, the rows of a matrix, outside the model; with the residual."""
        rows = rows * self.root
        inside = rows @ self.span
        return rows @ rows.T - inside @ inside.T, rows @ self.residual

    def beside(self, column: Column) -> tuple["Target", float]:
        """What a column beside the model leaves, and the share that it explains."""
        column = column * self.root
        column = column - self.span @ (self.span.T @ column)
        column /= np.linalg.norm(column)
        fitted = float(column @ self.residual)
        left = Target(
            self.root, self.residual - fitted * column, np.column_stack([self.span, column])
        )
        return left, fitted**2 / float(self.residual @ self.residual)


def thinned_rows(n_rows: int, most: int) -> IntArray:
    """Positions of at most so many rows, evenly spaced."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64)
