"""Ordered classes: cumulative logit and probit models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self, final

import numpy as np
import scipy.special

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import register
from dbrm.evidence.joint.classes import ClassFamily, ClassNumbers
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.joint.likelihood import JointLikelihood, RowPoint
from dbrm.evidence.observations import Observations

__all__ = ["NORMAL_RULE", "Ordinal", "OrdinalLikelihood"]

_LINKS = ("logit", "probit")
_LOG_ROOT_TWO_PI = 0.9189385332046727
#: Nodes and weights of a rule for normal integrals.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
NORMAL_RULE = (_NODES, _WEIGHTS / _WEIGHTS.sum())


@register
@final
@dataclass(frozen=True, slots=True)
class Ordinal(ClassFamily):
    r"""Classes in order, :math:`P(y \le k) = F(\theta_k - x'\beta)`.

    :math:`F` is the logistic or the normal distribution function (McCullagh 1980); the thresholds
    :math:`\theta_0 < \theta_1 < \ldots` are ancillary parameters and stand for an intercept.
    Positive coefficients make higher classes more probable.

    Parameters
    ----------
    link
        ``"logit"`` or ``"probit"``; users give it as ``link=`` of `dbrm.fit`.
    """

    link: str = "logit"
    name = "ordinal"
    ordered = True

    @property
    def text(self) -> str:
        return self.name

    def with_link(self, link: str) -> Self:
        if link not in _LINKS:
            msg = f"family='ordinal' has link='logit' and link='probit'; got link={link!r}."
            raise InvalidSettingError(msg)
        return replace(self, link=link)

    def bind(self, observations: Observations) -> "OrdinalLikelihood":
        return OrdinalLikelihood(ClassNumbers.of(observations, self.name), self.link)

    def predictor_label(self, response: str, classes: Sequence[object] = ()) -> str:  # noqa: ARG002
        return f"{self.link}(P({response} > k)) + threshold k"

    def parameter_names(
        self, classes: tuple[str, ...], terms: tuple[str, ...]
    ) -> list[tuple[str, str]]:
        thresholds = [f"{low} | {high}" for low, high in pairwise(classes)]
        return [(name, "") for name in (*thresholds, *terms)]

    def n_classes(self, joint: JointFit) -> int:
        return joint.ancillary.size + 1

    def probabilities(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        return _differences(self._cdf(self._gaps(joint, columns, offset)))

    def _gaps(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        return joint.ancillary - (columns @ joint.coefficients[:, 0] + offset)[:, None]

    def _cdf(self, x: FloatArray) -> FloatArray:
        found = scipy.special.expit(x) if self.link == "logit" else scipy.special.ndtr(x)
        return np.asarray(found)

    def mean_probabilities(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        r"""Every :math:`\theta_k - x'\beta` is normal: integrals over one variable."""
        a = joint.ancillary.size
        gaps, covariance = self._gaps(joint, columns, offset), joint.covariance
        own = np.einsum("ni,ij,nj->n", columns, covariance[a:, a:], columns)
        variance = np.diag(covariance)[:a] - 2.0 * columns @ covariance[a:, :a] + own[:, None]
        scale = np.sqrt(np.maximum(variance, 0.0))
        if self.link == "probit":
            return _differences(self._cdf(gaps / np.sqrt(1.0 + scale**2)))
        total = np.zeros_like(gaps)
        for node, weight in zip(*NORMAL_RULE, strict=True):
            total += weight * self._cdf(gaps + node * scale)
        return _differences(total)


def _differences(cumulative: Matrix) -> Matrix:
    """Probabilities of classes from those of all classes up to each."""
    rising = np.maximum.accumulate(cumulative, axis=1)
    return np.diff(rising, axis=1, prepend=0.0, append=1.0)


@final
class OrdinalLikelihood(JointLikelihood):
    r"""Log likelihood of ordered classes in thresholds and predictor.

    With :math:`u = \theta_y - \eta` and :math:`l = \theta_{y-1} - \eta` it is
    :math:`\sum w \log\{F(u) - F(l)\}`, concave in all parameters.
    """

    def __init__(self, classes: ClassNumbers, link: str) -> None:
        self.classes = classes
        self.n_rows = classes.number.size
        self.n = float(classes.weights.sum())
        self._derive = _logistic if link == "logit" else _normal
        self._link = link
        n_thresholds = classes.n_classes - 1
        self.shift = -np.ones((n_thresholds, 1))
        # Which threshold is the upper and which the lower end of each row's class.
        levels = np.arange(n_thresholds)[:, None]
        self._upper = (classes.number == levels).astype(np.float64)
        self._lower = (classes.number - 1 == levels).astype(np.float64)

    def start(self) -> FloatArray:
        cumulative = np.cumsum(self.classes.shares)[:-1]
        inverse = scipy.special.logit if self._link == "logit" else scipy.special.ndtri
        return np.asarray(inverse(cumulative))

    def at(self, ancillary: FloatArray, eta: Matrix) -> RowPoint:
        number, weights = self.classes.number, self.classes.weights
        ends = np.concatenate([[-np.inf], ancillary, [np.inf]])
        upper, lower = ends[number + 1] - eta[0], ends[number] - eta[0]
        rows, first, second = self._derive(upper, lower)
        (du, dl), (uu, ll, ul) = first * weights, second * weights
        value = float(weights @ rows) if np.all(np.diff(ancillary) > 0) else -np.inf
        across = -(self._upper * (uu + ul) + self._lower * (ll + ul))
        between = (self._upper * ul) @ self._lower.T
        own = np.diag(self._upper @ uu + self._lower @ ll)
        return RowPoint(
            value=value if np.isfinite(value) else -np.inf,
            score=-(du + dl)[None],
            ancillary_score=self._upper @ du + self._lower @ dl,
            weight=np.maximum(uu + 2.0 * ul + ll, 0.0)[None, None],
            cross=across[:, None],
            ancillary_information=own + between + between.T,
        )


# Log probability of an interval, its two derivatives in the ends, and the three negative second
# ones: upper, lower, mixed.
Derivatives = tuple[Column, FloatArray, FloatArray]


def _logistic(upper: Column, lower: Column) -> Derivatives:
    r"""By :math:`F(u) - F(l) = F(u)\{1 - F(l)\}(1 - e^{l-u})`, in which nothing cancels."""
    inside = np.isfinite(upper) & np.isfinite(lower)
    with np.errstate(all="ignore"):
        width = np.where(inside, upper - lower, np.inf)
        above, below = scipy.special.expit(-upper), scipy.special.expit(lower)
        value = scipy.special.log_expit(upper) + scipy.special.log_expit(-lower)
        value = value + np.log(-np.expm1(-width))
        ratio = 1.0 / np.expm1(width)
        bend = ratio * (1.0 + ratio)
    first = np.array([above + ratio, -below - ratio])
    return value, first, np.array([above * (1 - above) + bend, below * (1 - below) + bend, -bend])


def _normal(upper: Column, lower: Column) -> Derivatives:
    """Work in the tail where the probabilities are small."""
    flipped: Mask = lower > 0
    high, low = np.where(flipped, -lower, upper), np.where(flipped, -upper, lower)
    with np.errstate(all="ignore"):
        larger, smaller = scipy.special.log_ndtr(high), scipy.special.log_ndtr(low)
        value = larger + np.log(-np.expm1(smaller - larger))
        du = np.exp(-0.5 * upper**2 - _LOG_ROOT_TWO_PI - value)
        dl = np.exp(-0.5 * lower**2 - _LOG_ROOT_TWO_PI - value)
        uu = np.where(np.isfinite(upper), upper, 0.0) * du + du**2
        ll = dl**2 - np.where(np.isfinite(lower), lower, 0.0) * dl
    return value, np.array([du, -dl]), np.array([uu, ll, -du * dl])
