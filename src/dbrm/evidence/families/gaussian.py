"""Gaussian responses. With the identity link `GaussianEngine` is exact; other links use Laplace."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.special

from dbrm._kernels import glm_rows
from dbrm._kernels.glm_dispersion import Constants
from dbrm._typing import Column, FloatArray
from dbrm.evidence.families.base import CompiledFamily, register, shape_constants

__all__ = ["Gaussian"]


@register
@final
@dataclass(frozen=True, slots=True)
class Gaussian(CompiledFamily):
    r"""Real responses with constant variance :math:`\phi = \sigma^2`."""

    name = "gaussian"
    code = glm_rows.GAUSSIAN
    observed_links = ("identity",)
    default_link = "identity"
    canonical_link = "identity"
    mean_interval = (-np.inf, np.inf)
    has_dispersion = True
    dispersion_divides_information = True
    exact_link = "identity"
    out_of_core_links = ("identity",)

    @property
    def label(self) -> str:
        return "Gaussian"

    def log_density(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(-0.5 * (np.log(2 * np.pi * dispersion) + (y - mean) ** 2 / dispersion))

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return np.full(np.shape(mean), dispersion)

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(scipy.special.ndtr((y - mean) / np.sqrt(dispersion)))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(mean + np.sqrt(dispersion) * scipy.special.ndtri(probability))

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(rng.normal(mean, np.sqrt(dispersion)))

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        return max(float(weights @ (y - mean) ** 2) / float(weights.sum()), np.finfo(float).tiny)

    def constants(
        self,
        y: Column,
        weights: Column,
        trials: Column,
        group_mean: FloatArray,
    ) -> Constants:
        n = float(weights.sum())
        within = float(weights @ (y - group_mean) ** 2)
        centre = float(weights @ y) / n
        total = float(weights @ (y - centre) ** 2)
        tiny = np.finfo(float).tiny
        floor = max(1e-12 * total, n * (1e-16 * float(np.abs(y).max())) ** 2, tiny)
        return shape_constants(n, rest=0.0, saturated=0.5 * within, floor=floor)
