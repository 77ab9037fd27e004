r"""A remainder beside the features of a model of classes, by Laplace's method.

.. math:: \eta_k = \alpha_k + \sum_{F \in M} \beta_{Fk} F + \sqrt\tau \sum_j u_{jk} z_j, \qquad
    (u_{j1}, \ldots, u_{jm}) \sim N(0, P^{-1}),

with columns :math:`z_j` as in `dbrm.evidence.remainder`, and a precision matrix :math:`P` that
treats all classes alike. As in `dbrm.evidence.glm_remainder` Jeffreys' prior of :math:`\alpha`
and :math:`\beta` cancels, so that at the joint mode, where the :math:`q` columns have the
information :math:`Z' W Z`,

.. math:: \log p(y \mid M, \tau) = \hat\ell - \tfrac12 \sum_j \hat u_j' P \hat u_j
    + \tfrac q2 \log |P| - \tfrac12 \log |I_q \otimes P + \tau Z' W Z| + c_p ,

where :math:`c_p` is the constant of a model of that size without a remainder.

It sees columns, never features.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt
from typing import Self, final

import numpy as np
import scipy.linalg

from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evidence.base import ModelFit
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.joint.classes import ClassFamily
from dbrm.evidence.joint.engine import JointEngine
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.joint.newton import Maximum, maximise
from dbrm.evidence.joint.population import JointPopulation
from dbrm.status import Status

__all__ = ["JointMode", "JointRemainder"]


@final
@dataclass(frozen=True, eq=False)
class JointMode:
    """The joint mode of coefficients and effects.

    Parameters
    ----------
    log_evidence
        Minus infinity where there is no mode.
    precision
        Information of all parameters and that of the prior.
    n_ancillary, n_columns
        Numbers of ancillary parameters, and of columns of the model without the remainder.
    """

    log_evidence: float
    maximum: Maximum
    precision: Matrix
    n_ancillary: int
    n_columns: int

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
    block
        The columns about their means, in these units, by rows of the data.
    """

    engine: JointEngine
    means: FloatArray
    units: FloatArray
    block: Matrix

    @classmethod
    def of(cls, engine: JointEngine, columns: Matrix, units: FloatArray) -> Self:
        """The remainder of these columns; `units` are meant up to a common factor."""
        weights = engine.observations.weights
        share = np.ones(len(columns)) if weights is None else weights
        share = share / share.sum()
        means = share @ columns
        block = (columns - means) / units
        size = sqrt(float(share @ np.sum(block**2, axis=1)))
        return cls(engine, means, units * size, np.ascontiguousarray((block / size).T))

    @staticmethod
    def is_possible(engine: JointEngine) -> bool:
        """Whether the response has classes, and Jeffreys' rule gives the prior."""
        prior = glm_prior(
            engine.prior, np.zeros(1, dtype=np.int64), engine.joint.n, dispersed=False
        )
        always = engine.always is not None and engine.always.shape[1] > 0
        return isinstance(engine.family, ClassFamily) and not (prior.strict or always)

    def find_mode(
        self, columns: Matrix, ratio: float, start: FloatArray | None = None
    ) -> JointMode:
        """The mode of the model with exactly these columns, from that of another ratio."""
        return self._find_mode(self.engine.prepare(columns), ratio, start)

    def fit(self, columns: Matrix, ratio: float, into: IntArray) -> ModelFit:
        """Fit the model with exactly these columns.

        Parameters
        ----------
        into
            Position of each column, then of each column of the remainder, among those of the fit;
            the coefficients of columns with one position are added.
        """
        population = self.engine.prepare(columns)
        mode = self._find_mode(population, ratio, None)
        likelihood = self.engine.joint
        a, m = len(likelihood.shift), likelihood.n_predictors
        location = np.concatenate([population.location, self.means])
        unit = np.concatenate([population.scale, self.units / sqrt(ratio)])
        change = np.zeros((a + (int(into.max()) + 1) * m, mode.parameters.size))
        change[:a, :a] = np.eye(a)
        for j, place in enumerate(into.tolist()):
            own, to = slice(a + j * m, a + (j + 1) * m), slice(a + place * m, a + (place + 1) * m)
            change[:a, own] = -location[j] / unit[j] * likelihood.shift
            change[to, own] += np.eye(m) / unit[j]
        parameters = change @ mode.parameters
        joint = JointFit(
            parameters[:a], parameters[a:].reshape(-1, m), change @ mode.covariance @ change.T
        )
        coefficients, covariance = joint.first_predictor(likelihood)
        return ModelFit(
            log_evidence=mode.log_evidence,
            log_likelihood=mode.maximum.log_likelihood,
            coefficients=coefficients,
            covariance=covariance,
            dispersion=1.0,
            degrees_of_freedom=inf,
            status=Status.OK if mode.log_evidence > -inf else Status.NOT_CONVERGED,
            joint=joint,
        )

    def _find_mode(
        self, population: JointPopulation, ratio: float, start: FloatArray | None
    ) -> JointMode:
        likelihood, size = self.engine.joint, population.size
        a, m, q = len(likelihood.shift), likelihood.n_predictors, len(self.block)
        free = a + size * m
        alike = likelihood.exchangeable_precision
        penalty = np.zeros((free + q * m, free + q * m))
        penalty[free:, free:] = np.kron(np.eye(q), alike)
        design = np.vstack([population.columns, sqrt(ratio) * self.block])
        if start is None:
            start = np.concatenate([likelihood.start(), np.zeros(penalty.shape[0] - a)])
        found = maximise(likelihood, design, population.offset, start, penalty)
        precision = found.information + penalty
        independent = population.is_independent(np.arange(size))
        value = -inf
        if found.status is Status.OK and independent and population.prior.is_defined(size):
            effects = found.parameters
            value = found.log_likelihood - 0.5 * float(effects @ penalty @ effects)
            value += 0.5 * q * float(np.linalg.slogdet(alike)[1])
            value -= 0.5 * float(np.linalg.slogdet(precision[free:, free:])[1])
            value = population.prior.table.table.value(value, 0.0, 0.0, size)
            value += population.prior.constant
        return JointMode(float(value), found, precision, a, size)
