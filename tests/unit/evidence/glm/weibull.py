"""Weibull responses: times until something fails."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gamma, gammaln

import dbrm


@dataclass(frozen=True)
class Weibull(dbrm.Family):
    """Positive responses whose hazard grows with a power of time.

    The dispersion is one over the shape; a shape of ``None`` is estimated in every model.
    """

    shape: float | None = None

    name = "weibull"
    default_link = "log"
    mean_interval = (0.0, np.inf)
    support = (0.0, np.inf)
    has_dispersion = True

    @property
    def given_dispersion(self):
        return None if self.shape is None else 1 / self.shape

    def log_density(self, y, mean, dispersion=1.0, trials=None):
        log_hazard = log_cumulative_hazard(y, mean, dispersion)
        return log_hazard - np.exp(log_hazard) - np.log(dispersion * y)

    def score(self, y, mean, dispersion=1.0, trials=None):
        return np.expm1(log_cumulative_hazard(y, mean, dispersion)) / (dispersion * mean)

    def information(self, mean, dispersion=1.0, trials=None):
        return 1 / (dispersion * mean) ** 2

    def variance(self, mean, dispersion=1.0):
        return mean**2 * (gamma(1 + 2 * dispersion) / gamma(1 + dispersion) ** 2 - 1)

    def cdf(self, y, mean, dispersion=1.0, trials=None):
        return -np.expm1(-np.exp(log_cumulative_hazard(y, mean, dispersion)))

    def quantile(self, probability, mean, dispersion=1.0, trials=None):
        return mean / gamma(1 + dispersion) * (-np.log1p(-probability)) ** dispersion


def log_cumulative_hazard(y, mean, dispersion):
    return (np.log(y / mean) + gammaln(1 + dispersion)) / dispersion
