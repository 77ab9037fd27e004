r"""Logistic regression with an elastic-net penalty, the way R's glmnet computes it.

The published LASSO and RIDGE rows are the last model of glmnet's path. Where that path
ends, and how far the last model has converged, decide their fourth digit; hence
glmnet's own algorithm (Friedman, Hastie and Tibshirani 2010) and its stopping rules.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix

__all__ = ["ElasticNet", "last_of_path", "with_penalty"]

# glmnet's defaults: number of penalties, convergence threshold, smallest gain in the fraction
# of deviance explained, its largest value, and the number of penalties always tried.
_N_PENALTIES = 100
_THRESHOLD = 1e-7
_MIN_GAIN = 1e-5
_MAX_EXPLAINED = 0.999
_MIN_PENALTIES = 5


@final
@dataclass(frozen=True, slots=True, eq=False)
class ElasticNet:
    """A fitted model, for unscaled columns, and how many penalties were tried."""

    intercept: float
    slopes: FloatArray
    n_penalties: int

    def linear_predictor(self, columns: Matrix) -> Column:
        return np.asarray(self.intercept + columns @ self.slopes)


def last_of_path(columns: Matrix, y: Column, *, mixing: float) -> ElasticNet:
    r"""Follow the path of penalties down to its end.

    Minimises, for falling :math:`\lambda`, with standardised columns,

    .. math:: -\ell(\beta) / n + \lambda \sum_j \{\alpha |\beta_j| + (1 - \alpha) \beta_j^2 / 2\} .

    Parameters
    ----------
    mixing
        :math:`\alpha`: 1 for the lasso, 0 for ridge regression.
    """
    descent = _Descent(columns, y, mixing)
    n, p = columns.shape
    ratio = 1e-4 if n > p else 1e-2
    explained = 0.0
    tried = 0
    for penalty in descent.largest_penalty * ratio ** (
        np.arange(_N_PENALTIES) / (_N_PENALTIES - 1)
    ):
        descent.minimise(float(penalty))
        before, explained = explained, descent.explained
        tried += 1
        gained_little = explained - before < _MIN_GAIN and mixing > 0
        if tried >= _MIN_PENALTIES and (gained_little or explained > _MAX_EXPLAINED):
            break
    return descent.unscaled(tried)


def with_penalty(columns: Matrix, y: Column, *, mixing: float, share: float) -> ElasticNet:
    """Fit at one penalty, a share of the smallest one that leaves the intercept only."""
    descent = _Descent(columns, y, mixing)
    descent.minimise(share * descent.largest_penalty)
    return descent.unscaled(1)


class _Descent:
    """Coordinate descent on quadratic approximations of the likelihood."""

    def __init__(self, columns: Matrix, y: Column, mixing: float) -> None:
        self._centre, self._scale = columns.mean(axis=0), columns.std(axis=0)
        x = (columns - self._centre) / self._scale
        self._x, self._y, self._mixing = x, y, mixing
        self._rows = np.ascontiguousarray(x.T)
        share = float(y.mean())
        # glmnet's path for ridge regression starts as if a thousandth were lasso.
        self.largest_penalty = float(np.abs(x.T @ (y - share)).max()) / y.size / max(mixing, 1e-3)
        self.intercept = float(np.log(share / (1 - share)))
        self.slopes = np.zeros(x.shape[1])
        self._null = self._loss()
        self._tolerance = _THRESHOLD * self._null
        self._active = np.zeros(x.shape[1], dtype=bool)

    @property
    def explained(self) -> float:
        """Fraction of the null deviance that is explained."""
        return 1.0 - self._loss() / self._null

    def unscaled(self, n_penalties: int) -> ElasticNet:
        slopes = self.slopes / self._scale
        return ElasticNet(float(self.intercept - self._centre @ slopes), slopes, n_penalties)

    def _loss(self) -> float:
        eta = self.intercept + self._x @ self.slopes
        return float(np.logaddexp(0.0, eta).mean() - np.mean(self._y * eta))

    def minimise(self, penalty: float) -> None:
        """Repeat quadratic approximation and coordinate descent until convergence."""
        n = self._y.size
        while True:
            mean = 1.0 / (1.0 + np.exp(-(self.intercept + self._x @ self.slopes)))
            weights = mean * (1.0 - mean) / n
            curvature = (self._x**2).T @ weights
            intercept, slopes = self.intercept, self.slopes.copy()
            self._descend(penalty, weights, curvature, (self._y - mean) / n)
            moved = max(
                weights.sum() * (self.intercept - intercept) ** 2,
                float((curvature * (self.slopes - slopes) ** 2).max()),
            )
            if moved <= self._tolerance:
                return

    def _descend(
        self, penalty: float, weights: Column, curvature: FloatArray, residual: Column
    ) -> None:
        """Cycle over all coefficients, then over the active ones until convergence; repeat."""
        lasso, ridge = penalty * self._mixing, penalty * (1.0 - self._mixing)
        weighted = self._rows * weights
        total = float(weights.sum())
        everything = True
        while True:
            moved = 0.0
            columns = np.arange(curvature.size) if everything else np.flatnonzero(self._active)
            for j in columns:
                pull = float(self._rows[j] @ residual) + curvature[j] * self.slopes[j]
                new = np.sign(pull) * max(abs(pull) - lasso, 0.0) / (curvature[j] + ridge)
                step = new - self.slopes[j]
                if step != 0.0:
                    self.slopes[j] = new
                    residual -= step * weighted[j]
                    moved = max(moved, curvature[j] * step**2)
                    self._active[j] = True
            step = float(residual.sum()) / total
            self.intercept += step
            residual -= step * weights
            moved = max(moved, total * step**2)
            if moved >= self._tolerance:
                everything = False
            elif everything:
                return
            else:
                everything = True
