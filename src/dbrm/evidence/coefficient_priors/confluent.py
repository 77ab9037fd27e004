r"""Mixtures of g-priors whose constants the user chooses (Li and Clyde 2018).

Write :math:`u = 1/(1+g)`. The names in `g_mixtures` are special cases.
"""

from dataclasses import dataclass
from math import isfinite
from typing import final

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import COEFFICIENT_PRIORS
from dbrm.evidence.coefficient_priors.g_mixtures import require
from dbrm.evidence.coefficient_priors.mixing import MixingDensity
from dbrm.evidence.coefficient_priors.mixture import MixturePrior

__all__ = ["CCH", "TCCH", "AdaptedZellnerSiow", "TruncatedGamma"]


def _require_finite(owner: str, name: str, value: float) -> None:
    if not isfinite(value):
        msg = f"{owner} needs a finite {name}; got {name}={value!r}."
        raise InvalidSettingError(msg)


@final
@COEFFICIENT_PRIORS.register("cch")
@dataclass(frozen=True, slots=True)
class CCH(MixturePrior):
    r"""Confluent hypergeometric: :math:`\pi(u) \propto u^{a/2-1}(1-u)^{b/2-1}e^{-su/2}`.

    Parameters
    ----------
    a, b
        Positive. ``CCH(a=1, b=2, s=0)`` is hyper-g with :math:`a = 3`.
    s
        Any finite number.
    """

    a: float = 1.0
    b: float = 2.0
    s: float = 0.0
    name = "cch"

    def __post_init__(self) -> None:
        require("CCH", "a", self.a, 0.0)
        require("CCH", "b", self.b, 0.0)
        _require_finite("CCH", "s", self.s)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=self.a, b=self.b, s=self.s)


@final
@COEFFICIENT_PRIORS.register("tcch")
@dataclass(frozen=True, slots=True)
class TCCH(MixturePrior):
    r"""Truncated compound confluent hypergeometric.

    .. math:: \pi(u) \propto u^{a/2-1}(1-vu)^{b/2-1}\{k+(1-k)vu\}^{-r}e^{-su/2},
        \qquad 0 < u < 1/v .

    Parameters
    ----------
    a, b, k
        Positive.
    r, s
        Any finite numbers.
    v
        At least one.
    """

    a: float = 1.0
    b: float = 2.0
    r: float = 0.0
    s: float = 0.0
    v: float = 1.0
    k: float = 1.0
    name = "tcch"

    def __post_init__(self) -> None:
        for label in ("a", "b", "k"):
            require("TCCH", label, getattr(self, label), 0.0)
        for label in ("r", "s", "v"):
            _require_finite("TCCH", label, getattr(self, label))
        if self.v < 1.0:
            msg = f"TCCH needs v of at least 1, because u = 1/(1+g) < 1; got v={self.v!r}."
            raise InvalidSettingError(msg)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=self.a, b=self.b, r=self.r, s=self.s, v=self.v, k=self.k)


@final
@COEFFICIENT_PRIORS.register("truncated-gamma", "tg")
@dataclass(frozen=True, slots=True)
class TruncatedGamma(MixturePrior):
    r"""Truncated gamma: :math:`\pi(u) \propto u^{a-1}e^{-su}` on (0, 1) (Wang and George 2007).

    Parameters
    ----------
    a
        Positive.
    s
        Any finite number.
    """

    a: float = 1.0
    s: float = 0.0
    name = "truncated-gamma"

    def __post_init__(self) -> None:
        require("TruncatedGamma", "a", self.a, 0.0)
        _require_finite("TruncatedGamma", "s", self.s)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=2 * self.a, b=2.0, s=2 * self.s)


@final
@COEFFICIENT_PRIORS.register("zs-adapted")
@dataclass(frozen=True, slots=True)
class AdaptedZellnerSiow(MixturePrior):
    r"""Zellner-Siow adapted to the tCCH family: :math:`\pi(u) \propto u^{-1/2}e^{-(n+3)u/2}`.

    Held and Sabanés Bové (2011): :math:`g + 1` instead of :math:`g` is inverse gamma.
    """

    name = "zs-adapted"

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=1.0, b=2.0, s=n + 3.0)
