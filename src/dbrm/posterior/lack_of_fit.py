r"""Lack of fit: is something smooth left that the best formula does not have?

The alternative to "one of the formulas" has a marginal likelihood of its own. Beside the columns of
the best model there is a remainder, a Gaussian process over the covariates, used or not, and over
the features of the model.
"""

from collections.abc import Iterator
from math import log
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
import scipy.special

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.data import Table
from dbrm.errors import InvalidSettingError
from dbrm.evolution import Problem
from dbrm.features import Feature, evaluate
from dbrm.features.slopes import number_slopes
from dbrm.posterior.source import LiveSource, StoredSource

if TYPE_CHECKING:
    from dbrm.posterior.posterior import Posterior

__all__ = ["find_lack_of_fit", "known_lack_of_fit", "log_bayes_factor", "smooth_remainder"]

# Signal-to-noise ratios of the remainder, per row; length scales over one covariate and over all,
# in standard deviations.
_RATIOS = 10.0 ** np.arange(-1, 9)
_LENGTHS_OF_ONE, _LENGTHS_OF_ALL = (0.2, 0.6, 2.0), (0.5, 1.0, 2.0)
# Rows in which the process is free, rows and covariates that take part.
_FREE_ROWS, _MOST_ROWS, _MOST_COVARIATES = 150, 1_000, 30
# Smallest error of a row, in standard deviations of the response: what is less is rounding.
SMALLEST_ERROR = 1e-10
# A column that keeps less than this share of its length beside the others, or varies less, is
# left out.
_DEPENDENT = 1e-9


def find_lack_of_fit(posterior: "Posterior") -> float:
    """Probability of a smooth remainder beside the best model; see `Posterior.lack_of_fit`."""
    source = posterior._source
    if source.glm is not None:
        msg = (
            "lack_of_fit compares a formula with a Gaussian process beside it: it needs a Gaussian "
            f"response and no latent effects; this one is {posterior.family.text!r}."
        )
        raise InvalidSettingError(msg)
    assert isinstance(source, LiveSource)
    return smooth_remainder(source.problem, list(posterior.best_model.terms))


def smooth_remainder(problem: Problem, features: list[Feature]) -> float:
    """Probability of a smooth remainder beside a model of these features; Gaussian responses."""
    # A row of weight two is here once: repeated, its error would look like structure.
    seen = problem.engine.likelihood()
    rows = np.linspace(0, seen.response.size - 1, min(seen.response.size, _MOST_ROWS))
    rows = rows.astype(np.int64)
    table = problem.table.take(rows)
    columns = evaluate(features, table)[0]
    slopes = [number_slopes(feature, table) for feature in features]
    factor = log_bayes_factor(
        (seen.response - seen.offset)[rows],
        columns,
        np.column_stack([np.empty((rows.size, 0)), *slopes]),
        _covariates(features, table),
    )
    return float(scipy.special.expit(factor))


def known_lack_of_fit(posterior: "Posterior") -> float | None:
    """The same; ``None`` unless the response is Gaussian, or if an older file does not have it."""
    source = posterior._source
    if isinstance(source, StoredSource):
        return source.lack_of_fit
    return None if source.glm is not None else posterior.lack_of_fit


def _covariates(features: list[Feature], table: Table) -> Matrix:
    """Those that the model uses, then the others in their order."""
    used = {name for feature in features for name in feature.covariates}
    order = sorted(table.names, key=lambda name: name not in used)
    return table.values[:, [table.names.index(name) for name in order[:_MOST_COVARIATES]]]


