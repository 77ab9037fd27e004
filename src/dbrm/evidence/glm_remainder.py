r"""A remainder beside the features of a generalised linear model, by Laplace's method.

.. math:: \eta = \beta_0 + \sum_{F \in M} \beta_F F + \sqrt\tau \sum_j u_j z_j, \qquad
    u_j \sim N(0, 1),

with columns :math:`z_j` as in `dbrm.evidence.remainder`. Jeffreys' rule, under which formulas are
compared with one another, takes the highest likelihood for the evidence but for a constant. Where
classes are separated, or nearly so, that is too much by ten nats and more, because the maximum is
far away or at infinity. Beside a remainder, and where formulas are compared with one, coefficients
therefore have a proper prior with the information of :math:`1/c` observations,
:math:`\beta \sim N(0, c n (F'W_0F)^{-1})` with :math:`W_0` the information of the rows at the null
model. With :math:`P` the precision of all but the intercept, and :math:`W` the information at the
joint mode,

.. math:: \log p(y \mid M, \tau) = \ell(\hat\theta) - \tfrac12 \hat\theta' P \hat\theta
    + \tfrac12 \log |P| - \tfrac12 \log |X'WX + P| + c_0 ,

where :math:`c_0` is the constant of the null model, as Jeffreys' prior of the intercept cancels.
Independent normal coefficients of standardised columns, under which formulas of binary responses
are compared with one another, are such a prior: then :math:`P` is theirs beside a remainder, too,
and with the flat prior of the intercept the last determinant is that of the whole matrix and
:math:`c_0 = \tfrac12 \log 2\pi`.

The posterior is skewed: it reaches further away from zero than towards it, and probabilities that
integrate over a normal around the mode are too timid, the more the better classes are
separated. To first order its mean is, from the mode, with :math:`C` the covariance of all,

.. math:: -\tfrac12\, C \sum_i w_i'\, x_i' (X'WX + P)^{-1} x_i\, (1, x_i) ,

for a canonical link: of the leverage of a row that of the intercept does not count where Jeffreys'
prior makes up for it; under a flat one it does.

It sees columns, never features. For families without a dispersion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, pi, sqrt
from typing import Protocol, Self, final

import numpy as np
import scipy.linalg
from scipy.special import logsumexp
from scipy.stats import chi2

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.base import ModelFit
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.coefficient_priors.radial import Normal
from dbrm.evidence.families import AbstractFamily
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.predictor import AbstractPredictorLikelihood, Slope
from dbrm.evidence.remainder import RemainderFit
from dbrm.evidence.variance_components import Quadratic
from dbrm.status import Status

__all__ = ["AnyMode", "GlmRemainder", "Mode", "mix_widths"]

_ITERATIONS, _HALVINGS = 40, 30
# What is left of the log likelihood at the mode.
_REMAINDER = 1e-9
# Prior variances of coefficients, in those of the unit information prior, whose weights together
# make Zellner's and Siow's: its reciprocal is chi-squared with one degree of freedom.
_WIDTHS = tuple(4.0**k for k in range(-1, 5))
# Derivatives of the information are differences over this step.
_STEP = 1e-3
# No expansion holds further out than this many standard deviations.
_FARTHEST = 2.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """The joint mode of coefficients and effects.

    Parameters
    ----------
    log_evidence
        Minus infinity where there is no mode.
    parameters
        Intercept, coefficients of the standardised columns, and the effects :math:`u`.
    factor
        Cholesky factor of the information, with the precision of the prior.
    precision
        Of coefficients and effects, zero for the intercept.
    size
        Number of coefficients, the intercept among them.
    """

    log_evidence: float
    log_likelihood: float
    parameters: FloatArray
    factor: Matrix
    precision: Matrix
    size: int

    @property
    def covariance(self) -> Matrix:
        """Of coefficients and effects."""
        return np.asarray(scipy.linalg.cho_solve((self.factor, True), np.eye(len(self.factor))))

    @property
    def wald(self) -> FloatArray:
        """Squared coefficients of the columns over their variances."""
        unit = np.eye(len(self.factor), self.size)[:, 1:]
        variances = np.sum(
            scipy.linalg.solve_triangular(self.factor, unit, lower=True) ** 2, axis=0
        )
        return np.asarray(self.parameters[1 : self.size] ** 2 / variances)

    def quadratic(self, scale: FloatArray) -> Quadratic:
        """The likelihood of the effects to second order, the coefficients at their best.

        Parameters
        ----------
        scale
            Standard deviations of the effects at this mode, in the units of the result.
        """
        k, effects = self.size, self.parameters[self.size :]
        information = self.factor @ self.factor.T
        within = information[k:, k:] - np.eye(effects.size)
        across = scipy.linalg.solve_triangular(
            np.linalg.cholesky(information[:k, :k]), information[:k, k:], lower=True
        )
        within -= across.T @ across
        return Quadratic(within / np.outer(scale, scale), (within @ effects + effects) / scale)


@final
@dataclass(frozen=True, slots=True, eq=False)
class GlmRemainder:
    """The columns about their means in their units, and the likelihood of the rows.

    Parameters
    ----------
    prior, n
        Prior of the coefficients beside the remainder, and the number of observations.
    means, units
        Of the columns.
    block
        The columns about their means, in these units.
    null_information
        Of the rows, where the linear predictor is the same in all.
    """

    likelihood: AbstractPredictorLikelihood
    prior: CoefficientPrior
    n: float
    means: FloatArray
    units: FloatArray
    block: Matrix
    null_information: FloatArray

    @classmethod
    def of(cls, engine: GlmEngine, columns: Matrix, units: FloatArray) -> Self:
        """The remainder of these columns; `units` are meant up to a common factor."""
        likelihood = engine.likelihood()
        total = likelihood.total / likelihood.total.sum()
        means = total @ columns
        block = (columns - means) / units
        size = sqrt(float(total @ np.sum(block**2, axis=1)))
        information = _null_information(engine)
        return cls(
            likelihood, engine.prior, engine.n, means, units * size, block / size, information
        )

    @classmethod
    def nothing(cls, engine: GlmEngine) -> Self:
        """No remainder at all: models of features under the same prior."""
        none = np.empty((engine.n_rows, 0))
        likelihood = engine.likelihood()
        information = _null_information(engine)
        return cls(likelihood, engine.prior, engine.n, none[0], none[0], none, information)

    @staticmethod
    def is_possible(engine: GlmEngine) -> bool:
        """Whether the prior is Jeffreys' rule or ridge regression; no dispersion, none fixed."""
        family = engine.family
        assert isinstance(family, AbstractFamily)
        prior = glm_prior(engine.prior, np.zeros(1, dtype=np.int64), engine.n, dispersed=False)
        known = not prior.strict or _ridge(engine.prior) is not None
        return known and not (family.has_dispersion or engine.n_always)

    @staticmethod
    def shares_prior(engine: GlmEngine) -> bool:
        """Whether formulas have the same proper prior without a remainder."""
        return _ridge(engine.prior) is not None

    def find_mode(
        self, columns: Matrix, ratio: float, start: FloatArray | None = None, width: float = 1.0
    ) -> Mode:
        """The mode of the model with exactly these columns, from that of another ratio.

        Parameters
        ----------
        width
            :math:`c`, the prior variance of coefficients in those of unit information; not used
            in ridge regression.
        """
        size = 1 + columns.shape[1]
        design = self._design(columns, ratio)
        precision = self._precision(design[:, 1:size], width)
        here = np.zeros(len(precision)) if start is None else start
        slope = self.likelihood.at(design @ here)
        for _ in range(_ITERATIONS):
            gradient = design.T @ slope.score - precision @ here
            information = (design * slope.information[:, None]).T @ design + precision
            factor = _factor(information)
            if factor is None:
                break
            step = scipy.linalg.cho_solve((factor, True), gradient)
            if 0.5 * float(gradient @ step) < _REMAINDER:
                return self._mode(slope, here, factor, precision, size)
            moved = self._climb(design, precision, slope, here, step)
            if moved is None:
                break
            here, slope = moved
        return Mode(-inf, -inf, here, np.eye(here.size), precision, size)

    def wide_log_evidence(self, columns: Matrix) -> float:
        """Log evidence of the model with exactly these columns, under Zellner's and Siow's prior.

        Not with a remainder.
        """
        return mix_widths(lambda width, start: self.find_mode(columns, 1.0, start, width))

    def fit(self, columns: Matrix, ratio: float) -> RemainderFit:
        """Fit the model with exactly these columns."""
        mode = self.find_mode(columns, ratio)
        _, means, sds = _standardise(columns, self.likelihood.total)
        k = mode.size
        back = np.eye(mode.parameters.size)
        back[0, 1:k] = -means / sds
        back[np.arange(1, k), np.arange(1, k)] = 1.0 / sds
        back[np.arange(k, len(back)), np.arange(k, len(back))] = sqrt(ratio)
        parameters, covariance = back @ mode.parameters, back @ mode.covariance @ back.T
        shift = back @ self._shift(mode, self._design(columns, ratio))
        fit = ModelFit(
            log_evidence=mode.log_evidence,
            log_likelihood=mode.log_likelihood,
            coefficients=parameters[:k],
            covariance=covariance[:k, :k],
            dispersion=1.0,
            degrees_of_freedom=inf,
            status=Status.OK if mode.log_evidence > -inf else Status.NOT_CONVERGED,
        )
        return RemainderFit(fit, parameters[k:], covariance[k:, k:], covariance[k:, :k], shift)

    def _design(self, columns: Matrix, ratio: float) -> Matrix:
        rows = np.ones((len(columns), 1))
        own, _, _ = _standardise(columns, self.likelihood.total)
        return np.hstack([rows, own, sqrt(ratio) * self.block])

    def _shift(self, mode: Mode, design: Matrix) -> FloatArray:
        """Posterior mean of coefficients and effects minus their mode, to first order."""
        eta = design @ mode.parameters
        below, above = (self.likelihood.at(eta + move).information for move in (-_STEP, _STEP))
        pull = (below - above) / (2.0 * _STEP)
        if _ridge(self.prior) is None:
            factor = scipy.linalg.cholesky(mode.factor[1:] @ mode.factor[1:].T, lower=True)
            rows = scipy.linalg.solve_triangular(factor, design[:, 1:].T, lower=True)
        else:
            rows = scipy.linalg.solve_triangular(mode.factor, design.T, lower=True)
        leverage = np.sum(rows**2, axis=0)
        covariance = mode.covariance
        shift = 0.5 * covariance @ (design.T @ (pull * leverage))
        far = float(np.max(np.abs(shift) / np.sqrt(np.diag(covariance))))
        if not np.isfinite(far):
            return np.zeros_like(shift)
        return np.asarray(shift * min(1.0, _FARTHEST / max(far, _FARTHEST)))

    def _precision(self, own: Matrix, width: float) -> Matrix:
        """Prior precision of intercept, coefficients of these columns, and effects."""
        size = 1 + own.shape[1]
        precision = np.zeros((size + self.units.size,) * 2)
        ridge = _ridge(self.prior)
        if ridge is None:
            weights = self.null_information
            centred = own - weights @ own / weights.sum()
            precision[1:size, 1:size] = centred.T @ (weights[:, None] * centred) / (width * self.n)
        else:
            precision[1:size, 1:size] = ridge * np.eye(size - 1)
        places = np.arange(size, len(precision))
        precision[places, places] = 1.0
        return precision

    def _climb(
        self, design: Matrix, precision: Matrix, slope: Slope, here: FloatArray, step: FloatArray
    ) -> tuple[FloatArray, Slope] | None:
        """The step, halved until it does not lead down; nothing if it always does."""
        before = slope.value - 0.5 * float(here @ precision @ here)
        fraction = 1.0
        for _ in range(_HALVINGS):
            moved = here + fraction * step
            there = self.likelihood.at(design @ moved)
            value = there.value - 0.5 * float(moved @ precision @ moved)
            if value >= before - 1e-12 * abs(before):
                return moved, there
            fraction *= 0.5
        return None

    def _mode(
        self, slope: Slope, here: FloatArray, factor: Matrix, precision: Matrix, size: int
    ) -> Mode:
        value = slope.value - 0.5 * float(here @ precision @ here)
        value += 0.5 * _log_determinant(precision[1:size, 1:size])
        if _ridge(self.prior) is None:
            nothing = np.zeros(1, dtype=np.int64)
            constant = glm_prior(self.prior, nothing, self.n, dispersed=False).table.constant[0]
            value += float(constant) - 0.5 * _log_determinant(factor[1:] @ factor[1:].T)
        else:
            value += 0.5 * log(2.0 * pi) - float(np.sum(np.log(np.diag(factor))))
        return Mode(value, slope.value, here, factor, precision, size)


