"""Gamma responses: positive, with a constant coefficient of variation."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from math import inf
from typing import final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._kernels import glm_rows
from dbrm._kernels.glm_dispersion import Constants, gamma_shape
from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import CompiledFamily, register, shape_constants

__all__ = ["Gamma"]


@register
@final
@dataclass(frozen=True, slots=True)
class Gamma(CompiledFamily):
    r"""Positive responses with variance :math:`\phi\mu^2`, shape :math:`\nu = 1/\phi`.

    .. math:: p(y) = \frac{(\nu/\mu)^\nu}{\Gamma(\nu)} y^{\nu-1} e^{-\nu y/\mu},

    with the maximum likelihood shape solving :math:`\log\nu - \psi(\nu) = D/(2n)`, where
    :math:`D` is the deviance with unit dispersion.

    Parameters
    ----------
    dispersion
        A known :math:`\phi`; ``None`` estimates it in every model.
    """

    dispersion: float | None = None
    name = "gamma"
    code = glm_rows.GAMMA
    observed_links = ("inverse", "log")
    default_link = "log"
    canonical_link = "inverse"
    mean_interval = (0.0, np.inf)
    support = (0.0, np.inf)
    has_dispersion = True
    dispersion_divides_information = True

    def __post_init__(self) -> None:
        if self.dispersion is not None and not 0.0 < self.dispersion < inf:
            msg = f"Gamma needs a positive finite dispersion or None; got {self.dispersion!r}."
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
        ratio = shape * y / mean
        return np.asarray(shape * np.log(ratio) - ratio - np.log(y) - scipy.special.gammaln(shape))

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return dispersion * mean * mean

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(
            scipy.special.gammainc(1.0 / dispersion, np.maximum(y, 0.0) / (mean * dispersion))
        )

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(
            scipy.stats.gamma.ppf(probability, 1.0 / dispersion, scale=mean * dispersion)
        )

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(rng.gamma(1.0 / dispersion, np.asarray(mean) * dispersion))

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        if self.dispersion is not None:
            return self.dispersion
        half = float(weights @ (y / mean - 1.0 - np.log(y / mean))) / float(weights.sum())
        return 1.0 / float(gamma_shape(max(half, 1e-15)))

    def constants(
        self,
        y: Column,
        weights: Column,
        trials: Column,
        group_mean: FloatArray,
    ) -> Constants:
        n = float(weights.sum())
        logs = np.log(y)
        total = float(weights @ logs)
        # Deviance of the best constant mean; the scale is taken out before averaging.
        shift = float(logs.max())
        mean = float(weights @ np.exp(logs - shift)) / n
        null = 2.0 * n * (np.log(mean) + shift - total / n)
        rounding = 1e-15 * n * (1.0 + float(np.abs(logs).max()))
        return shape_constants(
            n, rest=-total, saturated=-n - total, floor=max(1e-12 * null, rounding)
        )
