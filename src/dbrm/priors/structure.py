"""The built-in model priors."""

from dataclasses import dataclass
from math import comb, inf, log
from typing import final

import numpy as np
from scipy.special import betaln, gammaln

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.features import Covariate, Feature, Modification, Product, Projection
from dbrm.priors.base import MODEL_PRIORS, Counts, ModelPrior

__all__ = [
    "Adaptive",
    "BetaBinomial",
    "Complexity",
    "LogicRegression",
    "ScriptWeights",
    "Uniform",
    "resolve_model_prior",
]


@final
@dataclass(frozen=True, slots=True)
class Complexity(ModelPrior):
    r"""The paper's prior (Sec. 2.3): :math:`p(M) \propto \prod_{F\in M} a^{c(F)}`.

    Parameters
    ----------
    penalty
        :math:`-\log a \ge 0`, nats per unit of complexity.
    """

    penalty: float
    name = "complexity"

    def __post_init__(self) -> None:
        if not 0.0 <= self.penalty < inf:
            msg = (
                "The penalty is -log a per unit of complexity and must be finite and not "
                f"negative; got penalty={self.penalty!r}. Try 'aic', 'bic' or a number such as 2."
            )
            raise InvalidSettingError(msg)

    def feature_log_prior(self, feature: Feature) -> float:
        return -self.penalty * feature.complexity

    def latent_log_prior(self, complexity: int) -> float:
        r"""A unit costs as much as one of a feature: :math:`b = a`."""
        return -self.penalty * complexity


@final
@dataclass(frozen=True, slots=True)
class Uniform(ModelPrior):
    """All models equally plausible. For given columns only: it does not tame complexity."""

    name = "uniform"

    def feature_log_prior(self, feature: Feature) -> float:  # noqa: ARG002
        return 0.0


@final
@dataclass(frozen=True, slots=True)
class BetaBinomial(ModelPrior):
    r"""Each of :math:`N` candidates in with the same unknown probability, Beta(a, b).

    .. math:: p(M) = B(a + |M|,\, b + N - |M|) / B(a, b) .

    Parameters
    ----------
    n_candidates
        The number :math:`N` of candidate features.
    """

    n_candidates: int
    a: float = 1.0
    b: float = 1.0
    name = "beta-binomial"

    def __post_init__(self) -> None:
        if self.n_candidates < 1 or not (self.a > 0 and self.b > 0):
            msg = (
                "BetaBinomial needs n_candidates >= 1 and positive a and b; got "
                f"n_candidates={self.n_candidates!r}, a={self.a!r}, b={self.b!r}."
            )
            raise InvalidSettingError(msg)

    def feature_log_prior(self, feature: Feature) -> float:  # noqa: ARG002
        return 0.0

    def size_log_prior(self, sizes: IntArray) -> FloatArray:
        left = self.n_candidates - sizes
        values = np.full(sizes.size, -inf)
        possible = left >= 0
        values[possible] = betaln(self.a + sizes[possible], self.b + left[possible])
        return values - float(betaln(self.a, self.b))


@final
@dataclass(frozen=True, slots=True)
class Adaptive(ModelPrior):
    r"""A price per feature that the data decide: how many features there are is unknown.

    Every number :math:`k` of features is as plausible as another, and given it they are drawn one
    by one, with probability :math:`q(F)` each, in any order:

    .. math:: p(M) \propto k! \prod_{F \in M} q(F), \qquad
        q(x_j) = \frac{1}{2p}, \qquad
        q(F) = \frac{1}{(p + |\mathcal{G}|)^2} \, \{2 (p + |\mathcal{G}|)\}^{2 - c(F)} ,

    with :math:`p` covariates and :math:`|\mathcal{G}|` transforms. Covariates have one half
    together, and so have functions of one covariate and products of two, :math:`c = 2`, of which
    there are about :math:`(p + |\mathcal{G}|)^2 / 2`; every further unit of the complexity
    :math:`c` is one of :math:`p + |\mathcal{G}|` and half as plausible. One more feature costs
    :math:`-\log q(F) - \log(k+1)` nats: the more there are already, the less. That is what a rate
    of features that is not known comes to (Scott and Berger 2010, for given columns).
    """

    n_covariates: int
    n_transforms: int
    name = "adaptive"

    def feature_log_prior(self, feature: Feature) -> float:
        if feature.complexity <= 1:
            return -log(2.0 * max(self.n_covariates, 1))
        return log(4.0) - feature.complexity * self._unit

    def size_log_prior(self, sizes: IntArray) -> FloatArray:
        return np.asarray(gammaln(sizes + 1.0))

    def latent_log_prior(self, complexity: int) -> float:
        """A unit costs as much as one of a made feature."""
        return -self._unit * complexity

    @property
    def _unit(self) -> float:
        return log(2.0 * max(self.n_covariates + self.n_transforms, 1))