def _ridge(prior: CoefficientPrior) -> float | None:
    """Prior precision of the coefficients of standardised columns, in ridge regression."""
    return prior.ridge if isinstance(prior, Normal) and prior.standardised else None


def _null_information(engine: GlmEngine) -> FloatArray:
    """Information of the rows where the linear predictor is the same in all."""
    n_rows = engine.n_rows
    null = engine.fit(np.empty((n_rows, 0))).coefficients[0]
    return engine.likelihood().at(np.full(n_rows, null)).information


def _log_determinant(matrix: Matrix) -> float:
    """Minus infinity for columns that depend on one another."""
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else -inf


class AnyMode(Protocol):
    """The mode of a model under a normal prior."""

    @property
    def log_evidence(self) -> float: ...
    @property
    def parameters(self) -> FloatArray: ...


def mix_widths(find_mode: Callable[[float, FloatArray | None], AnyMode]) -> float:
    """Log evidence under Zellner's and Siow's prior, from modes under normal ones.

    `find_mode` takes the width of the prior and where to start.
    """
    edges = np.array([0.0, *(2.0 / np.array(_WIDTHS[::-1]))])
    edges[-1] = inf
    log_weights = np.log(np.diff(chi2.cdf(edges, 1)))[::-1]
    values, start = [], None
    for width in _WIDTHS:
        mode = find_mode(width, start)
        start = mode.parameters if np.isfinite(mode.log_evidence) else None
        values.append(mode.log_evidence)
    return float(logsumexp(np.array(values) + log_weights))


def _factor(information: Matrix) -> Matrix | None:
    """Cholesky factor; nothing where columns depend on one another, or rows ran away."""
    if not np.isfinite(information).all():
        return None
    try:
        factor = scipy.linalg.cholesky(information, lower=True)
    except np.linalg.LinAlgError:
        return None
    scale = np.sqrt(np.diag(information))
    return factor if np.all(np.diag(factor) > 1e-6 * scale) else None


def _standardise(columns: Matrix, total: FloatArray) -> tuple[Matrix, FloatArray, FloatArray]:
    """Columns about their means in units of their standard deviations, and both.

    Parameters
    ----------
    total
        Number of observations behind each row.
    """
    share = total / total.sum()
    means = share @ columns
    sds = np.sqrt(share @ (columns - means) ** 2)
    sds = np.where(sds > 0.0, sds, 1.0)
    return (columns - means) / sds, means, sds
