r"""Mixtures of g-priors: everything that follows from a density of :math:`u = 1/(1+g)`.

.. math:: \frac{p(y|M)}{p(y|M_0)} = \int u^{p/2}\{1 - R^2(1-u)\}^{-(n-1)/2}\pi(u)\,du,

and with :math:`e^{-Wu/2}` in place of the braces for a generalised linear model with
Wald statistic :math:`W` (Liang et al. 2008; Li and Clyde 2018).
"""

from abc import abstractmethod
from functools import lru_cache
from math import ceil, inf

import numpy as np
import numpy.typing as npt

from dbrm._kernels.piecewise import COEFFICIENTS
from dbrm._kernels.quadrature import gaussian_mixtures, glm_mixtures
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evidence.coefficient_priors.base import (
    CoefficientPrior,
    GaussianShape,
    GaussianSummary,
    log_evidence_of_null,
    where_estimable,
)
from dbrm.evidence.coefficient_priors.fixed_g import GLM_CONSTANT, shrunken_summary
from dbrm.evidence.coefficient_priors.mixing import MixingDensity
from dbrm.evidence.coefficient_priors.tabulate import WIDEST, panels_per_unit, tabulate
from dbrm.evidence.score import GlmTable, Pieces, ScoreTable

__all__ = ["MixturePrior", "gaussian_log_factors", "glm_log_factors"]

# Wald statistics above this are taken to be equal to it.
LARGEST_WALD = 1e13
GLM_LENGTH = WIDEST * ceil(np.log1p(LARGEST_WALD) / WIDEST)


class MixturePrior(CoefficientPrior):
    """A g-prior whose g has a prior of its own.

    An author of a new one supplies `mixing`; the rest is numerical integration.
    Instances must be hashable: tables are kept between populations.
    """

    @abstractmethod
    def mixing(self, size: int, n: float) -> MixingDensity | None:
        """Density of u for models of `size` >= 1 columns; ``None`` where undefined."""

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        length = WIDEST * ceil(np.log1p(shape.n * (1.0 / shape.floor - 1.0)) / WIDEST)
        length = max(length, WIDEST)
        pieces, per_unit, defined = _stack(self, sizes, shape.n, length, glm=False)
        constant = np.where(defined, log_evidence_of_null(shape), -inf)
        zeros = np.zeros(sizes.size)
        return ScoreTable(
            constant=where_estimable(constant, sizes, shape.n),
            log_slope=zeros,
            complement_slope=zeros,
            shift=0.0,
            linear=0.0,
            ceiling=np.ones(sizes.size),
            pieces=pieces,
            scale=shape.n,
            inverse_width=float(per_unit),
        )

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:
        pieces, per_unit, defined = _stack(self, sizes, n, GLM_LENGTH, glm=True)
        zeros = np.zeros(sizes.size)
        constant = np.where(defined, GLM_CONSTANT, -inf)
        return GlmTable(constant, -0.5, zeros, zeros, zeros, pieces, float(per_unit))

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        mixing = self.mixing(size, shape.n) if size else None
        if mixing is None:
            return shrunken_summary(0.0, fraction, shape)
        odds = np.array([(1.0 - fraction) / fraction])
        _, mean = gaussian_log_factors(mixing, size, shape.n + 1.0 - shape.of_mean, odds)
        return shrunken_summary(float(mean[0]), fraction, shape)


def gaussian_log_factors(
    mixing: MixingDensity, size: int, n: float, odds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Log Bayes factors and posterior means of :math:`u` at values of :math:`R^2/(1-R^2)`."""
    grid = mixing.grid(size, _sharpest(size, n, float(odds.max(initial=0.0))))
    values, means = gaussian_mixtures(grid.base, grid.u, 0.5 * (n - 1), odds)
    return values, means


def glm_log_factors(
    mixing: MixingDensity, size: int, wald: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Log of :math:`\int u^{p/2}e^{-Wu/2}\pi(u)du` and posterior means of :math:`u`."""
    grid = mixing.grid(size, 1.0 / (1.0 + float(wald.max(initial=0.0))))
    values, means = glm_mixtures(grid.base, grid.u, wald)
    return values, means


def _sharpest(size: int, n: float, odds: float) -> float:
    return min(1.0, (1.0 + size) / max(n, 1.0)) / (1.0 + odds)


def _stack(
    prior: MixturePrior, sizes: IntArray, n: float, length: int, *, glm: bool
) -> tuple[Pieces, int, npt.NDArray[np.bool_]]:
    """Rows of all sizes, their panels per unit, and which sizes the prior is defined for."""
    defined = np.array(
        [size == 0 or _mixing(prior, size, n, glm=glm) is not None for size in sizes.tolist()],
        dtype=np.bool_,
    )
    wanted = np.flatnonzero(defined & (sizes > 0))
    per_unit = panels_per_unit(int(sizes.max(initial=0)))
    while True:
        rows = [_row(prior, int(sizes[i]), n, length, per_unit, glm=glm) for i in wanted]
        if all(row is not None for row in rows):
            break
        per_unit *= 2
    pieces = np.zeros((sizes.size, length * per_unit, COEFFICIENTS))
    for i, row in zip(wanted, rows, strict=True):
        pieces[i] = row
    return pieces, per_unit, defined


def _mixing(prior: MixturePrior, size: int, n: float, *, glm: bool) -> MixingDensity | None:
    """Density of u; none where the prior, or a Gaussian model of this size, is undefined."""
    return prior.mixing(size, n) if glm or size + 1 < n else None


@lru_cache(maxsize=512)
def _row(
    prior: MixturePrior, size: int, n: float, length: int, per_unit: int, *, glm: bool
) -> Matrix | None:
    """Build one row (some 25 kB, kept for the next population); none if panels are too wide."""
    mixing = _mixing(prior, size, n, glm=glm)
    assert mixing is not None

    def glm_factor(argument: FloatArray) -> FloatArray:
        return glm_log_factors(mixing, size, np.expm1(argument))[0]

    def gaussian_factor(argument: FloatArray) -> FloatArray:
        return gaussian_log_factors(mixing, size, n, np.expm1(argument) / n)[0]

    return tabulate(glm_factor if glm else gaussian_factor, length, per_unit)
