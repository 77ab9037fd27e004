"""Laplace log evidence of models whose likelihood is given as value, gradient and Hessian."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from dbrm._kernels.glm_linalg import standardise
from dbrm._kernels.joint import combine_columns, weighted_products
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.errors import InvalidDataError
from dbrm.evidence.base import AbstractEngine, ModelFit, ScoreTest
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.coefficient_priors.classical import Jeffreys
from dbrm.evidence.design import independent_columns, share_columns
from dbrm.evidence.families.base import JointFamily
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.joint.likelihood import JointLikelihood
from dbrm.evidence.joint.newton import Maximum
from dbrm.evidence.joint.population import DEPENDENCE_TOLERANCE, JointPopulation
from dbrm.evidence.joint.predictor import JointPredictorLikelihood
from dbrm.evidence.joint.prior import JointPrior
from dbrm.evidence.joint.skewness import mean_shift
from dbrm.evidence.links import Link
from dbrm.evidence.observations import Observations
from dbrm.status import Status

__all__ = ["JointEngine"]

# A centred column shorter than this share of its largest value is a constant.
_CONSTANT = 3e-8


@final
@dataclass(frozen=True, eq=False)
class JointEngine(AbstractEngine):
    """Laplace log evidence for one response, family and coefficient prior.

    Parameters
    ----------
    link
        For the linear predictor of `likelihood`, and what reports call it.
    always
        Columns that every model contains.

    Notes
    -----
    Priors count the observations as the likelihood does: those of survival times are the events.
    """

    observations: Observations
    prior: CoefficientPrior
    family: JointFamily
    link: Link
    always: Matrix | None = None
    refines = True

    def __post_init__(self) -> None:
        for name in ("trials", "exposure"):
            if getattr(self.observations, name) is not None:
                msg = f"family={self.family.name!r} has no {name}; leave {name}= out."
                raise InvalidDataError(msg)
        # Checks the observations.
        _ = self.joint

    @property
    def n_rows(self) -> int:
        return int(self.observations.response.size)

    @cached_property
    def joint(self) -> JointLikelihood:
        """The likelihood of the observations."""
        return self.family.bind(self.observations)

    @cached_property
    def _offset(self) -> Column:
        offset = self.observations.offset
        return np.zeros(self.n_rows) if offset is None else np.asarray(offset, dtype=np.float64)

    @cached_property
    def _weights(self) -> Column:
        weights = self.observations.weights
        return np.ones(self.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)

    @cached_property
    def _always(self) -> Matrix:
        """Always-in columns, those that depend on others before them removed."""
        if self.always is None or self.always.shape[1] == 0:
            return np.zeros((self.n_rows, 0))
        _, _, _, gram = self._standardise(self.always)
        kept = independent_columns(gram, DEPENDENCE_TOLERANCE, self.n_rows)
        return np.asarray(self.always, dtype=np.float64)[:, kept]

    def _standardise(self, columns: Matrix) -> tuple[Matrix, FloatArray, FloatArray, Matrix]:
        """Columns, by rows of the data, with mean zero and unit standard deviation."""
        flat = np.array(columns.T, dtype=np.float64, order="C")
        location, scale = np.zeros(len(flat)), np.ones(len(flat))
        for j in range(len(flat)):
            location[j], scale[j] = standardise(flat[j], self._weights, _CONSTANT)
        gram = weighted_products(flat, self._weights, flat)
        norm = np.sqrt(np.diag(gram))
        norm[norm == 0] = np.inf
        return flat, location, scale, np.asarray(gram / np.outer(norm, norm))

    def prepare(self, columns: Matrix) -> JointPopulation:
        raw = np.hstack([self._always, np.asarray(columns, dtype=np.float64)])
        flat, location, scale, gram = self._standardise(raw)
        n_always, likelihood = self._always.shape[1], self.joint
        sizes = likelihood.n_predictors * np.arange(n_always, raw.shape[1] + 1)
        prior = JointPrior.of(self.prior, sizes, likelihood.n, len(likelihood.shift))
        return JointPopulation(
            likelihood, prior, flat, location, scale, gram, self._offset, n_always
        )

    def log_evidence(self, columns: Matrix) -> tuple[float, Status]:
        return self.prepare(columns).evaluate(np.ones(columns.shape[1], dtype=np.bool_))

    def log_evidence_of(self, columns: Matrix, masks: Masks) -> tuple[FloatArray, StatusArray]:
        """Log evidence of several models: those with columns in common share a population."""
        values, statuses = np.empty(len(masks)), np.empty(len(masks), dtype=np.uint8)
        for rows, used in share_columns(masks):
            population = self.prepare(columns[:, used])
            values[rows], statuses[rows] = population.log_evidence(masks[np.ix_(rows, used)])
        return values, statuses

    def fit(self, columns: Matrix) -> ModelFit:
        """Fit one model: its mode, with a small ridge where the likelihood has no maximum."""
        return self.fit_many(columns, np.ones((1, columns.shape[1]), dtype=np.bool_))[0]

    def fit_many(self, columns: Matrix, masks: Masks) -> list[ModelFit]:
        fits: dict[int, ModelFit] = {}
        for rows, used in share_columns(masks):
            population = self.prepare(columns[:, used])
            for row in rows.tolist():
                fits[row] = self._fit_mask(population, masks[row, used])
        return [fits[row] for row in range(len(masks))]

    def _fit_mask(self, population: JointPopulation, mask: Mask) -> ModelFit:
        value, status = population.evaluate(mask)
        wanted = population.members(mask)
        gram = population.unit_gram[np.ix_(wanted, wanted)]
        kept = wanted[independent_columns(gram, DEPENDENCE_TOLERANCE, self.n_rows)]
        maximum, penalty = population.penalised(kept)
        joint = _in_raw_units(population, wanted, kept, maximum, penalty)
        coefficients, covariance = joint.first_predictor(self.joint)
        return ModelFit(
            log_evidence=value,
            log_likelihood=maximum.log_likelihood,
            coefficients=coefficients,
            covariance=covariance,
            dispersion=1.0,
            degrees_of_freedom=np.inf,
            status=status,
            joint=joint,
        )

    @cached_property
    def _plain(self) -> "JointEngine":
        """The engine of maximum likelihood fits."""
        return replace(self, prior=Jeffreys(), always=None)

    def project(self, columns: Matrix) -> FloatArray:
        joint = self._plain.fit(columns).joint
        assert joint is not None
        if self.joint.n_predictors == 1:
            return joint.first_predictor(self.joint)[0]
        # The combination of the predictors that varies most between rows.
        eta = joint.coefficients.T @ (columns - columns.mean(axis=0)).T
        return np.concatenate([[0.0], joint.coefficients @ _principal(eta)])

    def likelihood(self) -> JointPredictorLikelihood:
        ones = np.ones(self.n_rows)
        response = np.asarray(self.observations.response, dtype=np.float64)
        return JointPredictorLikelihood(
            self.family, self.link, response, self._weights, ones, self._offset, self.joint
        )

    def score_test(self, columns: Matrix) -> ScoreTest:
        """Prepare the score test; of several predictors, in the direction that explains most."""
        population = self.prepare(columns)
        members = population.members(np.ones(columns.shape[1], dtype=np.bool_))
        kept = members[
            independent_columns(
                population.unit_gram[np.ix_(members, members)], DEPENDENCE_TOLERANCE, self.n_rows
            )
        ]
        found = population.maximum(kept)
        m, a = self.joint.n_predictors, len(self.joint.shift)
        coefficients = found.parameters[a:].reshape(-1, m)
        eta = combine_columns(coefficients, population.columns[kept], np.zeros(self.n_rows))
        direction = _principal(found.point.score)
        residual = direction @ np.where(np.isfinite(found.point.score), found.point.score, 0.0)
        information = direction**2 @ found.point.row_information
        information = np.where(np.isfinite(information), information, 0.0)
        strength = float(residual @ residual) / max(float(information.mean()), 1e-12)
        price = m * self._price(m * kept.size)

        def change(left: FloatArray, extra: int) -> FloatArray:
            return np.asarray(0.5 * strength * (1.0 - left) - price * extra)

        return ScoreTest(residual, change, strength, direction @ eta, information)

    def _price(self, size: int) -> float:
        """About what one more coefficient costs under the prior, beside `size` others."""
        n = self.joint.n
        prior = JointPrior.of(self.prior, np.array([size, size + 1]), n, 1)
        table = prior.table.table
        if prior.is_normal or table.needs_wald or not np.all(np.isfinite(table.constant)):
            return 0.5 * float(np.log(max(n, 1.0)))
        return float(table.constant[0] - table.constant[1])


def _principal(values: Matrix) -> FloatArray:
    """Unit combination of the rows that varies most between columns."""
    if len(values) == 1:
        return np.ones(1)
    finite = np.where(np.isfinite(values), values, 0.0)
    vector = np.linalg.eigh(finite @ finite.T)[1][:, -1]
    return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector))]))


def _in_raw_units(
    population: JointPopulation,
    wanted: IntArray,
    kept: IntArray,
    maximum: Maximum,
    penalty: Matrix,
) -> JointFit:
    """Parameters of the raw columns; those of columns that are not kept are zero and certain.

    Of classes that are separated the posterior mean is far from the mode, and taken.
    """
    likelihood = population.likelihood
    a, m = len(likelihood.shift), likelihood.n_predictors
    location, scale = population.location[kept], population.scale[kept]
    precision = maximum.information + penalty
    covariance = np.linalg.pinv(precision, hermitian=True)
    parameters = maximum.parameters
    if m > 1 and penalty[a:, a:].any() and not population.prior.is_normal:
        columns = population.columns[kept]
        parameters = parameters + mean_shift(
            likelihood, columns, population.offset, parameters, precision
        )
    # A column of mean l and deviation s adds -l/s of its coefficient to the constant.
    jacobian = np.diag(np.concatenate([np.ones(a), np.repeat(1.0 / scale, m)]))
    for j, ratio in enumerate(location / scale):
        jacobian[:a, a + j * m : a + (j + 1) * m] = -ratio * likelihood.shift
    raw = jacobian @ parameters
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = np.nan_to_num(jacobian @ covariance @ jacobian.T)
    everything = np.zeros(a + wanted.size * m)
    widened = np.zeros((everything.size, everything.size))
    inside = a + (np.flatnonzero(np.isin(wanted, kept))[:, None] * m + np.arange(m)).ravel()
    places = np.concatenate([np.arange(a), inside])
    everything[places] = np.nan_to_num(raw)
    widened[np.ix_(places, places)] = covariance
    return JointFit(everything[:a], everything[a:].reshape(-1, m), widened)
