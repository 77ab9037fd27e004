"""Rejection of columns that are linear combinations of those already there."""

import numpy as np

from dbrm._typing import Column, Matrix

__all__ = ["Basis"]


class Basis:
    r"""An orthonormal basis that grows while new columns are independent of it.

    A column is refused when less than ``tolerance`` of its variance remains after
    projection on the basis, which is what a pivot of the Cholesky factor of the
    standardised Gram matrix measures, computed here from the rows without squaring
    the condition number.
    """

    def __init__(self, fixed: Matrix, capacity: int, tolerance: float = 1e-9) -> None:
        n_rows = fixed.shape[0]
        self._tolerance = tolerance
        self._vectors = np.empty((n_rows, capacity + fixed.shape[1] + 1), order="F")
        self._vectors[:, 0] = 1.0 / np.sqrt(n_rows)
        self._count = 1
        for column in fixed.T:
            self.admit(column)

    def admit(self, column: Column) -> bool:
        """Add a column and return ``True``, or refuse it and return ``False``."""
        if self._count == self._vectors.shape[1]:
            return False
        largest = np.max(np.abs(column))
        if not largest > 0:
            return False
        rest = column / largest
        basis = self._vectors[:, : self._count]
        rest -= rest.mean()
        spread = float(rest @ rest)
        rest = rest - basis @ (basis.T @ rest)
        rest -= basis @ (basis.T @ rest)
        left = float(rest @ rest)
        if not left > self._tolerance * spread or not spread > 1e-20 * column.size:
            return False
        self._vectors[:, self._count] = rest / np.sqrt(left)
        self._count += 1
        return True
