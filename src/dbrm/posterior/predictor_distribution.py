r"""The linear predictor of new rows within each model: normal, or log-gamma under a log link.

A fit knows the mode :math:`m` of a row's :math:`\eta = x'\beta`, its variance
:math:`s^2 = x'Cx`, and to first order how far the mean is from the mode,
:math:`d = E(\eta) - m` (`dbrm.posterior.skewness`). Mostly a normal around the mean will do,

.. math:: \eta \sim N(m + d, s^2) .

Under a log link it will not: :math:`E(e^\eta) = e^{m + d + s^2/2}` explodes where few events
or none leave :math:`s` large. There the posterior of a rate is about a gamma distribution,

.. math:: e^{\eta - m} \sim \mathrm{Gamma}\bigl(s^{-2} + \delta,\; s^{-2}\bigr), \qquad
    \delta = \tfrac12 + d / s^2,

with the mean :math:`e^m (1 + \delta s^2)`, finite whatever :math:`s` is. Both agree with the
expansion :math:`e^m(1 + d + s^2/2)` to its order. For one group of :math:`n` Poisson counts
with sum :math:`t` the second is the posterior itself: from the maximum of the likelihood under
Jeffreys' prior :math:`d = 0`, which gives :math:`\mathrm{Gamma}(t + \frac12, n)`; from the mode
:math:`d = -s^2/2` and :math:`\delta = 0`, which gives the same from Firth's coefficients
(a group without events has the mean :math:`1/(2n)`), and :math:`\mathrm{Gamma}(t, n)` under a
flat prior.

Sees locations and variances, models by rows; neither columns nor responses.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.special

from dbrm._kernels.prediction import mixed_logistic_means
from dbrm._typing import Column, IntArray, Mask, Masks, Matrix

__all__ = ["AbstractPredictor", "LogGammaPredictor", "NormalPredictor", "Rule"]

# Standard deviations that the nodes of a rule reach on both sides; most nodes.
_REACH, _MOST_NODES = 7.0, 401
# Standard deviations that a grid follows its components, for a cdf to 1e-5.
_GRID_REACH = 4.5
# Least shape of a gamma: below it nearly all mass is at rates of nothing, however far down.
_LEAST_SHAPE = 0.25
# Largest step of a rule in eta under the gamma, and in standard deviations.
_STEP, _RELATIVE_STEP = 0.4, 0.6
# Predictors known better than this count as known to this.
_LEAST_SCALE = 1e-6
# Largest logarithm of a mean: squares of e^300 can still be summed.
_LARGEST = 300.0

# From this shape on the distribution function of a gamma is a series: SciPy's loses digits.
_LARGE_SHAPE = 1e4
# Coefficients of the series (Temme 1979).
_TEMME = (1.0, -1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515)

# Values of eta, nodes by rows, and their weights.
Rule = tuple[Matrix, Matrix]


class AbstractPredictor(ABC):
    """Distribution of the linear predictor; all of its matrices are models by rows."""

    @abstractmethod
    def rule(self, model: int, heavy: Mask) -> Rule:
        """Nodes and weights for smooth integrals, fine enough for the `heavy` rows."""

    @property
    @abstractmethod
    def reach(self) -> tuple[Matrix, Matrix]:
        """Where nearly all mass is: lower and upper ends."""

    @property
    @abstractmethod
    def means(self) -> Matrix:
        """Means."""

    @property
    @abstractmethod
    def scales(self) -> Matrix:
        """Standard deviations."""

    @abstractmethod
    def density(self, model: int, rows: IntArray, points: Matrix) -> Matrix:
        """Density of one model at points (by `rows`), up to a factor for each row."""

    @abstractmethod
    def cdf(self, value: Column, rows: IntArray) -> Matrix:
        """Probability, models by `rows`, of being at most each row's `value`."""

    @abstractmethod
    def three_nodes(self, model: int, rows: IntArray) -> Rule:
        """Three nodes and weights with the first four moments of the distribution."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, model: int, rows: IntArray) -> Column:
        """One draw for each of the rows."""


@final
@dataclass(frozen=True, eq=False)
class NormalPredictor(AbstractPredictor):
    """Normal distributions with these means and standard deviations."""

    locations: Matrix
    deviations: Matrix

    @property
    def means(self) -> Matrix:
        return self.locations

    @property
    def scales(self) -> Matrix:
        return self.deviations

    def rule(self, model: int, heavy: Mask) -> Rule:
        half = int(self._halves(heavy[None], self.deviations[[model]])[0])
        nodes = np.linspace(-_REACH, _REACH, 2 * half + 1)
        weights = np.exp(-0.5 * nodes**2)
        eta = self.means[model] + nodes[:, None] * self.deviations[model]
        return eta, np.broadcast_to((weights / weights.sum())[:, None], eta.shape)

    @staticmethod
    def _halves(heavy: Masks, deviations: Matrix) -> IntArray:
        """Number of nodes on either side of the mean, for each model."""
        # With a step of (1 + s^2)^(-1/2) means under any link are exact to 1e-8.
        worst = np.max(deviations, axis=1, initial=0.0, where=heavy)
        half = np.ceil(_REACH * np.sqrt(1.0 + np.minimum(worst, _MOST_NODES) ** 2))
        return np.asarray(np.minimum(half.astype(np.int64), _MOST_NODES // 2))

    def mixed_logistic_means(
        self, weights: Matrix, heavy: Masks, low: float, high: float
    ) -> Column:
        """Means under the logit link, by the same rule, mixed over models; compiled."""
        halves = self._halves(heavy, self.deviations)
        return np.asarray(
            mixed_logistic_means(
                weights, self.locations, self.deviations, halves, _REACH, low, high
            )
        )

    @property
    def reach(self) -> tuple[Matrix, Matrix]:
        half = _GRID_REACH * self.deviations
        return self.means - half, self.means + half

    def density(self, model: int, rows: IntArray, points: Matrix) -> Matrix:
        standard = (points - self.means[model, rows]) / self.deviations[model, rows]
        return np.asarray(np.exp(-0.5 * standard**2))

    def cdf(self, value: Column, rows: IntArray) -> Matrix:
        scales = np.maximum(self.deviations[:, rows], np.finfo(float).tiny)
        with np.errstate(over="ignore"):
            standard = (value - self.locations[:, rows]) / scales
        return np.asarray(scipy.special.ndtr(standard))

    def three_nodes(self, model: int, rows: IntArray) -> Rule:
        nodes = np.array([-np.sqrt(3.0), 0.0, np.sqrt(3.0)])[:, None]
        eta = self.means[model, rows] + nodes * self.deviations[model, rows]
        weights = np.array([1.0, 4.0, 1.0]) / 6.0
        return eta, np.broadcast_to(weights[:, None], eta.shape)

    def sample(self, rng: np.random.Generator, model: int, rows: IntArray) -> Column:
        noise = rng.standard_normal(rows.size)
        return np.asarray(self.means[model, rows] + self.deviations[model, rows] * noise)


@final
@dataclass(frozen=True, eq=False)
class LogGammaPredictor(AbstractPredictor):
    r"""Logarithms of gamma variables, by mode, curvature and first-order shift of the mean.

    Parameters
    ----------
    modes, deviations, shifts
        :math:`m`, :math:`s` and :math:`d`.
    highest
        Limits of the logarithm of the mean; ``None`` for that of floating point.
    """

    modes: Matrix
    deviations: Matrix
    shifts: Matrix
    highest: Matrix | None = None

    @cached_property
    def _shape(self) -> Matrix:
        return np.maximum(self._precision + self._delta, _LEAST_SHAPE)

    @cached_property
    def _centre(self) -> Matrix:
        """Logarithm of the mean rate."""
        centre = self.modes + np.log1p(self._delta / self._precision)
        highest = _LARGEST if self.highest is None else np.minimum(self.highest, _LARGEST)
        return np.minimum(centre, highest)

    @property
    def mean_rates(self) -> Matrix:
        """Means of e^eta, in closed form."""
        with np.errstate(over="ignore"):
            return np.exp(self._centre)

    @cached_property
    def _precision(self) -> Matrix:
        return np.maximum(self.deviations, _LEAST_SCALE) ** -2.0

    @cached_property
    def _delta(self) -> Matrix:
        return np.clip(0.5 + self.shifts * self._precision, 0.0, 1.0)

    @cached_property
    def _cumulants(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Mean of eta less the log mean rate, variance, third and fourth cumulant."""
        return _log_gamma_cumulants(self._shape)

    @cached_property
    def means(self) -> Matrix:
        return self._centre + self._cumulants[0]

    @cached_property
    def scales(self) -> Matrix:
        return np.sqrt(self._cumulants[1])

    def _log_density(self, model: int, rows: IntArray | slice, eta: Matrix) -> Matrix:
        """Log density up to a constant, zero at the mode in eta of e^eta over its mean."""
        apart = eta - self._centre[model, rows]
        with np.errstate(over="ignore"):
            return np.asarray(self._shape[model, rows] * (apart - np.expm1(apart)))

    def _ends(
        self, sharp: float, flat: float, models: int | slice = slice(None)
    ) -> tuple[Matrix, Matrix]:
        shape, centre = self._shape[models], self._centre[models]
        far = sharp / np.sqrt(shape) + flat / shape
        return centre - far, centre + np.log1p(far)

    def rule(self, model: int, heavy: Mask) -> Rule:
        low, high = self._ends(_REACH, 25.0, model)
        step = np.minimum(_STEP, _RELATIVE_STEP / np.sqrt(self._shape[model]))
        needed = float(np.max((high - low) / step, initial=2.0, where=heavy))
        n_nodes = min(int(np.ceil(needed)) + 1, _MOST_NODES)
        eta = low + np.linspace(0.0, 1.0, n_nodes)[:, None] * (high - low)
        weights = np.exp(self._log_density(model, slice(None), eta))
        return eta, np.asarray(weights / weights.sum(axis=0))

    @cached_property
    def reach(self) -> tuple[Matrix, Matrix]:
        return self._ends(_GRID_REACH, 9.0)

    def density(self, model: int, rows: IntArray, points: Matrix) -> Matrix:
        return np.asarray(np.exp(self._log_density(model, rows, points)))

    def cdf(self, value: Column, rows: IntArray) -> Matrix:
        return _log_gamma_cdf(self._shape[:, rows], value - self._centre[:, rows])

    def three_nodes(self, model: int, rows: IntArray) -> Rule:
        mean, variance, third, fourth = (c[model, rows] for c in self._cumulants)
        deviation = np.sqrt(variance)
        skewness, kurtosis = third / deviation**3, 3.0 + fourth / variance**2
        half = np.sqrt(kurtosis - 0.75 * skewness**2)
        below, above = 0.5 * skewness - half, 0.5 * skewness + half
        outer = np.array([-1.0 / (below * 2.0 * half), 1.0 / (above * 2.0 * half)])
        weights = np.array([outer[0], 1.0 - outer[0] - outer[1], outer[1]])
        nodes = np.array([below, np.zeros_like(below), above])
        return self._centre[model, rows] + mean + nodes * deviation, weights

    def sample(self, rng: np.random.Generator, model: int, rows: IntArray) -> Column:
        shape = self._shape[model, rows]
        rate = np.maximum(rng.standard_gamma(shape) / shape, np.finfo(float).tiny)
        return np.asarray(self._centre[model, rows] + np.log(rate))


