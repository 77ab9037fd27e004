r"""A remainder beside the features of a model of classes, by Laplace's method.

.. math:: \eta_k = \alpha_k + \sum_{F \in M} \beta_{Fk} F + \sqrt\tau \sum_j u_{jk} z_j, \qquad
    (u_{j1}, \ldots, u_{jm}) \sim N(0, Q^{-1}),

with columns :math:`z_j` as in `dbrm.evidence.remainder`, and a precision matrix :math:`Q` that
treats all classes alike. As in `dbrm.evidence.glm_remainder` the coefficients of features have a
proper prior with the information of :math:`1/c` observations at the null model, so that with
:math:`P` the precision of coefficients and effects, and :math:`I` their information at the joint
mode,

.. math:: \log p(y \mid M, \tau) = \hat\ell - \tfrac12 \hat\theta' P \hat\theta
    + \tfrac12 \log |P| - \tfrac12 \log |I + P| + c_0 ,

where :math:`c_0` is the constant of the null model.

It sees columns, never features.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Self, final

import numpy as np
import scipy.linalg

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.base import ModelFit
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.glm_remainder import mix_widths
from dbrm.evidence.joint.classes import ClassFamily
from dbrm.evidence.joint.engine import JointEngine
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.joint.likelihood import RowPoint
from dbrm.evidence.joint.newton import Maximum, maximise
from dbrm.evidence.joint.population import JointPopulation
from dbrm.evidence.variance_components import Quadratic, QuadraticSum
from dbrm.status import Status

__all__ = ["JointMode", "JointRemainder"]

# What is left of columns that depend on others.
_ROUNDING = 1e-8


@final
@dataclass(frozen=True, eq=False)
class JointMode:
    """The joint mode of coefficients and effects.

    Parameters
    ----------
    log_evidence
        Minus infinity where there is no mode.
    precision, penalty
        Information of all parameters with that of the prior, and the latter alone.
    n_ancillary, n_columns
        Numbers of ancillary parameters, and of columns of the model without the remainder.
    """

    log_evidence: float
    maximum: Maximum
    precision: Matrix
    penalty: Matrix
    n_ancillary: int
    n_columns: int

    @property
    def log_likelihood(self) -> float:
        return self.maximum.log_likelihood

    @property
    def parameters(self) -> FloatArray:
        """Ancillary parameters, coefficients of the standardised columns, and effects."""
        return self.maximum.parameters

    @cached_property
    def covariance(self) -> Matrix:
        """Of all parameters."""
        return np.asarray(scipy.linalg.inv(self.precision))

    @property
    def wald(self) -> FloatArray:
        """Wald statistic of each column of the model."""
        m = self._n_predictors
        values = np.empty(self.n_columns)
        for j in range(self.n_columns):
            own = slice(self.n_ancillary + j * m, self.n_ancillary + (j + 1) * m)
            beta = self.parameters[own]
            values[j] = beta @ np.linalg.solve(self.covariance[own, own], beta)
        return values

    @property
    def _n_predictors(self) -> int:
        return len(self.maximum.point.score)


@final
@dataclass(frozen=True, slots=True, eq=False)
class JointRemainder:
    """The columns about their means in their units, and the likelihood of the rows.

    Parameters
    ----------
    engine
        Of models without a remainder.
    means, units
        Of the columns.
    block, rotation
        The columns about their means, in these units, are ``rotation @ block`` by rows of the
        data: there are no more rows of `block` than of the data, and `rotation` has orthonormal
        columns.
    """

    engine: JointEngine
    means: FloatArray
    units: FloatArray
    block: Matrix
    rotation: Matrix

    @classmethod
    def of(cls, engine: JointEngine, columns: Matrix, units: FloatArray) -> Self:
        """The remainder of these columns; `units` are meant up to a common factor."""
        weights = engine.observations.weights
        share = np.ones(len(columns)) if weights is None else weights
        share = share / share.sum()
        means = share @ columns
        block = (columns - means) / units
        size = sqrt(float(share @ np.sum(block**2, axis=1)))
        return cls(engine, means, units * size, *_rotate((block / size).T))

    @classmethod
    def nothing(cls, engine: JointEngine) -> Self:
        """No remainder at all: models of features under the same prior."""
        nothing = np.empty(0)
        return cls(engine, nothing, nothing, np.empty((0, engine.n_rows)), np.empty((0, 0)))

    @staticmethod
    def is_possible(engine: JointEngine) -> bool:
        """Whether the response has classes, and Jeffreys' rule gives the prior."""
        prior = glm_prior(
            engine.prior, np.zeros(1, dtype=np.int64), engine.joint.n, dispersed=False
        )
        always = engine.always is not None and engine.always.shape[1] > 0
        return isinstance(engine.family, ClassFamily) and not (prior.strict or always)

    def find_mode(
        self,
        columns: Matrix,
        ratio: float,
        start: FloatArray | None = None,
        width: float = 1.0,
    ) -> JointMode:
        """The mode of the model with exactly these columns, from that of another ratio.

        Parameters
        ----------
        width
            :math:`c`, the prior variance of coefficients in those of unit information.
        """
        return self._find_mode(self.engine.prepare(columns), ratio, start, width)

    def wide_log_evidence(self, columns: Matrix) -> float:
        """Log evidence of the model with exactly these columns, under Zellner's and Siow's prior.

        Not with a remainder.
        """
        return mix_widths(lambda width, start: self.find_mode(columns, 1.0, start, width))

    def quadratic(self, mode: JointMode, scale: FloatArray) -> QuadraticSum:
        """The likelihood of the effects to second order, all other parameters at their best.

        In combinations of the predictors whose effects are independent before the data, those in
        which the rows together know of no correlation either; what single rows know of one is
        left out. Each then has a matrix of its own instead of one for all.

        Parameters
        ----------
        scale
            Standard deviations of the effects at this mode, in the units of the result.
        """
        m, free = self.engine.joint.n_predictors, mode.n_ancillary + mode.n_columns * self._m
        r = len(self.block)
        across = mode.precision[:free, free:].reshape(free, r, m)
        within = (mode.precision[free:, free:] - mode.penalty[free:, free:]).reshape(r, m, r, m)
        turn = self._independent(mode)
        effects = np.linalg.solve(turn, mode.parameters[free:].reshape(r, m).T)
        factor = np.linalg.cholesky(mode.precision[:free, :free])
        parts = []
        for direction, own in zip(turn.T, effects, strict=True):
            known = np.einsum("ikjl,k,l->ij", within, direction, direction)
            lost = scipy.linalg.solve_triangular(factor, across @ direction, lower=True)
            known -= lost.T @ lost
            gram = self.rotation @ known @ self.rotation.T / np.outer(scale, scale)
            parts.append(Quadratic(gram, self.rotation @ (known @ own + own) / scale))
        return QuadraticSum(tuple(parts))

    def effects(self, mode: JointMode) -> Matrix:
        """Effects of the columns (rows) on the predictors, with a ratio of one."""
        free = mode.n_ancillary + mode.n_columns * self._m
        return np.asarray(self.rotation @ mode.parameters[free:].reshape(-1, self._m))

    def start(self, mode: JointMode, effects: Matrix) -> FloatArray:
        """Parameters to start from: those of the mode, with other effects."""
        free = mode.n_ancillary + mode.n_columns * self._m
        own = self.rotation.T @ effects
        return np.concatenate([mode.parameters[:free], own.ravel()])

    @property
    def _m(self) -> int:
        return self.engine.joint.n_predictors

    def _independent(self, mode: JointMode) -> Matrix:
        """Directions (columns) of effects that are independent, a priori and in all rows."""
        point = mode.maximum.point
        assert isinstance(point, RowPoint)
        root = scipy.linalg.cholesky(self.engine.joint.exchangeable_precision, lower=True)
        turn = scipy.linalg.inv(root).T
        _, vectors = np.linalg.eigh(turn.T @ point.weight.sum(axis=2) @ turn)
        return np.asarray(turn @ vectors)

    def fit(self, columns: Matrix, ratio: float) -> ModelFit:
        """Fit the model with exactly these columns; those of the remainder follow, in their units.

        Its parameters are certain: where classes are separated the normal distribution around
        the mode is far too wide, and probabilities that integrate over it too near to each other.
        """
        population = self.engine.prepare(columns)
        mode = self._find_mode(population, ratio, None, 1.0)
        likelihood = self.engine.joint
        a, m = len(likelihood.shift), likelihood.n_predictors
        slope = np.concatenate([1.0 / population.scale, np.full(self.units.size, sqrt(ratio))])
        constant = np.zeros(slope.size)
        constant[: population.size] = -population.location / population.scale
        own = mode.parameters[a : a + population.size * m].reshape(-1, m)
        coefficients = np.vstack([own, self.effects(mode)])
        certain = np.zeros((a + coefficients.size,) * 2)
        joint = JointFit(mode.parameters[:a], coefficients, certain)
        joint = joint.transformed(np.vstack([constant, np.diag(slope)]), likelihood.shift)
        return self.report(joint, mode)

    def report(self, joint: JointFit, found: JointMode | ModelFit) -> ModelFit:
        """A fit with these parameters, and the rest of what was found."""
        coefficients, covariance = joint.first_predictor(self.engine.joint)
        return ModelFit(
            log_evidence=found.log_evidence,
            log_likelihood=found.log_likelihood,
            coefficients=coefficients,
            covariance=covariance,
            dispersion=1.0,
            degrees_of_freedom=inf,
            status=Status.OK if found.log_evidence > -inf else Status.NOT_CONVERGED,
            joint=joint,
        )

    def _find_mode(
        self, population: JointPopulation, ratio: float, start: FloatArray | None, width: float
    ) -> JointMode:
        likelihood, size = self.engine.joint, population.size
        a, m, q = len(likelihood.shift), likelihood.n_predictors, len(self.block)
        free = a + size * m
        penalty = np.zeros((free + q * m, free + q * m))
        penalty[a:free, a:free] = likelihood.unit_information(population.columns) / width
        penalty[free:, free:] = np.kron(np.eye(q), likelihood.exchangeable_precision)
        design = np.vstack([population.columns, sqrt(ratio) * self.block])
        if start is None:
            start = np.concatenate([likelihood.start(), np.zeros(len(penalty) - a)])
        found = maximise(likelihood, design, population.offset, start, penalty)
        precision = found.information + penalty
        value = -inf
        if found.status is Status.OK and population.is_independent(np.arange(size)):
            theta, prior = found.parameters, population.prior
            value = found.log_likelihood - 0.5 * float(theta @ penalty @ theta)
            value += 0.5 * float(np.linalg.slogdet(penalty[a:, a:])[1])
            value -= 0.5 * float(np.linalg.slogdet(precision[a:, a:])[1])
            value = prior.table.table.value(value, 0.0, 0.0, 0) + prior.constant
        return JointMode(float(value), found, precision, penalty, a, size)


def _rotate(columns: Matrix) -> tuple[Matrix, Matrix]:
    """No more columns than rows that say the same, and how the columns are made from them."""
    if len(columns) <= columns.shape[1]:
        return np.ascontiguousarray(columns), np.eye(len(columns))
    left, singular, right = np.linalg.svd(columns, full_matrices=False)
    kept = singular > _ROUNDING * singular[0]
    return np.ascontiguousarray(singular[kept, None] * right[kept]), left[:, kept]
