r"""Link functions :math:`\eta = g(\mu)`: what ties the mean to the linear predictor.

A link sees means and linear predictors, never responses. Subclass `Link` for your own;
`dbrm.testing.check_link` tells whether it is right.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import scipy.special

from dbrm._kernels import glm_rows
from dbrm._typing import FloatArray
from dbrm.errors import UnknownNameError, suggest

__all__ = [
    "LINKS",
    "Cloglog",
    "Identity",
    "Inverse",
    "Link",
    "Log",
    "Logit",
    "Probit",
    "find_link",
]

# Linear predictors beyond these give means that are zero or one in double precision.
_FAR = 700.0


class Link(ABC):
    r"""A smooth, strictly monotone map :math:`g` from the mean to the real line."""

    #: The name by which users ask for it.
    name: ClassVar[str]
    #: Number of the compiled version; ``None`` sends models through the Python engine.
    code: ClassVar[int | None] = None
    #: What `mean` computes, for export to program text: ``x`` is the linear predictor.
    expression: ClassVar[str | None] = None
    #: Means inside this open interval have a linear predictor.
    mean_interval: ClassVar[tuple[float, float]]

    @abstractmethod
    def eta(self, mean: FloatArray) -> FloatArray:
        r"""Linear predictor :math:`g(\mu)`."""

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        r"""Mean :math:`g^{-1}(\eta)`; ``nan`` outside the link's domain, never a warning."""

    @abstractmethod
    def slope(self, eta: FloatArray) -> FloatArray:
        r"""Derivative :math:`d\mu/d\eta`."""

    @abstractmethod
    def curvature(self, eta: FloatArray) -> FloatArray:
        r"""Second derivative :math:`d^2\mu/d\eta^2`."""


@final
@dataclass(frozen=True, slots=True)
class Identity(Link):
    r""":math:`\eta = \mu`."""

    name = "identity"
    expression = "x"
    code = glm_rows.IDENTITY
    mean_interval = (-np.inf, np.inf)

    def eta(self, mean: FloatArray) -> FloatArray:
        return np.asarray(mean, dtype=np.float64)

    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(eta, dtype=np.float64)

    def slope(self, eta: FloatArray) -> FloatArray:
        return np.ones_like(eta, dtype=np.float64)

    def curvature(self, eta: FloatArray) -> FloatArray:
        return np.zeros_like(eta, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class Logit(Link):
    r""":math:`\eta = \log\{\mu/(1-\mu)\}`."""

    name = "logit"
    expression = "(1 + tanh(x / 2)) / 2"
    code = glm_rows.LOGIT
    mean_interval = (0.0, 1.0)

    def eta(self, mean: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.logit(mean))

    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.expit(eta))

    def slope(self, eta: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.expit(eta) * scipy.special.expit(-np.asarray(eta)))

    def curvature(self, eta: FloatArray) -> FloatArray:
        return -self.slope(eta) * np.tanh(0.5 * np.asarray(eta))


@final
@dataclass(frozen=True, slots=True)
class Probit(Link):
    r""":math:`\eta = \Phi^{-1}(\mu)`."""

    name = "probit"
    expression = "(1 + erf(x / sqrt(2))) / 2"
    code = glm_rows.PROBIT
    mean_interval = (0.0, 1.0)

    def eta(self, mean: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.ndtri(mean))

    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.ndtr(eta))

    def slope(self, eta: FloatArray) -> FloatArray:
        clipped = np.clip(eta, -38.0, 38.0)
        return np.asarray(np.exp(-0.5 * clipped**2) / np.sqrt(2 * np.pi))

    def curvature(self, eta: FloatArray) -> FloatArray:
        return -np.asarray(eta) * self.slope(eta)


@final
@dataclass(frozen=True, slots=True)
class Cloglog(Link):
    r"""Complementary log-log, :math:`\eta = \log\{-\log(1-\mu)\}`."""

    name = "cloglog"
    expression = "1 - exp(-exp(x))"
    code = glm_rows.CLOGLOG
    mean_interval = (0.0, 1.0)

    def eta(self, mean: FloatArray) -> FloatArray:
        return np.asarray(np.log(-np.log1p(-np.asarray(mean))))

    def mean(self, eta: FloatArray) -> FloatArray:
        return -np.expm1(-_exp(eta))

    def slope(self, eta: FloatArray) -> FloatArray:
        hazard = _exp(eta)
        return np.asarray(np.exp(np.clip(eta, -_FAR, _FAR) - np.minimum(hazard, 2 * _FAR)))

    def curvature(self, eta: FloatArray) -> FloatArray:
        return np.asarray(self.slope(eta) * (1.0 - np.minimum(_exp(eta), 2 * _FAR)))


@final
@dataclass(frozen=True, slots=True)
class Log(Link):
    r""":math:`\eta = \log\mu`."""

    name = "log"
    expression = "exp(x)"
    code = glm_rows.LOG
    mean_interval = (0.0, np.inf)

    def eta(self, mean: FloatArray) -> FloatArray:
        return np.asarray(np.log(mean))

    def mean(self, eta: FloatArray) -> FloatArray:
        return _exp(eta)

    def slope(self, eta: FloatArray) -> FloatArray:
        return _exp(eta)

    def curvature(self, eta: FloatArray) -> FloatArray:
        return _exp(eta)


@final
@dataclass(frozen=True, slots=True)
class Inverse(Link):
    r""":math:`\eta = 1/\mu`, on the positive side."""

    name = "inverse"
    expression = "1 / x"
    code = glm_rows.INVERSE
    mean_interval = (0.0, np.inf)

    def eta(self, mean: FloatArray) -> FloatArray:
        return 1.0 / np.asarray(mean, dtype=np.float64)

    def mean(self, eta: FloatArray) -> FloatArray:
        eta = np.asarray(eta, dtype=np.float64)
        return 1.0 / np.where(eta > 0.0, eta, np.nan)

    def slope(self, eta: FloatArray) -> FloatArray:
        return -(self.mean(eta) ** 2)

    def curvature(self, eta: FloatArray) -> FloatArray:
        return np.asarray(2.0 * self.mean(eta) ** 3)


LINKS: dict[str, Link] = {
    link.name: link for link in (Identity(), Logit(), Probit(), Cloglog(), Log(), Inverse())
}


def find_link(link: str | Link) -> Link:
    """The link of this name, or the link itself."""
    if isinstance(link, Link):
        return link
    if link not in LINKS:
        near = suggest(str(link), LINKS)
        msg = f"There is no link {link!r}{near}. Links: {', '.join(LINKS)}; or pass a Link object."
        raise UnknownNameError(msg)
    return LINKS[link]


def _exp(eta: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.clip(eta, -_FAR, _FAR)))
