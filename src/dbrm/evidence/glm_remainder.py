r"""A remainder beside the features of a generalised linear model, by Laplace's method.

.. math:: \eta = \beta_0 + \sum_{F \in M} \beta_F F + \sqrt\tau \sum_j u_j z_j, \qquad
    u_j \sim N(0, 1),

with columns :math:`z_j` as in `dbrm.evidence.remainder`. With :math:`W` the information of the
rows at the joint mode of :math:`\beta` and :math:`u`, Jeffreys' prior of :math:`\beta` given that
:math:`u` is integrated out cancels against the determinant of :math:`\beta`, as it does without a
remainder, so that

.. math:: \log p(y \mid M, \tau) = \ell(\hat\beta, \hat u) - \tfrac12 \hat u' \hat u
    - \tfrac12 \log |I + \tau Z' W Z| + c_p ,

where :math:`c_p` is the constant of a model of that size without one.

It sees columns, never features. For families without a dispersion.
"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Self, final

import numpy as np
import scipy.linalg

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.base import ModelFit
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.families import AbstractFamily
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.predictor import AbstractPredictorLikelihood, Slope
from dbrm.evidence.remainder import RemainderFit
from dbrm.status import Status

__all__ = ["GlmRemainder", "Mode"]

_ITERATIONS, _HALVINGS = 40, 30
# What is left of the log likelihood at the mode.
_REMAINDER = 1e-9
# Share of the information at the null model below which a coefficient has run away: its column
# separates the classes.
_AWAY = 1e-3


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
        Cholesky factor of the information, with that of the prior.
    size
        Number of coefficients, the intercept among them.
    """

    log_evidence: float
    log_likelihood: float
    parameters: FloatArray
    factor: Matrix
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
        null = engine.fit(np.empty((len(columns), 0))).coefficients[0]
        information = likelihood.at(np.full(len(columns), null)).information
        return cls(
            likelihood, engine.prior, engine.n, means, units * size, block / size, information
        )

    @staticmethod
    def is_possible(engine: GlmEngine) -> bool:
        """Whether Jeffreys' rule gives the prior, and the family has no dispersion."""
        family = engine.family
        assert isinstance(family, AbstractFamily)
        prior = glm_prior(engine.prior, np.zeros(1, dtype=np.int64), engine.n, dispersed=False)
        return not (prior.strict or family.has_dispersion or engine.n_always)

    def find_mode(self, columns: Matrix, ratio: float, start: FloatArray | None = None) -> Mode:
        """The mode of the model with exactly these columns, from that of another ratio."""
        size = 1 + columns.shape[1]
        own, _, _ = _standardise(columns)
        rows = np.ones((len(columns), 1))
        design = np.hstack([rows, own, sqrt(ratio) * self.block])
        penalty = np.concatenate([np.zeros(size), np.ones(self.units.size)])
        here = np.zeros(penalty.size) if start is None else start
        slope = self.likelihood.at(design @ here)
        at_first = self.null_information @ design[:, :size] ** 2
        for _ in range(_ITERATIONS):
            gradient = design.T @ slope.score - penalty * here
            information = (design * slope.information[:, None]).T @ design + np.diag(penalty)
            factor = _factor(information)
            if factor is None:
                break
            step = scipy.linalg.cho_solve((factor, True), gradient)
            if 0.5 * float(gradient @ step) < _REMAINDER:
                if np.any(np.diag(information)[:size] < _AWAY * at_first):
                    break
                return self._mode(slope, here, factor, information, size)
            moved = self._climb(design, penalty, slope, here, step)
            if moved is None:
                break
            here, slope = moved
        return Mode(-inf, -inf, here, np.eye(here.size), size)

    def fit(self, columns: Matrix, ratio: float) -> RemainderFit:
        """Fit the model with exactly these columns."""
        mode = self.find_mode(columns, ratio)
        _, means, sds = _standardise(columns)
        k = mode.size
        back = np.eye(mode.parameters.size)
        back[0, 1:k] = -means / sds
        back[np.arange(1, k), np.arange(1, k)] = 1.0 / sds
        back[np.arange(k, len(back)), np.arange(k, len(back))] = sqrt(ratio)
        parameters, covariance = back @ mode.parameters, back @ mode.covariance @ back.T
        fit = ModelFit(
            log_evidence=mode.log_evidence,
            log_likelihood=mode.log_likelihood,
            coefficients=parameters[:k],
            covariance=covariance[:k, :k],
            dispersion=1.0,
            degrees_of_freedom=inf,
            status=Status.OK if mode.log_evidence > -inf else Status.NOT_CONVERGED,
        )
        return RemainderFit(fit, parameters[k:], covariance[k:, k:], covariance[k:, :k])

    def _climb(
        self, design: Matrix, penalty: FloatArray, slope: Slope, here: FloatArray, step: FloatArray
    ) -> tuple[FloatArray, Slope] | None:
        """The step, halved until it does not lead down; nothing if it always does."""
        before = slope.value - 0.5 * float(penalty @ here**2)
        fraction = 1.0
        for _ in range(_HALVINGS):
            moved = here + fraction * step
            there = self.likelihood.at(design @ moved)
            if there.value - 0.5 * float(penalty @ moved**2) >= before - 1e-12 * abs(before):
                return moved, there
            fraction *= 0.5
        return None

    def _mode(
        self, slope: Slope, here: FloatArray, factor: Matrix, information: Matrix, size: int
    ) -> Mode:
        sizes = np.array([size - 1])
        constant = glm_prior(self.prior, sizes, self.n, dispersed=False).table.constant[0]
        effects = here[size:]
        spread = np.linalg.slogdet(information[size:, size:])[1]
        value = slope.value - 0.5 * float(effects @ effects) - 0.5 * float(spread)
        return Mode(value + float(constant), slope.value, here, factor, size)


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


def _standardise(columns: Matrix) -> tuple[Matrix, FloatArray, FloatArray]:
    """Columns about their means in units of their standard deviations, and both."""
    means, sds = columns.mean(axis=0), columns.std(axis=0)
    sds = np.where(sds > 0.0, sds, 1.0)
    return (columns - means) / sds, means, sds
