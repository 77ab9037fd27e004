"""Extra costs of single functions and covariates on top of any model prior."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import final

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.features import Covariate, Feature, Modification, Product, Projection
from dbrm.priors.base import ModelPrior

__all__ = ["WithCosts"]


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
