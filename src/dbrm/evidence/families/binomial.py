"""Binomial responses: zeros and ones, or successes out of a number of trials."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._kernels import glm_rows
from dbrm._kernels.glm_dispersion import Constants
from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidDataError
from dbrm.evidence.families.base import CompiledFamily, register, require, shape_constants

__all__ = ["Binomial"]


@register
@final
@dataclass(frozen=True, slots=True)
class Binomial(CompiledFamily):
    r"""Successes out of :math:`N` trials (one by default), :math:`\binom Ny\mu^y(1-\mu)^{N-y}`."""

    name = "binomial"
    code = glm_rows.BINOMIAL
    observed_links = ("logit",)
    default_link = "logit"
    canonical_link = "logit"
    mean_interval = (0.0, 1.0)
    support = (0.0, 1.0)
    has_trials = True
    discrete = True
    out_of_core_links = ("logit", "probit", "cloglog")

    def check_response(self, response: Column, trials: Column | None = None) -> None:
        what = "0 or 1 (give trials= for counts of successes)"
        if trials is None:
            require((response == 0) | (response == 1), self.name, what, response)
            return
        bad = np.flatnonzero(~((trials >= 0) & (trials == np.floor(trials)) & np.isfinite(trials)))
        if bad.size:
            msg = f"trials must be whole numbers >= 0; got trials[{bad[0]}]={trials[bad[0]]!r}."
            raise InvalidDataError(msg)
        inside = (response >= 0) & (response <= trials) & (response == np.floor(response))
        require(inside, self.name, "whole numbers between 0 and trials", response)

    def log_density(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        n = np.ones_like(y) if trials is None else trials
        return np.asarray(
            _log_choose(n, y) + scipy.special.xlogy(y, mean) + scipy.special.xlog1py(n - y, -mean)
        )

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return mean * (1.0 - mean)

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        n = 1.0 if trials is None else trials
        whole = np.clip(np.floor(y), -1.0, n)
        inner = np.clip(whole, 0.0, np.maximum(n - 1.0, 0.0))
        chance = scipy.special.betaincc(inner + 1.0, np.maximum(n - inner, 1.0), mean)
        return np.asarray(np.where(whole < 0, 0.0, np.where(whole >= n, 1.0, chance)))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        n = 1 if trials is None else trials
        return np.asarray(np.maximum(scipy.stats.binom.ppf(probability, n, mean), 0.0))

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        n = 1 if trials is None else np.asarray(trials, dtype=np.int64)
        return np.asarray(rng.binomial(n, mean), dtype=np.float64)

    def initial_mean(self, mean: Column, trials: Column) -> Column:
        return (trials * mean + 0.5) / (trials + 1.0)

    def constants(
        self,
        y: Column,
        weights: Column,
        trials: Column,
        group_mean: FloatArray,
    ) -> Constants:
        rate = y / np.maximum(trials, 1.0)
        best = scipy.special.xlogy(y, rate) + scipy.special.xlog1py(trials - y, -rate)
        return shape_constants(
            float((weights * trials).sum()),
            rest=float(weights @ _log_choose(trials, y)),
            saturated=float(weights @ best),
        )


def _log_choose(n: Column, y: Column) -> FloatArray:
    return np.asarray(
        scipy.special.gammaln(n + 1)
        - scipy.special.gammaln(y + 1)
        - scipy.special.gammaln(n - y + 1)
    )
