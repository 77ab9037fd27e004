r"""Evidence of a model with latent effects at given hyperparameters (paper, Sec. 2.4).

With :math:`\eta = o + X\beta + \sum_k Z_k\delta_k`, Laplace's method around the mode of
:math:`(\beta, \delta)` gives the likelihood that is left of the coefficients when the effects
are integrated out,

.. math:: \log\hat p(y|\hat\beta,\psi) = \hat\ell - \tfrac12\hat\delta'Q\hat\delta
    + \tfrac12\log|Q|^* - \tfrac12\log|Q + Z'WZ|,

and the information :math:`S = X'WX - X'WZ(Q + Z'WZ)^{-1}Z'WX` of the coefficients. Every
coefficient prior is used with these two as it is without latent effects: Jeffreys' prior
:math:`|S|^{1/2}` cancels, g-priors see :math:`S`. For a Gaussian response nothing is
approximated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from math import exp, log, pi
from typing import Any, final

import numpy as np

from dbrm._kernels.glm import NORMAL, TABLE
from dbrm._kernels.glm_dispersion import Constants, log_likelihood
from dbrm._kernels.nested_laplace import SINGULAR, STUCK, Mode, expand, find_mode
from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence.glm_prior import GlmPrior
from dbrm.evidence.latent.hyperpriors import PrecisionPrior
from dbrm.evidence.latent.layout import Layout
from dbrm.status import Status

__all__ = ["Conditional", "Noise", "Point", "Response"]

_STEPS = 60
_TOLERANCE = 1e-10
# Effects or noise beyond these log precisions are as good as absent, or as good as free.
LOG_LIMIT = 25.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """The rows as the kernels take them: family, link, mean response, totals, offset."""

    family: int
    link: int
    mean: Column
    total: Column
    offset: Column
    constants: Constants


@final
@dataclass(frozen=True, slots=True)
class Noise:
    r"""What is known of the dispersion: of :math:`\log(1/\phi)`.

    Parameters
    ----------
    given
        A known value; ``None`` where it is one more hyperparameter.
    prior
        Its prior; ``None`` where it is profiled, as in models without latent effects.
    """

    given: float | None = 0.0
    prior: PrecisionPrior | None = None

    @property
    def free(self) -> bool:
        """Whether it is a hyperparameter."""
        return self.given is None

    @property
    def profiled(self) -> bool:
        """Whether it is maximised over instead of integrated."""
        return self.free and self.prior is None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A model at one value of its hyperparameters.

    Parameters
    ----------
    value
        Log of evidence times hyperprior.
    delta, beta
        The mode; `beta` holds intercept and slopes of standardised columns, then the
        variables of the border.
    """

    theta: FloatArray
    value: float
    delta: FloatArray
    beta: FloatArray
    mode: Mode | None
    log_likelihood: float
    status: Status


