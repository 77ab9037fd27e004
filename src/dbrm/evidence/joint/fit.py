"""The parameters of one model of a joint likelihood, for reports and predictions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from dbrm._typing import FloatArray, Matrix

if TYPE_CHECKING:
    from dbrm.evidence.joint.likelihood import JointLikelihood

__all__ = ["JointFit"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class JointFit:
    """Posterior mode and covariance of all parameters, of the raw columns.

    Parameters
    ----------
    ancillary
        Ancillary parameters.
    coefficients
        Columns of the model, those of every model first, by linear predictors.
    covariance
        Of ancillary parameters, then of the coefficients, column by column.
    """

    ancillary: FloatArray
    coefficients: Matrix
    covariance: Matrix

    def transformed(self, change: Matrix, shift: Matrix) -> "JointFit":
        """The same model in terms of other columns.

        Parameters
        ----------
        change
            What a column here (columns) is of the constant (first row) and of the others.
        shift
            What a constant in the predictors does to the ancillary parameters, as in
            `JointLikelihood`.
        """
        a, m = self.ancillary.size, self.coefficients.shape[1]
        ancillary = self.ancillary + shift @ (change[0] @ self.coefficients)
        if not self.covariance.any():
            certain = np.zeros((a + (len(change) - 1) * m,) * 2)
            return JointFit(ancillary, change[1:] @ self.coefficients, certain)
        full = np.block(
            [
                [np.eye(a), np.kron(change[:1], shift)],
                [np.zeros(((len(change) - 1) * m, a)), np.kron(change[1:], np.eye(m))],
            ]
        )
        return JointFit(ancillary, change[1:] @ self.coefficients, full @ self.covariance @ full.T)

    def first_predictor(self, likelihood: "JointLikelihood") -> tuple[FloatArray, Matrix]:
        """Coefficients of the first predictor, intercept first, and their covariance.

        Where there is no intercept it is zero and certain.
        """
        a, m, position = self.ancillary.size, self.coefficients.shape[1], likelihood.intercept
        intercept = 0.0 if position is None else float(self.ancillary[position])
        values = np.concatenate([[intercept], self.coefficients[:, 0]])
        places = a + m * np.arange(len(self.coefficients))
        covariance = np.zeros((values.size, values.size))
        covariance[1:, 1:] = self.covariance[np.ix_(places, places)]
        if position is not None:
            own = np.concatenate([[position], places])
            covariance = self.covariance[np.ix_(own, own)]
        return values, covariance
