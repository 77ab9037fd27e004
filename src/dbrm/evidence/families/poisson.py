"""Poisson counts."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._kernels import glm_rows
from dbrm._kernels.glm_dispersion import Constants
from dbrm._typing import Column, FloatArray
from dbrm.evidence.families.base import CompiledFamily, register, shape_constants

__all__ = ["Poisson", "draw_counts"]

# Above this rate a Poisson variable is normal to all digits, and NumPy draws none.
_NORMAL = 1e15


@register
@final
@dataclass(frozen=True, slots=True)
class Poisson(CompiledFamily):
    r"""Counts with variance equal to the mean, :math:`\mu^y e^{-\mu}/y!`."""

    name = "poisson"
    code = glm_rows.POISSON
    observed_links = ("log",)
    default_link = "log"
    canonical_link = "log"
    mean_interval = (0.0, np.inf)
    support = (0.0, np.inf)
    discrete = True
    out_of_core_links = ("log",)

    @property
    def label(self) -> str:
        return "Poisson"

    def log_density(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(scipy.special.xlogy(y, mean) - mean - scipy.special.gammaln(y + 1))

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return mean

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(scipy.special.gammaincc(np.maximum(np.floor(y) + 1.0, 0.0), mean))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(np.maximum(scipy.stats.poisson.ppf(probability, mean), 0.0))

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return draw_counts(rng, np.asarray(mean))

    def constants(
        self,
        y: Column,
        weights: Column,
        trials: Column,
        group_mean: FloatArray,
    ) -> Constants:
        return shape_constants(
            float(weights.sum()),
            rest=-float(weights @ scipy.special.gammaln(y + 1)),
            saturated=float(weights @ (scipy.special.xlogy(y, y) - y)),
        )

    def initial_mean(self, mean: Column, trials: Column) -> Column:
        return mean + 0.1


def draw_counts(rng: np.random.Generator, rate: FloatArray) -> FloatArray:
    """Draw Poisson counts, of any rate."""
    counts = rng.poisson(np.minimum(rate, _NORMAL)).astype(np.float64)
    large = rate > _NORMAL
    if np.any(large):
        counts[large] = np.round(rng.normal(rate[large], np.sqrt(rate[large])))
    return counts
