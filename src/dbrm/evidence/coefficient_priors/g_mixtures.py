r"""The mixtures of g-priors that have names, each a choice of `MixingDensity`.

Write :math:`u = 1/(1+g)`, :math:`p` for the number of columns without the intercept and
:math:`n` for the number of observations. All are undefined for a Gaussian response with
:math:`p > n - 2`; further limits are stated with the prior.
"""

from dataclasses import dataclass
from math import inf
from typing import final

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import COEFFICIENT_PRIORS
from dbrm.evidence.coefficient_priors.mixing import MixingDensity
from dbrm.evidence.coefficient_priors.mixture import MixturePrior

__all__ = [
    "BenchmarkBeta",
    "BetaPrime",
    "HyperG",
    "HyperGN",
    "Intrinsic",
    "JeffreysG",
    "Robust",
    "UniformG",
    "ZellnerSiow",
]


def require(owner: str, name: str, value: float, above: float) -> None:
    """Refuse a setting that is not a finite number above a bound."""
    if not above < value < inf:
        msg = f"{owner} needs {name} to be finite and above {above:g}; got {name}={value!r}."
        raise InvalidSettingError(msg)


@final
@COEFFICIENT_PRIORS.register("hyper-g")
@dataclass(frozen=True, slots=True)
class HyperG(MixturePrior):
    r"""Hyper-g: :math:`\pi(g) = \frac{a-2}{2}(1+g)^{-a/2}` (Liang et al. 2008).

    The Gaussian Bayes factor is
    :math:`\frac{a-2}{p+a-2}\,{}_2F_1(\frac{n-1}{2}, 1; \frac{p+a}{2}; R^2)`.

    Parameters
    ----------
    a
        Above two; three or four are usual.
    """

    a: float = 3.0
    name = "hyper-g"

    def __post_init__(self) -> None:
        require("HyperG", "a", self.a, 2.0)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=self.a - 2, b=2.0)


@final
@COEFFICIENT_PRIORS.register("hyper-g-n", "hyper-g/n")
@dataclass(frozen=True, slots=True)
class HyperGN(MixturePrior):
    r"""Hyper-g/n: :math:`\pi(g) = \frac{a-2}{2n}(1+g/n)^{-a/2}` (Liang et al. 2008).

    Parameters
    ----------
    a
        Above two.
    """

    a: float = 3.0
    name = "hyper-g-n"

    def __post_init__(self) -> None:
        require("HyperGN", "a", self.a, 2.0)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=self.a - 2, b=2.0, r=self.a / 2, k=1.0 / n)


@final
@COEFFICIENT_PRIORS.register("zellner-siow", "jzs", "zs")
@dataclass(frozen=True, slots=True)
class ZellnerSiow(MixturePrior):
    r"""Zellner and Siow's Cauchy prior: :math:`g \sim \mathrm{IG}(\frac12, \frac{rn}{2})`.

    Also known as JZS. BAS calls this integral ``"JZS"``; its ``"ZS-null"`` is a Laplace
    approximation of it, 0.3 nats away at n = 47, p = 5.

    Parameters
    ----------
    r
        The square of the scale of the Cauchy distribution.
    """

    r: float = 1.0
    name = "zellner-siow"

    def __post_init__(self) -> None:
        require("ZellnerSiow", "r", self.r, 0.0)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=1.0, b=-1.0, z=self.r * n)


@final
@COEFFICIENT_PRIORS.register("beta-prime", "ze")
@dataclass(frozen=True, slots=True)
class BetaPrime(MixturePrior):
    r"""Beta-prime: :math:`u \sim \mathrm{Beta}(\frac14, \frac{n-p-1.5}{2})`.

    Maruyama and George (2011). With :math:`a = \frac12, b = n - p - \frac32` the Gaussian
    Bayes factor is
    :math:`(1-R^2)^{-b/2} B(\frac{a+p}{2}, \frac b2)/B(\frac a2, \frac b2)`. Undefined for
    :math:`p \ge n - 1.5`.
    """

    name = "beta-prime"

    def mixing(self, size: int, n: float) -> MixingDensity | None:
        b = n - size - 1.5
        return MixingDensity(a=0.5, b=b) if b > 0 else None


@final
@COEFFICIENT_PRIORS.register("robust")
@dataclass(frozen=True, slots=True)
class Robust(MixturePrior):
    r"""Robust prior of Bayarri et al. (2012), their recommended constants.

    :math:`\pi(g) = \frac12\sqrt{\frac{n+1}{p+1}}\,(1+g)^{-3/2}` for
    :math:`g > \frac{n+1}{p+1} - 1`. Undefined for :math:`p > n` in any family.
    """

    name = "robust"

    def mixing(self, size: int, n: float) -> MixingDensity | None:
        return MixingDensity(a=1.0, b=2.0, v=(n + 1) / (size + 1)) if size <= n else None


@final
@COEFFICIENT_PRIORS.register("intrinsic")
@dataclass(frozen=True, slots=True)
class Intrinsic(MixturePrior):
    r"""Intrinsic: :math:`g = \frac{n}{(p+1)w}`, :math:`w \sim \mathrm{Beta}(\frac12, \frac12)`.

    Womack, León-Novelo and Casella (2014). BAS integrates the GLM version with an
    absolute tolerance and is off by 0.013 on the reference data.
    """

    name = "intrinsic"

    def mixing(self, size: int, n: float) -> MixingDensity:
        total = n + size + 1
        return MixingDensity(a=1.0, b=1.0, r=1.0, v=total / (size + 1), k=total / n)


@final
@COEFFICIENT_PRIORS.register("uniform")
@dataclass(frozen=True, slots=True)
class UniformG(MixturePrior):
    r"""Uniform shrinkage: :math:`g/(1+g) \sim U(0, 1)`, hyper-g with :math:`a = 4`."""

    name = "uniform"

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=2.0, b=2.0)


@final
@COEFFICIENT_PRIORS.register("jeffreys-g")
@dataclass(frozen=True, slots=True)
class JeffreysG(MixturePrior):
    r"""Improper :math:`\pi(g) = (1+g)^{-1}`, hyper-g with :math:`a = 2` (Celeux et al. 2012).

    The null model has no :math:`g`, so its Bayes factor against the others rests on the
    arbitrary constant, here one; models with columns compare as they should.
    """

    name = "jeffreys-g"

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=0.0, b=2.0, proper=False)


@final
@COEFFICIENT_PRIORS.register("benchmark")
@dataclass(frozen=True, slots=True)
class BenchmarkBeta(MixturePrior):
    r"""Benchmark beta: :math:`u \sim \mathrm{Beta}(c, c\max(n, k^2))` (Ley and Steel 2012).

    Parameters
    ----------
    candidates
        :math:`k`, the number of columns that models are chosen from.
    c
        Ley and Steel recommend 0.01.
    """

    candidates: int
    c: float = 0.01
    name = "benchmark"

    def __post_init__(self) -> None:
        require("BenchmarkBeta", "candidates", self.candidates, 0)
        require("BenchmarkBeta", "c", self.c, 0.0)

    def mixing(self, size: int, n: float) -> MixingDensity:  # noqa: ARG002
        return MixingDensity(a=2 * self.c, b=2 * self.c * max(n, float(self.candidates) ** 2))
