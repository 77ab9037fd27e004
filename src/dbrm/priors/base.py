"""Model priors: how plausible a set of features is before the data.

A model prior sees features and sizes; data only through counts given at construction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._choices import Choices
from dbrm._typing import FloatArray, IntArray
from dbrm.features import Feature

__all__ = ["MODEL_PRIORS", "Counts", "ModelPrior"]


class ModelPrior(ABC):
    r"""Prior of the form :math:`\log p(M) = \sum_{F \in M} w(F) + v(|M|)` (unnormalised)."""

    #: The name by which users ask for it.
    name: str

    @abstractmethod
    def feature_log_prior(self, feature: Feature) -> float:
        """Return :math:`w(F)`, usually negative."""

    def size_log_prior(self, sizes: IntArray) -> FloatArray:
        """Return :math:`v(k)` for each size; zero unless the prior says otherwise."""
        return np.zeros(sizes.size)

    def latent_log_prior(self, complexity: int) -> float:  # noqa: ARG002
        r"""Log prior factor of a latent effect of complexity :math:`v`.

        Zero unless the prior says otherwise; :math:`v \log b` in the paper (Sec. 2.4), with
        :math:`v` the number of hyperparameters, or one (`Settings.latent_charge`).
        """
        return 0.0


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers that a prior by name may depend on: observations, covariates, transforms."""

    n: float
    n_covariates: int
    n_transforms: int = 0


#: The priors that users can choose by name, as functions of the counts; each registers itself.
MODEL_PRIORS: Choices[Callable[[Counts], ModelPrior]] = Choices(
    "penalty", also=", a number, a ModelPrior"
)
