r"""Densities of :math:`u = 1/(1+g)` and the grid on which they are integrated.

One family with seven numbers holds every mixture of g-priors of this package. It sees
sample size and model size only through those numbers, and no data at all.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf, log, sqrt
from typing import final

import numpy as np

from dbrm._typing import FloatArray

__all__ = ["Grid", "MixingDensity"]

# Terms further than this below the largest are left out (e^-38 = 3e-17).
DEPTH = 38.0
# Steps of the trapezoid rule: never longer than the first, and the second in standard
# deviations of the narrowest possible peak. Together they leave errors below 1e-13.
LONGEST_STEP = 0.25
STEP_PER_DEVIATION = 0.48
# How far beyond the last bend of the integrand the stretching of the grid sets in.
MARGIN = 2.0


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """Nodes in u and the log of weight times density times ``u**(size / 2)``."""

    u: FloatArray
    base: FloatArray


@final
@dataclass(frozen=True)
class MixingDensity:
    r"""The truncated compound confluent hypergeometric family, and a little more.

    With :math:`t = vu`,

    .. math:: \pi(u) \propto t^{a/2-1}(1-t)^{b/2-1}\{k+(1-k)t\}^{-r}
        \exp\Bigl(-\frac{st}{2v} - \frac{zt}{2(1-t)}\Bigr), \qquad 0 < u < 1/v,

    the tCCH of Li and Clyde (2018) for :math:`z = 0`; :math:`z > 0` admits the inverse
    gamma of Zellner and Siow, for which :math:`b` may be negative.

    Parameters
    ----------
    proper
        Whether to normalise. An improper density is taken as it is written.

    Notes
    -----
    Integrals are trapezoid sums in :math:`x = \log\{t/(1-t)\}`, where the integrand is
    analytic in a strip and falls off exponentially: the error is smaller than rounding.
    """

    a: float
    b: float
    r: float = 0.0
    s: float = 0.0
    v: float = 1.0
    k: float = 1.0
    z: float = 0.0
    proper: bool = True

    def log_density(self, log_t: FloatArray, log_complement: FloatArray) -> FloatArray:
        r"""Log of :math:`\pi(u)`, given :math:`\log vu` and :math:`\log(1 - vu)`.

        Both are asked for because neither can be had from :math:`u` at its far end.
        """
        t = np.exp(log_t)
        value = (self.a / 2 - 1) * log_t + (self.b / 2 - 1) * log_complement
        # k + (1-k)t is k(1-t) + t, which does not cancel near t = 1.
        value -= self.r * np.logaddexp(log(self.k) + log_complement, log_t)
        value -= self.s * t / (2 * self.v)
        if self.z > 0:
            value -= 0.5 * self.z * np.exp(np.minimum(log_t - log_complement, 600.0))
        return np.asarray(value - self.log_constant, dtype=np.float64)

    @cached_property
    def log_constant(self) -> float:
        """Log of the integral of the kernel over u; zero if improper."""
        if not self.proper:
            return 0.0
        return float(np.logaddexp.reduce(self._logs(0, inf)[1])) - log(self.v)

    def grid(self, size: int, sharpest: float) -> Grid:
        """Nodes for models of this size.

        `sharpest` is the smallest u at which the likelihood still bends: everything to
        the left of it is a power of u.
        """
        t, logs = self._logs(size, sharpest)
        shift = log(self.v) * (1 + 0.5 * size) + self.log_constant
        return Grid(t / self.v, logs - shift)

    def _logs(self, size: int, sharpest: float) -> tuple[FloatArray, FloatArray]:
        r"""Nodes in t, and log of weight, Jacobian and kernel times :math:`t^{p/2}`.

        Nodes are equidistant in :math:`w` with :math:`x = w + e^{w-w_1} - e^{w_0-w}`:
        the identity between :math:`w_0` and :math:`w_1`, where the integrand bends, and
        giant strides outside, where it only decays.
        """
        left = 0.5 * (self.a + size)
        # The narrowest peak is where all that rises with t stops rising.
        rise = max(self.r if self.k > 1 else -self.r, 0.0)
        push = left + rise + max(-self.s, 0.0) / (2 * self.v) + 1
        step = min(LONGEST_STEP, STEP_PER_DEVIATION / sqrt(push))
        low, high = self._bends(left, sharpest)
        first = low - log(DEPTH / left + 1.0)
        last = high if self.z > 0 else high + log(2 * DEPTH / self.b + 1.0)
        w = step * np.arange(np.floor(first / step), np.ceil(last / step) + 1)
        ahead = np.zeros(w.size) if self.z > 0 else np.exp(w - high)
        behind = np.exp(low - w)
        x = w + ahead - behind
        log_t = -np.logaddexp(0.0, -x)
        t = np.exp(log_t)
        logs = np.log(step * (1.0 + ahead + behind)) + left * log_t
        away = np.logaddexp(0.0, x)
        logs -= 0.5 * self.b * away + self.r * (np.logaddexp(log(self.k), x) - away)
        logs -= self.s * t / (2 * self.v) + 0.5 * self.z * np.exp(np.minimum(x, 600.0))
        return t, logs

    def _bends(self, left: float, sharpest: float) -> tuple[float, float]:
        """Where the logarithm of the integrand can be anything but a straight line in x."""
        scales = [1.0, self.v * sharpest, left / max(abs(self.b), left), min(self.k, 1.0)]
        scales += [left / (left + abs(self.s) / self.v), left / (left + self.z)]
        low = log(min(scales)) - MARGIN
        if self.z > 0:
            return low, log(2 * (2 * DEPTH + left + abs(self.b)) / self.z) + 1.0
        right = log(max(1.0, self.k)) + log(max(1.0, abs(self.s) / self.v, left / self.b))
        return low, right + MARGIN
