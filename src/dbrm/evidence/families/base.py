r"""What a family of response distributions offers to the engines and to prediction.

A family sees responses, means and a dispersion; never columns or coefficients. For your own,
subclass `Family` and write its density, score and information; for an exponential family
subclass `ExponentialFamily`, where the variance gives score and information. Either runs
through the Python engine, and `dbrm.testing.check_family` tells whether it is right.
`CompiledFamily` is for families known to the kernels, `JointFamily` for likelihoods that are no
sum over rows of functions of one linear predictor.
"""

# ruff: noqa: ARG002 - all families share one set of signatures.

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import ClassVar, Self, TypeVar

import numpy as np
import scipy.optimize

from dbrm._choices import Choices
from dbrm._kernels.glm_dispersion import Constants
from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence.joint.likelihood import JointLikelihood
from dbrm.evidence.links import Link
from dbrm.evidence.observations import Observations

__all__ = [
    "FAMILIES",
    "AbstractFamily",
    "CompiledFamily",
    "ExponentialFamily",
    "Family",
    "JointFamily",
    "register",
]

# Smallest expected information of one observation: keeps information matrices invertible.
_SMALLEST_INFORMATION = 1e-15
# Logarithms of dispersions beyond this are not looked for.
_FARTHEST = 80.0


class AbstractFamily(ABC):
    """What all families have: a name, a link, and the range of their responses."""

    #: The name by which users ask for it.
    name: ClassVar[str]
    #: The link used when none is named.
    default_link: ClassVar[str]
    #: Means lie inside this open interval.
    mean_interval: ClassVar[tuple[float, float]]
    #: Range of the response, per trial: without its ends if continuous, with them if discrete.
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    #: Whether responses are whole numbers.
    discrete: ClassVar[bool] = False
    #: Whether responses are counts out of a number of trials.
    has_trials: ClassVar[bool] = False
    #: Whether there is a dispersion; otherwise it is one.
    has_dispersion: ClassVar[bool] = False
    #: Whether the information about the mean is proportional to one over the dispersion.
    dispersion_divides_information: ClassVar[bool] = False
    #: Smaller dispersions are as good as none.
    least_dispersion: ClassVar[float] = 0.0
    #: The link under which the evidence has a closed form, that of `GaussianEngine`.
    exact_link: ClassVar[str | None] = None
    #: The link under which the linear predictor is the natural parameter, if there is one.
    canonical_link: ClassVar[str | None] = None
    #: Links for which there is an engine that visits the rows in blocks.
    out_of_core_links: ClassVar[tuple[str, ...]] = ()

    @property
    def label(self) -> str:
        """The name as it stands in a sentence."""
        return self.name.replace("_", " ")

    @property
    def text(self) -> str:
        """The name with the parameters that differ from the defaults, as `find_family` reads it."""
        usual = FAMILIES.get(self.name)
        if type(usual) is not type(self):
            return self.name
        # All registered families are dataclasses.
        names = [field.name for field in fields(usual)]  # type: ignore[arg-type]
        given = [(name, getattr(self, name)) for name in names]
        parts = [f"{name}={value!r}" for name, value in given if value != getattr(usual, name)]
        return f"{self.name}({', '.join(parts)})" if parts else self.name

    @property
    def given_dispersion(self) -> float | None:
        """Dispersion fixed by the user, ``None`` where it is estimated or there is none."""
        return None

    @property
    def estimates_dispersion(self) -> bool:
        """Whether the dispersion is a parameter of every model."""
        return self.has_dispersion and self.given_dispersion is None

    def check_response(self, response: Column, trials: Column | None = None) -> None:
        """Raise `InvalidDataError`, naming ``y``, where the response leaves its range."""
        if trials is not None and not self.has_trials:
            msg = f"family={self.name!r} has no trials; trials belong to family='binomial'."
            raise InvalidDataError(msg)
        low, high = self.support
        if self.discrete:
            inside = (response >= low) & (response <= high) & (response == np.floor(response))
        else:
            inside = (response > low) & (response < high)
        require(inside & np.isfinite(response), self.name, _range(self), response)

    @property
    def has_classes(self) -> bool:
        """Whether responses are classes, which columns may separate."""
        return self.has_trials

    def adapted_to(self, columns: Matrix, response: Column, weights: Column | None) -> Self:
        """The family for these data, if something of it is estimated before the search."""
        return self


