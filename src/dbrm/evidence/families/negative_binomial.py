"""Negative binomial counts (NB2): overdispersed Poisson."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from math import exp, inf, log, log1p
from typing import final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._kernels import glm_rows
from dbrm._kernels.glm_dispersion import Constants, negative_binomial_shape
from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import CompiledFamily, register
from dbrm.evidence.families.poisson import draw_counts

__all__ = ["NegativeBinomial"]


@register
@final
@dataclass(frozen=True, slots=True)
class NegativeBinomial(CompiledFamily):
    r"""Counts with variance :math:`\mu + \mu^2/\theta`; the dispersion is :math:`1/\theta`.

    .. math:: p(y) = \frac{\Gamma(y+\theta)}{\Gamma(\theta)\,y!}
        \Bigl(\frac{\theta}{\theta+\mu}\Bigr)^\theta \Bigl(\frac{\mu}{\theta+\mu}\Bigr)^y .

    Coefficients and :math:`\theta` are orthogonal; :math:`\theta` is profiled by Newton's
    method on :math:`\log\theta`. Data without overdispersion have the Poisson limit.

    Parameters
    ----------
    dispersion
        A known :math:`1/\theta`; ``None`` estimates it in every model.
    """

    dispersion: float | None = None
    name = "negative_binomial"
    code = glm_rows.NEGATIVE_BINOMIAL
    observed_links = ("log",)
    default_link = "log"
    mean_interval = (0.0, np.inf)
    support = (0.0, np.inf)
    has_dispersion = True
    least_dispersion = exp(-7.0)
    discrete = True

    def __post_init__(self) -> None:
        if self.dispersion is not None and not 0.0 < self.dispersion < inf:
            msg = (
                "NegativeBinomial needs a positive finite dispersion or None; "
                f"got {self.dispersion!r}."
            )
            raise InvalidSettingError(msg)

    @property
    def given_dispersion(self) -> float | None:
        return self.dispersion

    def log_density(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        shape = 1.0 / dispersion
        return np.asarray(
            scipy.special.gammaln(y + shape)
            - scipy.special.gammaln(shape)
            - scipy.special.gammaln(y + 1)
            + scipy.special.xlogy(y, mean / (shape + mean))
            - shape * np.log1p(mean / shape)
        )

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return mean * (1.0 + dispersion * mean)

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        success = 1.0 / (1.0 + dispersion * np.asarray(mean))
        shape, whole = 1.0 / dispersion, np.floor(y)
        chance = scipy.special.betainc(shape, np.maximum(whole, 0.0) + 1.0, success)
        return np.asarray(np.where(whole < 0, 0.0, chance))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        success = 1.0 / (1.0 + dispersion * np.asarray(mean))
        return np.asarray(
            np.maximum(scipy.stats.nbinom.ppf(probability, 1.0 / dispersion, success), 0.0)
        )

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        rate = rng.gamma(1.0 / dispersion, np.asarray(mean) * dispersion)
        return draw_counts(rng, np.asarray(rate))

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        if self.dispersion is not None:
            return self.dispersion
        constants = self.constants(y, weights, np.ones_like(y), y)
        return 1.0 / float(negative_binomial_shape(constants, y, weights, mean, 1.0))

    def log_dispersion_prior(self, dispersion: float) -> float:
        r"""Uniform on :math:`\phi/(1+\phi)`: the data may have no overdispersion at all."""
        return log(dispersion) - 2.0 * log1p(dispersion)

    def initial_mean(self, mean: Column, trials: Column) -> Column:
        return np.where(mean > 0, mean, 1.0 / 6.0)

    def constants(
        self,
        y: Column,
        weights: Column,
        trials: Column,
        group_mean: FloatArray,
    ) -> Constants:
        values, inverse = np.unique(y, return_inverse=True)
        counts = np.bincount(inverse, weights=weights, minlength=values.size)
        rest = -float(weights @ scipy.special.gammaln(y + 1))
        squares = float(weights @ (y * y))
        return Constants(float(weights.sum()), rest, 0.0, -np.inf, squares, values, counts)