def _log_gamma_cdf(shape: Matrix, value: Matrix) -> Matrix:
    r"""Distribution function of the logarithm of gamma variables with mean one.

    For a large shape :math:`a`, with :math:`\zeta^2/2 = e^u - 1 - u` of the sign of :math:`u`,

    .. math:: P(u) = \Phi(\zeta\sqrt a) - \frac{e^{-a\zeta^2/2}}{\sqrt{2\pi a}(1 + \beta_1/a)}
        \sum_n \beta_n \zeta^n, \qquad \beta_{n-1} = d_n + (n + 1)\beta_{n+1}/a .
    """
    with np.errstate(over="ignore", invalid="ignore"):
        plain = scipy.special.gammainc(shape, shape * np.exp(value))
        zeta = np.sign(value) * np.sqrt(2.0 * np.maximum(np.expm1(value) - value, 0.0))
        beta = [np.zeros_like(shape) for _ in range(len(_TEMME) + 1)]
        for n in range(len(_TEMME) - 1, 0, -1):
            beta[n - 1] = _TEMME[n] + (n + 1) * beta[n + 1] / shape
        total = np.zeros_like(shape)
        for part in reversed(beta):
            total = total * zeta + part
        tail = np.exp(-0.5 * shape * zeta**2)
        tail = np.where(tail > 0, tail * total, 0.0)
        tail /= np.sqrt(2.0 * np.pi * shape) * (1.0 + beta[1] / shape)
        series = scipy.special.ndtr(zeta * np.sqrt(shape)) - tail
    return np.asarray(np.where(shape > _LARGE_SHAPE, series, plain))


