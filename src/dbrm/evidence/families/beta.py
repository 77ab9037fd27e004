"""Beta responses: shares strictly between zero and one."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass
from math import exp, inf, log
from typing import final

import numpy as np
import scipy.special

from dbrm._kernels.glm_math import trigammas
from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence.families.base import Family, register

__all__ = ["Beta"]

# Logarithms of precisions that are looked for.
_LOWEST, _HIGHEST = -20.0, 40.0


@register
@final
@dataclass(frozen=True, slots=True)
class Beta(Family):
    r"""Shares with mean :math:`\mu` and precision :math:`\kappa = 1/\phi`.

    .. math:: p(y) = \frac{\Gamma(\kappa)}{\Gamma(\mu\kappa)\,\Gamma\{(1-\mu)\kappa\}}
        y^{\mu\kappa - 1} (1 - y)^{(1-\mu)\kappa - 1}

    (Ferrari and Cribari-Neto 2004), whose variance is :math:`\mu(1-\mu)/(1+\kappa)`.

    Parameters
    ----------
    dispersion
        A known :math:`\phi`; ``None`` estimates it in every model.
    """

    dispersion: float | None = None
    name = "beta"
    default_link = "logit"
    mean_interval = (0.0, 1.0)
    support = (0.0, 1.0)
    has_dispersion = True

    def __post_init__(self) -> None:
        if self.dispersion is not None and not 0.0 < self.dispersion < inf:
            msg = f"Beta needs a positive finite dispersion or None; got {self.dispersion!r}."
            raise InvalidSettingError(msg)

    @property
    def given_dispersion(self) -> float | None:
        return self.dispersion

    def check_response(self, response: Column, trials: Column | None = None) -> None:
        ends = np.flatnonzero((response == 0.0) | (response == 1.0))
        if ends.size:
            n = response.size
            msg = (
                f"family='beta' needs y strictly between 0 and 1; {ends.size} of {n} rows are "
                f"exactly 0 or 1, the first is y[{ends[0]}]={float(response[ends[0]])!r}. Move "
                "them inside, y = (y * (n - 1) + 0.5) / n, or give successes and trials= with "
                "family='binomial'."
            )
            raise InvalidDataError(msg)
        # Slots leave no cell for a plain `super()`.
        Family.check_response(self, response, trials)

    def log_density(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        a, b = mean / dispersion, (1.0 - mean) / dispersion
        gammas = scipy.special.gammaln(a) + scipy.special.gammaln(b)
        total = scipy.special.gammaln(1.0 / dispersion)
        return np.asarray((a - 1.0) * np.log(y) + (b - 1.0) * np.log1p(-y) + total - gammas)

    def score(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        a, b = mean / dispersion, (1.0 - mean) / dispersion
        expected = scipy.special.psi(a) - scipy.special.psi(b)
        return np.asarray((np.log(y) - np.log1p(-y) - expected) / dispersion)

    def information(
        self, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        a, b = mean / dispersion, (1.0 - mean) / dispersion
        return np.asarray((_trigamma(a) + _trigamma(b)) / dispersion**2)

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return np.asarray(mean * (1.0 - mean) * (dispersion / (1.0 + dispersion)))

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        a, b = mean / dispersion, (1.0 - mean) / dispersion
        return np.asarray(scipy.special.betainc(a, b, np.clip(y, 0.0, 1.0)))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        a, b = mean / dispersion, (1.0 - mean) / dispersion
        return np.asarray(scipy.special.betaincinv(a, b, probability))

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        mean = np.asarray(mean)
        drawn = rng.beta(mean / dispersion, (1.0 - mean) / dispersion)
        # Rounded to zero or one a share has no likelihood.
        return np.clip(drawn, np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0))

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        r"""Maximise by Newton's method on :math:`\log\kappa`, in which the likelihood is concave
        around its only maximum.
        """
        if self.dispersion is not None:
            return self.dispersion
        other, total = 1.0 - mean, float(weights.sum())
        logs = float(weights @ (mean * np.log(y) + other * np.log1p(-y)))
        spread = float(weights @ (y - mean) ** 2 / (weights @ (mean * other)))
        at = log(max(1.0 / max(spread, 1e-12) - 1.0, 1e-3))
        for _ in range(60):
            kappa = exp(at)
            a, b = kappa * mean, kappa * other
            slope = total * float(scipy.special.psi(kappa)) + logs
            slope -= float(weights @ (mean * scipy.special.psi(a) + other * scipy.special.psi(b)))
            bend = total * float(_trigamma(np.array(kappa)))
            bend -= float(weights @ (mean**2 * _trigamma(a) + other**2 * _trigamma(b)))
            first, second = kappa * slope, kappa * slope + kappa**2 * bend
            move = -first / second if second < 0 else float(np.sign(first))
            at = min(max(at + min(max(move, -2.0), 2.0), _LOWEST), _HIGHEST)
            if abs(move) < 1e-10:
                break
        return exp(-at)


def _trigamma(x: FloatArray) -> FloatArray:
    return np.asarray(trigammas(np.ravel(x)).reshape(np.shape(x)))
