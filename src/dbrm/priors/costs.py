"""Extra costs on top of any model prior: of functions and covariates, of long numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log
from typing import final

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.features import Covariate, Feature, Modification, Product, Projection
from dbrm.features.numbers import count_digits
from dbrm.priors.base import ModelPrior

__all__ = ["WithCosts", "WithLongNumbers"]

# Digits of the weights of a projection that its unit of complexity pays for.
_PAID = 1
# Functions of which the first undoes the second, up to the sign.
_UNDONE = {("power[-1]", "power[-1]"), ("square", "sqrt_abs"), ("sqrt_abs", "square")}


@final
@dataclass(frozen=True, slots=True)
class WithCosts(ModelPrior):
    r"""A model prior that charges for every use of certain functions or covariates.

    .. math:: w(F) = w_0(F) - \sum_{\text{uses in } F} \kappa

    Parameters
    ----------
    base
        The prior :math:`w_0` to start from.
    costs
        Nats :math:`\kappa` per use, by the name of a transform or covariate; negative ones
        make something more plausible.
    """

    base: ModelPrior
    costs: Mapping[str, float]
    name = "with-costs"

    def __post_init__(self) -> None:
        for name, cost in self.costs.items():
            if not -inf < cost < inf:
                msg = f"costs must be finite numbers of nats; got {cost!r} for {name!r}."
                raise InvalidSettingError(msg)

    def feature_log_prior(self, feature: Feature) -> float:
        return self.base.feature_log_prior(feature) - self._charge(feature)

    def size_log_prior(self, sizes: IntArray) -> FloatArray:
        return self.base.size_log_prior(sizes)

    def latent_log_prior(self, complexity: int) -> float:
        return self.base.latent_log_prior(complexity)

    def _charge(self, feature: Feature) -> float:
        inside = sum(self._charge(child) for child in feature.children)
        match feature:
            case Covariate():
                return self.costs.get(feature.name, 0.0)
            case Modification() | Projection():
                return inside + self.costs.get(feature.transform.name, 0.0)
            case Product():
                return inside
        return inside


@final
@dataclass(frozen=True, slots=True)
class WithLongNumbers(ModelPrior):
    r"""A model prior that charges for the digits of fitted numbers inside features.

    .. math:: w(F) = w_0(F) - \log 10 \sum_{\text{sums in } F}
        \Bigl\{d_0 + \max\Bigl(\sum_r d_r - 1, 0\Bigr)\Bigr\}

    with the significant digits :math:`d_r` of the weights of a sum inside a function, and
    :math:`d_0` of its constant: a number is one among :math:`10^d` that could be told apart, and a
    weight of one has none. Numbers inside are fitted, not integrated over as coefficients are, and
    the more precise the data the more digits they have, so that without a charge a function with
    three numbers would seem better than a sum of two terms. A half, or :math:`\pi`, is preferred to
    a longer number that fits as well, and no constant to one that is nearly zero.

    A sum as a factor has no function, and is spelt as an inverse of an inverse,
    ``x*power[-1](power[-1]{1.0*y - 1.0*z})``: it is charged for one function, not for two, as
    otherwise ``x*sin{0.1*y - 0.1*z}``, which is hardly different, would be more plausible.

    Parameters
    ----------
    base
        The prior :math:`w_0`, which charges a unit of complexity for a function, whether there is
        a number in it or not: it pays for the first digit of one weight.
    """

    base: ModelPrior
    name = "with-long-numbers"

    def feature_log_prior(self, feature: Feature) -> float:
        priced = _with_plain_sums(feature)
        return self.base.feature_log_prior(priced) - log(10.0) * _long_digits(feature)

    def size_log_prior(self, sizes: IntArray) -> FloatArray:
        return self.base.size_log_prior(sizes)

    def latent_log_prior(self, complexity: int) -> float:
        return self.base.latent_log_prior(complexity)


@lru_cache(maxsize=50_000)
def _with_plain_sums(feature: Feature) -> Feature:
    """The feature with one function in the place of two that undo each other around a sum."""
    if not feature.children:
        return feature
    if isinstance(feature, Modification) and isinstance(feature.children[0], Projection):
        outer, inner = feature.transform.name, feature.children[0].transform.name
        if (outer, inner) in _UNDONE:
            return _with_plain_sums(feature.children[0])
    children = [_with_plain_sums(child) for child in feature.children]
    if all(new is old for new, old in zip(children, feature.children, strict=True)):
        return feature
    return feature.with_children(children)


@lru_cache(maxsize=50_000)
def _long_digits(feature: Feature) -> int:
    """Digits of the numbers that belong to the identity of a feature, but for those paid."""
    digits = sum(_long_digits(child) for child in feature.children)
    if isinstance(feature, Projection) and feature.weights_in_identity:
        of_weights = sum(count_digits(weight) for weight in feature.weights)
        digits += max(of_weights - _PAID, 0) + count_digits(feature.bias or 0.0)
    return digits