def _log_gamma_cumulants(shape: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    r"""Return :math:`\psi(a) - \log a`, :math:`\psi'(a)`, :math:`\psi''(a)`, :math:`\psi'''(a)`.

    By recurrence up to arguments above eight, and asymptotic series from there; far faster
    than general routines, and without cancellation in the first.
    """
    x = shape.copy()
    sums = [np.zeros_like(x) for _ in range(4)]
    for _ in range(8):
        small = x < 8.0
        inverse = np.where(small, 1.0 / x, 0.0)
        for order, total in enumerate(sums, start=1):
            total += inverse**order
        x += small
    q = 1.0 / x
    q2 = q * q
    series = (
        -0.5 * q - q2 * (1 / 12 - q2 * (1 / 120 - q2 * (1 / 252 - q2 / 240))),
        q * (1 + q * (0.5 + q * (1 / 6 - q2 * (1 / 30 - q2 * (1 / 42 - q2 / 30))))),
        -q2 * (1 + q * (1 + q * (0.5 - q2 * (1 / 6 - q2 * (1 / 6 - 0.3 * q2))))),
        q2 * q * (2 + q * (3 + q * (2 - q2 * (1 - q2 * (4 / 3 - 3 * q2))))),
    )
    first = series[0] - sums[0] + np.log(x / shape)
    return first, series[1] + sums[1], series[2] - 2.0 * sums[2], series[3] + 6.0 * sums[3]