def log_bayes_factor(
    response: Column, columns: Matrix, slopes: Matrix, covariates: Matrix
) -> float:
    r"""Log Bayes factor of a smooth remainder against independent errors alone.

    With the columns :math:`H` of the model, an intercept and the derivatives by fitted numbers
    among them, under flat priors of their coefficients and the prior :math:`1/\sigma^2`,

    .. math:: y \sim N\{H\beta, \sigma^2 (I + \lambda K)\}, \qquad
        \mathrm{BF}(K, \lambda) = |I + \lambda K_M|^{-1/2}
        \left\{\frac{r^T (I + \lambda K_M)^{-1} r + m \delta^2}{r^T r + m \delta^2}\right\}^{-m/2}

    with the residuals :math:`r = My` on :math:`m` degrees of freedom, :math:`K_M = MKM` scaled to
    the trace :math:`m`, and the smallest error :math:`\delta`. The result is the mean over four
    kinds of kernels, three length scales each, and ten ratios :math:`\lambda` from 0.1 to
    :math:`10^8`: squared exponential kernels of all covariates; the same times the fitted values
    of both rows, for a remainder that grows with the response; and sums of kernels of single
    covariates, and of single features. The process is free in 150 rows, and interpolates between
    them.
    """
    varying = _standardized(response[:, None])
    if not varying.size:
        return 0.0
    scaled = varying[:, 0]
    basis = _basis(np.column_stack([columns, slopes]))
    left = scaled - basis @ (basis.T @ scaled)
    left -= basis @ (basis.T @ left)
    free = response.size - basis.shape[1]
    if free < 1:
        return 0.0
    inner = (_standardized(covariates), _standardized(columns), scaled - left)
    factors = [_of_kernel(kernel, rows, left, basis, free) for kernel, rows in _kernels(*inner)]
    if not factors:
        return 0.0
    return float(scipy.special.logsumexp(factors) - log(len(factors) * _RATIOS.size))


def _standardized(columns: Matrix) -> Matrix:
    """Columns that vary, with mean zero and variance one."""
    size = np.maximum(np.max(np.abs(columns), axis=0, initial=0.0), np.finfo(float).tiny)
    columns = columns / size
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    varying: Matrix = centred[:, spread > _DEPENDENT] / spread[spread > _DEPENDENT]
    return varying


def _basis(columns: Matrix) -> Matrix:
    """Orthonormal basis of an intercept and columns, without those that depend on others."""
    ones = np.full((len(columns), 1), len(columns) ** -0.5)
    unit = _standardized(columns) * ones
    if not unit.size:
        return ones
    q, r, _ = scipy.linalg.qr(unit, mode="economic", pivoting=True)
    return np.column_stack([ones, q[:, np.abs(np.diag(r)) > _DEPENDENT]])


def _kernels(
    covariates: Matrix, features: Matrix, fitted: Column
) -> Iterator[tuple[Matrix, IntArray]]:
    """Kernels between all rows and the free ones, with the positions of the latter."""
    n = fitted.size
    free = np.linspace(0, n - 1, min(n, _FREE_ROWS)).astype(np.int64)
    for columns in (covariates, features):
        if columns.shape[1]:
            squares = (columns[:, None, :] - columns[None, free, :]) ** 2
            for length in _LENGTHS_OF_ONE:
                yield np.exp(-0.5 / length**2 * squares).mean(axis=2), free
    if covariates.shape[1]:
        squares = ((covariates[:, None, :] - covariates[None, free, :]) ** 2).mean(axis=2)
        for length in _LENGTHS_OF_ALL:
            kernel = np.exp(-0.5 / length**2 * squares)
            yield kernel, free
            if features.shape[1]:
                yield kernel * np.outer(fitted, fitted[free]), free


def _of_kernel(
    kernel: Matrix, free_rows: IntArray, left: Column, basis: Matrix, free: int
) -> FloatArray:
    """Log Bayes factors of one kernel, for all signal-to-noise ratios."""
    values, vectors = np.linalg.eigh(kernel[free_rows])
    kept = values > 1e-10 * values[-1]
    process = kernel @ (vectors[:, kept] / np.sqrt(values[kept]))
    process -= basis @ (basis.T @ process)
    values, vectors = np.linalg.eigh(process.T @ process)
    scale = float(values.sum()) / free
    if not scale > _DEPENDENT:
        return np.zeros(_RATIOS.size)
    values, ratios = np.maximum(values, 0.0) / scale, _RATIOS[:, None]
    squares = (vectors.T @ (process.T @ left)) ** 2 / scale
    before, floor = float(left @ left), free * SMALLEST_ERROR**2
    after = before - (ratios * squares / (1.0 + ratios * values)).sum(axis=1)
    gain = np.log((np.maximum(after, 0.0) + floor) / (before + floor))
    factors: FloatArray = -0.5 * (np.log1p(ratios * values).sum(axis=1) + free * gain)
    return factors
