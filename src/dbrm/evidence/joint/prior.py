r"""Laplace's log evidence of a joint likelihood under the coefficient priors of GLMs.

With :math:`p` coefficients, :math:`a` ancillary parameters under a flat prior, the information
:math:`I` at the maximum and

.. math:: W = \hat\beta'(I_{\beta\beta} - I_{\beta a} I_{aa}^{-1} I_{a\beta})\hat\beta,

priors that see the likelihood only (Jeffreys, BIC, AIC) count ancillary parameters as
coefficients; g-priors and their mixtures see :math:`W` and :math:`|I_{aa}|`, as the intercept of
a GLM; normal priors use the penalised maximum:

.. math:: \log p(y | M) = \hat\ell - \tfrac12 \hat\beta' P \hat\beta + \tfrac12 \log |P|
    - \tfrac12 \log |I + P| + \tfrac a2 \log 2\pi .
"""

from dataclasses import dataclass
from math import log, pi
from typing import final

import numpy as np

from dbrm._kernels.glm import NORMAL, NORMAL_LOG_GAMMA
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.glm_prior import GlmPrior, glm_prior
from dbrm.evidence.joint.newton import Maximum

__all__ = ["JointPrior"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class JointPrior:
    """A coefficient prior for models with these numbers of coefficients.

    Parameters
    ----------
    table
        As GLMs take it; its rows are numbers of free columns.
    n_ancillary
        Number of ancillary parameters.
    constant
        What ancillary parameters beyond an intercept contribute in every model.
    """

    table: GlmPrior
    n_ancillary: int
    constant: float

    @classmethod
    def of(
        cls, prior: CoefficientPrior, sizes: IntArray, n: float, n_ancillary: int
    ) -> "JointPrior":
        """The prior for models with these numbers of coefficients, by number of free columns."""
        table = glm_prior(prior, sizes, n, dispersed=False)
        if table.kind == NORMAL_LOG_GAMMA:
            msg = (
                f"prior={prior.name!r} integrates over a precision, which this family cannot. Try "
                "prior='normal' with a precision, 'jeffreys', 'bic' or 'g-prior'."
            )
            raise InvalidSettingError(msg)
        constant = 0.0
        if not table.strict:
            small = prior.glm_table(np.array([0, 1]), n).constant
            constant = (n_ancillary - 1) * float(small[1] - small[0])
        return cls(table, n_ancillary, constant)

    @property
    def is_normal(self) -> bool:
        """Whether the prior is normal with a known precision."""
        return self.table.kind == NORMAL

    def is_defined(self, row: int) -> bool:
        """Whether models with so many free columns have a prior."""
        return self.is_normal or bool(self.table.table.constant[row] > -np.inf)

    def penalty(self, scale: FloatArray) -> FloatArray:
        """Precision of each coefficient, of columns with these standard deviations."""
        if not self.is_normal:
            return np.zeros(self.n_ancillary + scale.size)
        with np.errstate(over="ignore"):
            precision = np.minimum(self.table.rate / self.table.units(scale) ** 2, 1e100)
        return np.concatenate([np.zeros(self.n_ancillary), precision])

    def log_evidence(self, maximum: Maximum, penalty: FloatArray, row: int) -> float:
        """Log evidence of a model at its maximum."""
        a, parameters = self.n_ancillary, maximum.parameters
        value = maximum.log_likelihood
        if self.is_normal:
            value -= 0.5 * float(penalty @ parameters**2)
            value += 0.5 * float(np.sum(np.log(penalty[a:])))
            return value - 0.5 * _log_det(maximum.information + np.diag(penalty)) + _flat(a)
        if not self.table.strict:
            return self.table.table.value(value, 0.0, 0.0, row) + self.constant
        inner, wald = _wald(maximum.information, parameters, a)
        # The table has the factor of one intercept.
        log_information = inner - (a - 1) * log(2 * pi)
        return self.table.table.value(value, log_information, wald, row)


def _flat(n_ancillary: int) -> float:
    return 0.5 * n_ancillary * log(2 * pi)


def _wald(information: Matrix, parameters: FloatArray, a: int) -> tuple[float, float]:
    """Log determinant of the ancillary part, and the Wald statistic of the coefficients."""
    beta = parameters[a:]
    across = information[:a, a:] @ beta
    wald = float(beta @ information[a:, a:] @ beta)
    if a:
        wald -= float(across @ np.linalg.lstsq(information[:a, :a], across, rcond=None)[0])
    return _log_det(information[:a, :a]), max(wald, 0.0)


def _log_det(matrix: Matrix) -> float:
    return float(np.linalg.slogdet(matrix)[1]) if matrix.size else 0.0