@final
@dataclass(frozen=True, eq=False)
class Conditional:
    """A model, to be evaluated at any value of its hyperparameters.

    Parameters
    ----------
    layout
        The effects in the model.
    columns
        Its columns, standardised, without the intercept.
    scale
        What the columns were divided by.
    prior, row
        Prior of the coefficients, and the row of its table for this model size.
    own_precision
        Prior precisions of the intercept and the columns after it that have a normal prior of
        their own, with mean zero; zero for those under the common prior.
    intercept_constant
        What the common prior adds for a flat intercept, where there is none.
    """

    response: Response
    layout: Layout
    columns: Matrix
    scale: FloatArray
    prior: GlmPrior
    row: int
    noise: Noise
    own_precision: FloatArray = field(default_factory=lambda: np.zeros(1))
    intercept_constant: float = 0.0

    @cached_property
    def dense(self) -> Matrix:
        """Intercept, columns, border."""
        parts = [np.ones((self.response.mean.size, 1)), self.columns]
        parts += [border.columns for border in self.layout.border]
        return np.ascontiguousarray(np.hstack(parts))

    @cached_property
    def n_fixed(self) -> int:
        """Number of coefficients, the intercept among them."""
        return 1 + int(self.columns.shape[1])

    @cached_property
    def dimensions(self) -> list[int]:
        """Number of hyperparameters of each effect."""
        return [len(bound.effect.hyperparameters) for bound in self.layout.effects]

    @property
    def size(self) -> int:
        """Length of the vector of hyperparameters: noise first, then the effects."""
        return int(self.noise.free) + sum(self.dimensions)

    def split(self, theta: FloatArray) -> tuple[float, list[FloatArray]]:
        """Log of one over the dispersion, and the hyperparameters of each effect."""
        noise = float(theta[0]) if self.noise.given is None else self.noise.given
        return noise, [theta[part] for part in self._parts]

    @cached_property
    def _parts(self) -> list[slice]:
        """Places of the hyperparameters of each effect."""
        ends = accumulate(self.dimensions, initial=int(self.noise.free))
        return [slice(first, last) for first, last in pairwise(ends)]

    def begin(self) -> tuple[FloatArray, FloatArray]:
        """All effects and coefficients zero."""
        return np.zeros(self.layout.size), np.zeros(self.dense.shape[1])

    def at(self, theta: FloatArray, start: tuple[FloatArray, FloatArray] | None = None) -> Point:
        """Evaluate at one value of the hyperparameters, Newton's method from `start`."""
        delta, beta = (part.copy() for part in (start or self.begin()))
        if not all(abs(component) <= LOG_LIMIT for component in theta.tolist()):
            return Point(theta, -np.inf, delta, beta, None, -np.inf, Status.UNDEFINED)
        noise, psi = self.split(theta)
        rows = self.response
        ridge = self._ridge(psi)
        arguments = self._kernel_arguments(noise, psi, ridge)
        mode = find_mode(*arguments, delta, beta, _STEPS, _TOLERANCE)
        if mode.status == SINGULAR:
            return Point(theta, -np.inf, delta, beta, mode, -np.inf, Status.RANK_DEFICIENT)
        status = Status.NOT_CONVERGED if mode.status == STUCK else Status.OK
        likelihood = float(log_likelihood(rows.family, rows.constants, mode.value, exp(noise)))
        value = likelihood - mode.quadratic - 0.5 * mode.log_determinant
        value += self._log_hyperprior(noise, psi)
        value = self._score(value, mode, beta, ridge)
        return Point(theta, float(value), delta, beta, mode, likelihood, status)

    def expand(
        self, theta: FloatArray, delta: FloatArray, beta: FloatArray
    ) -> tuple[Matrix, FloatArray] | None:
        """Information of the coefficients at given variables, effects integrated out; gradient.

        ``None`` where there is none.
        """
        noise, psi = self.split(theta)
        arguments = self._kernel_arguments(noise, psi, self._ridge(psi))
        schur, right, sound = expand(*arguments, delta, beta)
        if not (sound and np.isfinite(schur).all() and np.isfinite(right).all()):
            return None
        k = self.n_fixed
        if self.layout.border:
            pull = np.linalg.solve(schur[k:, k:], right[k:])
            right = right[:k] - schur[:k, k:] @ pull
            schur = eliminate(schur, np.arange(k))
        if 0 in self._own:
            # There is no intercept: it takes nothing from the other coefficients.
            schur[0], schur[:, 0], right[0] = 0.0, 0.0, 0.0
            schur[0, 0] = 1.0
        return schur, right

    def _kernel_arguments(
        self, noise: float, psi: Sequence[FloatArray], ridge: Matrix
    ) -> tuple[Any, ...]:
        rows, layout = self.response, self.layout
        return (
            rows.family,
            rows.link,
            exp(noise),
            rows.mean,
            rows.total,
            rows.offset,
            self.dense,
            layout.rows,
            layout.loadings,
            layout.precision(psi),
            ridge,
            layout.constraints,
        )

    @cached_property
    def _is_strict(self) -> bool:
        return self.prior.strict

    def _log_hyperprior(self, noise: float, psi: Sequence[FloatArray]) -> float:
        """Of all hyperparameters, and half the log determinants of the effects."""
        total = 0.0 if self.noise.prior is None else self.noise.prior.log_density(noise)
        for bound, own in zip(self.layout.effects, psi, strict=True):
            total += 0.5 * bound.effect.log_determinant(own, bound.positions)
            total += bound.effect.log_hyperprior(own)
        return total

    @cached_property
    def slope_precision(self) -> FloatArray:
        """Prior precision of each slope; zero under priors that are functions of the fit."""
        if self.prior.kind != NORMAL:
            return np.zeros(self.scale.size)
        return self.prior.rate / self.prior.units(self.scale) ** 2

    def _ridge(self, psi: Sequence[FloatArray]) -> Matrix:
        """Prior precision of what is dense."""
        size = self.dense.shape[1]
        ridge = np.zeros((size, size))
        if self.prior.kind == NORMAL:
            slopes = np.arange(1, self.n_fixed)
            ridge[slopes, slopes] = self.slope_precision
        own = self._own
        ridge[own, own] = self.own_precision[own]
        first = self.n_fixed
        for border in self.layout.border:
            last = first + border.basis.shape[1]
            ridge[first:last, first:last] = border.precision(psi[border.number])
            first = last
        return ridge

    @cached_property
    def _own(self) -> IntArray:
        """Places of the coefficients with a prior of their own."""
        return np.flatnonzero(self.own_precision)

    @cached_property
    def _common(self) -> IntArray:
        """Places of the coefficients under the common prior, a flat intercept first."""
        return np.setdiff1d(np.arange(self.n_fixed), self._own)

    def _score(self, value: float, mode: Mode, beta: FloatArray, ridge: Matrix) -> float:
        """Integrate out border and coefficients: those with normal priors, then the others."""
        table, common = self.prior.table, self._common
        normal = np.setdiff1d(np.arange(len(ridge)), common)
        if normal.size:
            value -= 0.5 * float(np.linalg.slogdet(mode.schur[np.ix_(normal, normal)])[1])
            value += 0.5 * float(np.log(self.own_precision[self._own]).sum())
        flat = 0 in common
        value -= 0.0 if self.prior.kind == NORMAL else self.intercept_constant
        if not self._is_strict:
            return value + float(table.constant[self.row])
        schur, slopes = eliminate(mode.schur, common), beta[common[int(flat) :]]
        if self.prior.kind == TABLE:
            wald = float(slopes @ schur[flat:, flat:] @ slopes)
            if not flat:
                return table.value(value, 0.0, wald, self.row)
            wald -= float(schur[0, 1:] @ slopes) ** 2 / float(schur[0, 0])
            return table.value(value, log(schur[0, 0]), max(wald, 0.0), self.row)
        value += 0.5 * float(np.log(np.diag(ridge)[common[int(flat) :]]).sum())
        value += 0.5 * log(2 * pi) if flat else 0.0
        return value - 0.5 * float(np.linalg.slogdet(schur)[1])


def eliminate(matrix: Matrix, kept: IntArray) -> Matrix:
    """Schur complement of everything but the places that are kept."""
    if kept.size == len(matrix):
        return matrix
    rest = np.setdiff1d(np.arange(len(matrix)), kept)
    pull = np.linalg.solve(matrix[np.ix_(rest, rest)], matrix[np.ix_(rest, kept)])
    return np.asarray(matrix[np.ix_(kept, kept)] - matrix[np.ix_(kept, rest)] @ pull)