class Family(AbstractFamily):
    r"""A response distribution with mean :math:`\mu = g^{-1}(\eta)` and dispersion :math:`\phi`.

    The dispersion stands for whatever ancillary parameter the distribution has, positive and
    common to all rows: a variance, one over a shape. All methods work element by element.
    Responses of a binomial kind are numbers of successes out of ``trials``, with the mean the
    probability of one success.
    """

    @abstractmethod
    def log_density(
        self, y: Column, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        """Log density or probability of each response, constants included."""

    @abstractmethod
    def score(
        self, y: Column, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        """Derivative of `log_density` in the mean."""

    @abstractmethod
    def information(
        self, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        """Expected information about the mean: the variance of the `score`."""

    @abstractmethod
    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        """Variance of a response, of one trial if there are several."""

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

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        """One response for each mean, by default the `quantile` of a uniform draw."""
        return self.quantile(rng.random(np.shape(mean)), mean, dispersion, trials)

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        """Maximum likelihood dispersion for given means, by default found numerically."""
        if not self.estimates_dispersion:
            return self.given_dispersion or 1.0

        def loss(log_dispersion: float) -> float:
            dispersion = float(np.exp(np.clip(log_dispersion, -_FARTHEST, _FARTHEST)))
            with np.errstate(all="ignore"):
                value = -float(weights @ self.log_density(y, mean, dispersion))
            return value if np.isfinite(value) else np.finfo(np.float64).max

        best = scipy.optimize.minimize_scalar(loss, bracket=(-1.0, 1.0)).x
        return float(np.exp(np.clip(best, -_FARTHEST, _FARTHEST)))

    def log_dispersion_prior(self, dispersion: float) -> float:
        r"""Log prior density of :math:`\log\phi` in predictions, up to a constant; flat."""
        return 0.0

    def linearise(
        self,
        link: Link,
        eta: FloatArray,
        y: Column,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log density of each row at its linear predictor, and its `derivatives`.

        The log density is ``-inf`` where a mean leaves its interval.
        """
        low, high = self.mean_interval
        with np.errstate(all="ignore"):
            mean = link.mean(eta)
            known = trials if self.has_trials else None
            density = self.log_density(y, self.clip_mean(mean), dispersion, known)
        density = np.where((mean >= low) & (mean <= high), density, -np.inf)
        return density, *self.derivatives(link, eta, y, dispersion, trials)

    def derivatives(
        self,
        link: Link,
        eta: FloatArray,
        y: Column,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        r"""Score and expected information of each row in its linear predictor.

        .. math:: \frac{d\ell}{d\eta} = \frac{d\ell}{d\mu}\,\mu'(\eta), \qquad
            I(\eta) = I(\mu)\,\mu'(\eta)^2 .
        """
        trials = trials if self.has_trials else None
        with np.errstate(all="ignore"):
            mean, slope = self.clip_mean(link.mean(eta)), link.slope(eta)
            score = self.score(y, mean, dispersion, trials) * slope
            information = self.information(mean, dispersion, trials) * slope**2
        least = _SMALLEST_INFORMATION * (1.0 if trials is None else trials)
        return score, np.maximum(information, least)

    def clip_mean(self, mean: FloatArray) -> FloatArray:
        """Means inside their interval, also where a link runs out of digits."""
        low, high = self.mean_interval
        return np.clip(mean, np.nextafter(low, high), np.nextafter(high, low))


class JointFamily(AbstractFamily):
    """A family whose log likelihood is no sum over rows of functions of one linear predictor.

    It may have ancillary parameters, several linear predictors, or rows that depend on each
    other. Its models are evaluated by `dbrm.evidence.joint.engine.JointEngine`.
    """

    @abstractmethod
    def bind(self, observations: Observations) -> JointLikelihood:
        """The log likelihood of these observations, once they are checked."""

    def with_link(self, link: str) -> Self:
        """The family with this link; most have one only."""
        if link != self.default_link:
            msg = f"family={self.name!r} has no other link function; leave link= out."
            raise InvalidSettingError(msg)
        return self

    @abstractmethod
    def predictor_label(self, response: str, classes: Sequence[object] = ()) -> str:
        """What the linear predictor of a response of this name is, in words."""


class ExponentialFamily(Family):
    r"""An exponential family: score and information follow from the variance,

    .. math:: \frac{d\ell}{d\mu} = \frac{y - \mu}{\mathrm{var}(y)}, \qquad
        I(\mu) = \frac{1}{\mathrm{var}(y)},

    where the variance is :math:`\phi V(\mu)`, or contains the dispersion in another way.
    """

    def score(
        self, y: Column, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        n = 1.0 if trials is None else trials
        return np.asarray((y - n * mean) / self.variance(mean, dispersion))

    def information(
        self, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        n = 1.0 if trials is None else trials
        return np.asarray(n / self.variance(mean, dispersion))


FAMILIES: Choices[AbstractFamily] = Choices("family", also="; or pass a Family object")
Registered = TypeVar("Registered", bound=type[AbstractFamily])


def register(family: Registered) -> Registered:
    """Make a family, with its default parameters, known by its name."""
    # Names are looked up with "-" for "_".
    aliases = {family.name.replace("_", "-")} - {family.name}
    FAMILIES.register(family.name, *aliases)(family())
    return family


class CompiledFamily(ExponentialFamily):
    """A family whose row loops are compiled in `dbrm._kernels.glm_rows`."""

    #: Number of the compiled version.
    code: ClassVar[int]
    #: Links under which the kernels use the observed information.
    observed_links: ClassVar[tuple[str, ...]]

    @abstractmethod
    def constants(
        self, y: Column, weights: Column, trials: Column, group_mean: FloatArray
    ) -> Constants:
        """What never changes in the likelihood; ``group_mean`` is each row's grouped response."""

    def initial_mean(self, mean: Column, trials: Column) -> Column:
        """R's initial means: each response, moved a little into the interior."""
        return mean


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


def _range(family: AbstractFamily) -> str:
    """The range of the response in words."""
    if family.support == (0.0, np.inf):
        return "whole numbers >= 0 (counts)" if family.discrete else "positive and finite"
    kind = "whole numbers" if family.discrete else "finite"
    low, high = family.support
    return kind if low == -np.inf and high == np.inf else f"{kind}, between {low:g} and {high:g}"
