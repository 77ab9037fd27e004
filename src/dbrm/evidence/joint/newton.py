"""The maximum of a joint likelihood, with a normal penalty or none, by damped Newton steps."""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg

from dbrm._kernels.joint import combine_columns, weighted_products
from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence.joint.likelihood import JointLikelihood, JointPoint
from dbrm.status import Status

__all__ = ["Maximum", "maximise"]

# A predictor that still moves by so much where the likelihood is flat runs away.
_RUNAWAY = 0.05
# What is left of the log likelihood, and of the predictors, at the maximum.
_REMAINDER, _STILL = 1e-11, 1e-8
# The same where a predictor runs away: every step gains a third of the one before.
_REMAINDER_AWAY = 1e-7
# A maximum that rounding hides from the line search.
_NEAR = 1e-6
# Share of the information of the rows below which that of a coefficient is rounding.
_FLAT = 1e-9
_ITERATIONS, _HALVINGS = 60, 40


@final
@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """A maximum, with the likelihood and the information there.

    Parameters
    ----------
    parameters
        Ancillary parameters, then coefficients, column by column.
    information
        Negative second derivatives of the log likelihood, without the penalty.
    """

    parameters: FloatArray
    point: JointPoint
    information: Matrix
    status: Status

    @property
    def log_likelihood(self) -> float:
        return self.point.value


def maximise(
    likelihood: JointLikelihood,
    columns: Matrix,
    offset: Column,
    start: FloatArray,
    penalty: FloatArray | Matrix,
) -> Maximum:
    """Maximise the log likelihood less half of a quadratic form of the parameters.

    `columns` by rows of the data; `penalty` is the matrix of the form, or its diagonal. The
    likelihood must be finite at the start.
    """
    a, m = len(likelihood.shift), likelihood.n_predictors
    precision = np.diag(penalty) if penalty.ndim == 1 else penalty

    def at(parameters: FloatArray) -> JointPoint:
        coefficients = parameters[a:].reshape(-1, m)
        with np.errstate(all="ignore"):
            return likelihood.at(parameters[:a], combine_columns(coefficients, columns, offset))

    def height(point: JointPoint, parameters: FloatArray) -> float:
        value = point.value - 0.5 * float(parameters @ precision @ parameters)
        return value if value < np.inf else -np.inf

    parameters = likelihood.approach(columns, offset, start, precision)
    here = at(parameters)
    status = Status.NOT_CONVERGED
    for _ in range(_ITERATIONS):
        information = here.information(columns)
        slopes = weighted_products(columns, np.ones(offset.size), here.score)
        gradient = np.concatenate([here.ancillary_score, slopes.ravel()]) - precision @ parameters
        penalised = information + precision
        direction = _newton_direction(penalised, gradient)
        decrement = float(gradient @ direction)
        step = combine_columns(direction[a:].reshape(-1, m), columns, np.zeros(offset.size))
        jump = float(np.max(np.abs(step), initial=0.0))
        jump = max(jump, float(np.max(np.abs(direction[:a]), initial=0.0)))
        runs_away = decrement < _REMAINDER_AWAY and jump > _RUNAWAY
        if runs_away or (decrement < _REMAINDER and jump < _STILL):
            runs_away = runs_away or _is_flat(here, penalised[a:, a:], columns)
            status = Status.SEPARATED if runs_away else Status.OK
            break
        before, fraction = height(here, parameters), 1.0
        for _ in range(_HALVINGS):
            moved = parameters + fraction * direction
            there = at(moved)
            if height(there, moved) >= before - 1e-13 * (1.0 + abs(before)):
                break
            fraction *= 0.5
        else:
            status = Status.OK if decrement < _NEAR else Status.NOT_CONVERGED
            break
        here, parameters = there, moved
    return Maximum(parameters, here, information, status)


def _is_flat(point: JointPoint, information: Matrix, columns: Matrix) -> bool:
    """Whether a coefficient has no information left but rounding, though its rows have some."""
    rows = (columns**2) @ point.row_information.T
    return bool(np.any(np.diag(information) < _FLAT * rows.ravel()))


def _newton_direction(information: Matrix, gradient: FloatArray) -> FloatArray:
    """Newton's direction, or an uphill one where the log likelihood is not concave."""
    if gradient.size == 0:
        return gradient
    if not np.isfinite(information).all() or not np.isfinite(gradient).all():
        return np.zeros_like(gradient)
    try:
        factor = scipy.linalg.cho_factor(information)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(information)
        least = 1e-8 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
        return np.asarray(vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), least)))
    return np.asarray(scipy.linalg.cho_solve(factor, gradient))
