"""Counts with more zeros than a Poisson distribution has."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from math import exp, inf
from typing import final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import Family, register
from dbrm.evidence.families.poisson import draw_counts

__all__ = ["ZeroInflatedPoisson"]


@register
@final
@dataclass(frozen=True, slots=True)
class ZeroInflatedPoisson(Family):
    r"""Zero with probability :math:`\pi`, otherwise a Poisson count.

    .. math:: p(0) = \pi + (1-\pi)e^{-\lambda}, \qquad
        p(y) = (1-\pi)\lambda^y e^{-\lambda}/y!, \quad y > 0

    (Lambert 1992). The mean is :math:`\mu = (1-\pi)\lambda`, so that under the log link features
    act on :math:`\lambda` and :math:`\pi` is the same for all rows. The dispersion is the odds
    :math:`\phi = \pi/(1-\pi)`, for which the variance is :math:`\mu + \phi\mu^2`, that of a
    negative binomial count. Data without excess zeros have the Poisson limit.

    Parameters
    ----------
    dispersion
        Known odds :math:`\phi` of an excess zero; ``None`` estimates them in every model.
    """

    dispersion: float | None = None
    name = "zero_inflated_poisson"
    default_link = "log"
    mean_interval = (0.0, np.inf)
    support = (0.0, np.inf)
    has_dispersion = True
    least_dispersion = exp(-7.0)
    discrete = True

    def __post_init__(self) -> None:
        if self.dispersion is not None and not 0.0 < self.dispersion < inf:
            msg = (
                "ZeroInflatedPoisson needs positive finite odds as dispersion or None; "
                f"got {self.dispersion!r}."
            )
            raise InvalidSettingError(msg)

    @property
    def label(self) -> str:
        return "zero-inflated Poisson"

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
        rate = mean * (1.0 + dispersion)
        positive = scipy.special.xlogy(y, rate) - rate - scipy.special.gammaln(y + 1)
        zero = np.log(dispersion + np.exp(-rate))
        return np.asarray(np.where(y == 0, zero, positive) - np.log1p(dispersion))

    def score(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        rate = mean * (1.0 + dispersion)
        about_rate = np.where(y == 0, -_certain(rate, dispersion), y / rate - 1.0)
        return np.asarray(about_rate * (1.0 + dispersion))

    def information(
        self, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        rate = mean * (1.0 + dispersion)
        none = np.exp(-rate)
        about_rate = none * _certain(rate, dispersion) + 1.0 / rate - none
        return np.asarray(about_rate * (1.0 + dispersion))

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return np.asarray(mean * (1.0 + dispersion * mean))

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        rate, whole = mean * (1.0 + dispersion), np.floor(y)
        below = scipy.special.gammaincc(np.maximum(whole + 1.0, 0.0), rate)
        return np.asarray(np.where(whole < 0, 0.0, (dispersion + below) / (1.0 + dispersion)))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        among = np.maximum(np.asarray(probability) * (1.0 + dispersion) - dispersion, 0.0)
        rate = mean * (1.0 + dispersion)
        return np.asarray(np.maximum(scipy.stats.poisson.ppf(np.minimum(among, 1.0), rate), 0.0))

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        rate = np.asarray(mean) * (1.0 + dispersion)
        excess = rng.random(rate.shape) * (1.0 + dispersion) < dispersion
        return np.where(excess, 0.0, draw_counts(rng, rate))

    def log_dispersion_prior(self, dispersion: float) -> float:
        r"""Uniform on :math:`\pi`: the data may have no excess zeros at all."""
        return float(np.log(dispersion) - 2.0 * np.log1p(dispersion))


def _certain(rate: FloatArray, odds: float) -> FloatArray:
    """Probability that a zero is one of the Poisson distribution."""
    return np.asarray(1.0 / (1.0 + odds * np.exp(np.minimum(rate, 700.0))))
