"""What a family of response distributions offers, to the engine and to prediction.

A family sees responses, means and a dispersion; never columns or coefficients. Subclass
`Family` for your own: it runs through the Python engine, and `dbrm.testing.check_family`
tells whether it is right. `CompiledFamily` is for families known to the kernels.
"""

# ruff: noqa: ARG002 - all families share one set of signatures.

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from dbrm._kernels.glm_dispersion import Constants
from dbrm._typing import Column, FloatArray, Mask
from dbrm.errors import InvalidDataError

__all__ = ["CompiledFamily", "Family"]


class Family(ABC):
    r"""An exponential family with mean :math:`\mu` and variance :math:`\phi V(\mu)`.

    Responses of a binomial kind are numbers of successes out of ``trials``, with the mean
    the probability of one success. All methods work element by element.
    """

    #: The name by which users ask for it.
    name: ClassVar[str]
    #: Number of the compiled version; ``None`` sends models through the Python engine.
    code: ClassVar[int | None] = None
    #: The link under which expected and observed information agree.
    canonical_link: ClassVar[str]
    #: The link used when none is named.
    default_link: ClassVar[str]
    #: Means lie inside this open interval.
    mean_interval: ClassVar[tuple[float, float]]
    #: Whether a dispersion is estimated; otherwise it is one.
    has_dispersion: ClassVar[bool] = False
    #: Whether the dispersion is part of the variance function rather than a factor of it.
    dispersion_in_variance: ClassVar[bool] = False
    #: Whether responses are counts out of a number of trials.
    has_trials: ClassVar[bool] = False
    #: Whether responses are whole numbers.
    discrete: ClassVar[bool] = False

    @property
    def given_dispersion(self) -> float | None:
        """Dispersion fixed by the user, ``None`` where it is estimated or there is none."""
        return None

    @abstractmethod
    def check_response(self, response: Column, trials: Column | None = None) -> None:
        """Raise `InvalidDataError`, naming ``y``, where the response leaves its domain."""

    @abstractmethod
    def log_density(
        self, y: Column, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        """Log density or probability of each response, constants included."""

    @abstractmethod
    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        r"""Variance function :math:`V(\mu)`, without the factor :math:`\phi`.

        With `dispersion_in_variance` it is the whole variance, as for a negative
        binomial response.
        """

    @abstractmethod
    def cdf(
        self, y: Column, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        """Probability of a response no larger than ``y``."""

    @abstractmethod
    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        """Smallest response whose `cdf` reaches ``probability``."""

    @abstractmethod
    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        """One response for each mean."""

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        """Maximum likelihood dispersion for given means."""
        return 1.0


class CompiledFamily(Family):
    """A family whose row loops are compiled in `dbrm._kernels.glm_rows`."""

    code: ClassVar[int]

    @abstractmethod
    def constants(
        self, y: Column, weights: Column, trials: Column, group_mean: FloatArray
    ) -> Constants:
        """What never changes in the likelihood; ``group_mean`` is each row's grouped response."""


def shape_constants(
    n: float, *, rest: float, saturated: float, floor: float = -np.inf
) -> Constants:
    """Constants of a family without tabulated responses."""
    empty = np.zeros(0)
    return Constants(n, rest, saturated, floor, 0.0, empty, empty)


def require(condition: Mask, family: str, what: str, y: Column) -> None:
    """Raise, naming the first offending row, unless ``condition`` holds everywhere."""
    bad = np.flatnonzero(~condition)
    if bad.size:
        msg = (
            f"family={family!r} needs y to be {what}; got y[{bad[0]}]={float(y[bad[0]])!r}"
            f"{f' and {bad.size - 1} more such rows' if bad.size > 1 else ''}."
        )
        raise InvalidDataError(msg)


def refuse_trials(family: str, trials: Column | None) -> None:
    """Only binomial responses have trials."""
    if trials is not None:
        msg = f"family={family!r} has no trials; trials belong to family='binomial'."
        raise InvalidDataError(msg)
