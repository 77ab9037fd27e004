"""Coefficient priors as the GLM kernels take them."""

from dataclasses import dataclass
from math import log, pi
from typing import final

import numpy as np

from dbrm._kernels.glm import NORMAL, NORMAL_LOG_GAMMA, TABLE
from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.coefficient_priors.radial import Normal, NormalLogGamma, RadialPrior
from dbrm.evidence.score import GlmTable, glm_closed_form

__all__ = ["GlmPrior", "glm_prior"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class GlmPrior:
    r"""One prior for models of given sizes.

    Parameters
    ----------
    kind
        ``TABLE`` (a function of likelihood and Wald statistic), ``NORMAL`` (known
        precision) or ``NORMAL_LOG_GAMMA`` (unknown precision).
    table
        The function, one row for each size; unused by normal priors.
    shape, rate
        Of the Gamma prior of the precision; for ``NORMAL`` the rate *is* the precision.
    dispersion
        What an unknown dispersion contributes: under Jeffreys' rule, whose determinant
        cancels, :math:`\frac12\log 2\pi`; under BIC and the like, one more parameter.
    standardised
        Whether precisions are those of columns with unit standard deviation.
    """

    kind: int
    table: GlmTable
    shape: float
    rate: float
    dispersion: float
    standardised: bool = False

    def units(self, scale: FloatArray) -> FloatArray:
        """Units of the columns with these standard deviations, as the precisions see them."""
        return np.ones_like(scale) if self.standardised else scale

    @property
    def strict(self) -> bool:
        """Whether the information matrix at the maximum is needed."""
        return self.kind != TABLE or self.table.needs_wald or self.table.information_slope != 0.0


def glm_prior(prior: CoefficientPrior, sizes: IntArray, n: float, *, dispersed: bool) -> GlmPrior:
    """Translate a prior for models with these numbers of slopes."""
    flat = 0.5 * log(2 * pi) if dispersed else 0.0
    if isinstance(prior, RadialPrior):
        unused = glm_closed_form(np.zeros(sizes.size))
        if isinstance(prior, NormalLogGamma):
            return GlmPrior(NORMAL_LOG_GAMMA, unused, prior.shape, prior.rate, flat)
        if prior.ridge is None:
            msg = (
                f"The GLM engine needs a known precision or a Gamma prior on it; "
                f"prior={prior.name!r} has neither."
            )
            raise InvalidSettingError(msg)
        standardised = isinstance(prior, Normal) and prior.standardised
        return GlmPrior(NORMAL, unused, 1.0, prior.ridge, flat, standardised)
    table = prior.glm_table(sizes, n)
    plain = GlmPrior(TABLE, table, 1.0, 0.0, flat)
    if not dispersed or plain.strict:
        return plain
    small = prior.glm_table(np.array([0, 1]), n).constant
    return GlmPrior(TABLE, table, 1.0, 0.0, float(small[1] - small[0]))