@final
@dataclass(frozen=True, slots=True)
class LogicRegression(ModelPrior):
    r"""Prior of Example 6: one over the number of logic trees of the same size.

    .. math:: w(F) = -\log N(s), \qquad N(s) = \binom{m}{s} 2^{2s - 2},

    with :math:`s` the number of leaves of the feature and :math:`m` that of covariates.
    Projections are no logic trees and have probability zero.
    """

    n_covariates: int
    name = "logic-regression"

    def __post_init__(self) -> None:
        if self.n_covariates < 1:
            msg = f"LogicRegression needs n_covariates >= 1; got {self.n_covariates!r}."
            raise InvalidSettingError(msg)

    def feature_log_prior(self, feature: Feature) -> float:
        leaves = _count_leaves(feature)
        if leaves > self.n_covariates or _has_projection(feature):
            return -inf
        return -log(comb(self.n_covariates, leaves)) - (2 * leaves - 2) * log(2)


@final
@dataclass(frozen=True, slots=True)
class ScriptWeights(ModelPrior):
    r"""What the published scripts of Examples 1 to 3 charged.

    A feature costs ``rate`` for its plus sign, twice that for every product sign and
    every function, and once for every plus sign inside a projection: with the rate of
    one half a covariate costs 0.5 nats, :math:`g(x)` and :math:`x z` 1.5, a projection
    of :math:`k` covariates :math:`(k+3)/2`.
    """

    rate: float = 0.5
    name = "script-weights"

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate < inf:
            msg = f"ScriptWeights needs a finite rate >= 0; got rate={self.rate!r}."
            raise InvalidSettingError(msg)

    def feature_log_prior(self, feature: Feature) -> float:
        return -self.rate * (1 + _count_signs(feature))

    def latent_log_prior(self, complexity: int) -> float:  # noqa: ARG002
        """A latent effect costs its plus sign."""
        return -self.rate


def _count_leaves(feature: Feature) -> int:
    if isinstance(feature, Covariate):
        return 1
    return sum(_count_leaves(child) for child in feature.children)


def _has_projection(feature: Feature) -> bool:
    return isinstance(feature, Projection) or any(map(_has_projection, feature.children))


def _count_signs(feature: Feature) -> int:
    """Twice the product signs and functions, plus the plus signs inside projections."""
    inside = sum(_count_signs(child) for child in feature.children)
    match feature:
        case Product():
            return inside + 2 * (len(feature.children) - 1)
        case Modification():
            return inside + 2
        case Projection():
            return inside + 2 + len(feature.children)
    return inside


# The paper's choices in Sec. 4.1 and 4.2.
MODEL_PRIORS.register("aic")(lambda _: Complexity(2.0))
MODEL_PRIORS.register("bic")(lambda counts: Complexity(2.0 * log(max(counts.n, 1.0))))
MODEL_PRIORS.register("uniform")(lambda _: Uniform())
MODEL_PRIORS.register("beta-binomial")(lambda counts: BetaBinomial(max(counts.n_covariates, 1)))
MODEL_PRIORS.register("logic-regression")(
    lambda counts: LogicRegression(max(counts.n_covariates, 1))
)
MODEL_PRIORS.register("script-weights")(lambda _: ScriptWeights())
MODEL_PRIORS.register("adaptive")(lambda counts: Adaptive(counts.n_covariates, counts.n_transforms))


@MODEL_PRIORS.register("multiplicity")
def _multiplicity(counts: Counts) -> Complexity:
    r""":math:`a = 1/(p + |\mathcal{G}|)` with :math:`p` covariates.

    A unit of complexity is one more choice among that many, so that all features of one
    complexity together are expected in a model about once or less, however many there are.
    """
    return Complexity(log(max(counts.n_covariates + counts.n_transforms, 1)))


def resolve_model_prior(
    penalty: str | float | ModelPrior, *, n: float, n_covariates: int, n_transforms: int = 0
) -> ModelPrior:
    r"""Turn ``penalty`` into a model prior.

    A name is that of a registered prior; a number is :math:`-\log a` of the paper's prior.
    """
    if isinstance(penalty, ModelPrior):
        return penalty
    if isinstance(penalty, str):
        return MODEL_PRIORS.find(penalty)(Counts(n, n_covariates, n_transforms))
    if isinstance(penalty, bool) or not isinstance(penalty, (int, float)):
        msg = (
            "penalty must be a number, a ModelPrior, or one of "
            f"{', '.join(MODEL_PRIORS)}; got {penalty!r}."
        )
        raise InvalidSettingError(msg)
    return Complexity(float(penalty))
