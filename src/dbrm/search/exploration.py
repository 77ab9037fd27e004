"""Input and output of a search inside one population.

The search sees masks and numbers, never features or data.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, StatusArray

__all__ = [
    "CountCallback",
    "Exploration",
    "PreparedPopulation",
    "PriorTerms",
    "Walk",
    "log_sum_exp",
]

# A prior is taken to favour a feature if it adds this much, in nats.
_LEAST_GAIN = 1e-9

# Called with the numbers of models done and to do.
CountCallback = Callable[[int, int], None]


class PreparedPopulation(Protocol):
    """Columns prepared for evaluation; `dbrm.evidence` provides them."""

    enumeration_limit: int

    @property
    def size(self) -> int:
        """Number of columns."""

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        """Log evidence and status of each row of `masks`."""

    def log_evidence_of_all(
        self, max_size: int, report: CountCallback | None = None
    ) -> tuple[FloatArray, StatusArray]:
        """Log evidence and status of all subsets; bit ``j`` of the index is column ``j``."""

    @property
    def context(self) -> Any:
        """What the search evaluates masks on: arrays of a compiled engine, or the population."""


@final
@dataclass(frozen=True, slots=True)
class PriorTerms:
    r"""Log prior of a mask: a term per feature plus a term for the model size.

    .. math:: \log p(m) = \sum_j m_j w_j + v_{|m|}, \qquad v_k = -\infty \text{ for } k > Q .

    The last components may be latent effects, which have a count of their own.

    Parameters
    ----------
    feature, size
        The terms :math:`w_j` and :math:`v_k`.
    parents, needed
        Row ``j`` of `parents` marks the features of which at least ``needed[j]`` must be in
        the mask if feature ``j`` is; other masks have probability zero. Both are empty if
        nothing is required.
    latent
        A term for the number of latent effects, one more entry than there are of them.
    """

    feature: FloatArray
    size: FloatArray
    parents: Masks = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    needed: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    latent: FloatArray = field(default_factory=lambda: np.zeros(1))

    @property
    def n_latent(self) -> int:
        """Number of latent effects."""
        return int(self.latent.size) - 1

    @property
    def max_size(self) -> int:
        """Largest model size :math:`Q` with positive prior probability."""
        return int(np.flatnonzero(np.isfinite(self.size))[-1])

    def of(self, masks: Masks) -> FloatArray:
        """Log prior of each row of `masks`."""
        # Not a product: zero times a forbidden feature's minus infinity is no number.
        terms = np.where(masks, self.feature, 0.0)
        n_features = masks.shape[1] - self.n_latent
        values = np.asarray(terms.sum(axis=1) + self.size[masks[:, :n_features].sum(axis=1)])
        values = values + self.latent[masks[:, n_features:].sum(axis=1)]
        return np.where(self._orphans(masks).any(axis=1), -np.inf, values)

    def beside(self, n_settled: int) -> "PriorTerms":
        """The terms of masks over the other features, where the first ones are in every model."""
        settled = float(self.feature[:n_settled].sum())
        return PriorTerms(self.feature[n_settled:], self.size[n_settled:] + settled)

    def without_orphans(self, mask: Mask) -> Mask:
        """The mask without features whose parents it lacks, to start a search from."""
        mask = mask.copy()
        while (orphans := self._orphans(mask[None])[0]).any():
            mask &= ~orphans
        return mask

    def with_favoured(self, mask: Mask) -> Mask:
        """The mask with all features that the prior would rather have in, to start a search from.

        They enter in the order of their terms, as long as each makes the mask more probable.
        There are none where every feature costs something, as under a penalty on complexity.
        """
        n_features = mask.size - self.n_latent
        outside = np.flatnonzero(~mask[:n_features])
        outside = outside[np.argsort(-self.feature[outside], kind="stable")]
        size = n_features - outside.size
        with np.errstate(invalid="ignore"):
            gains = self.feature[outside] + np.diff(self.size[size : n_features + 1])
        # Not for the sake of a rounding error, and not from one impossible size to the next.
        refused = np.flatnonzero(~(gains > _LEAST_GAIN))
        mask = mask.copy()
        mask[outside[: refused[0] if refused.size else None]] = True
        return mask

    def _orphans(self, masks: Masks) -> Masks:
        """Features of each mask that have fewer parents in it than they need."""
        if not self.needed.size:
            return np.zeros_like(masks)
        present = masks.astype(np.int64) @ self.parents.T.astype(np.int64)
        return np.asarray(masks & (present < self.needed))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """Models found inside one population.

    Parameters
    ----------
    masks, log_evidence, log_prior, statuses
        The models worth keeping, one row each.
    inclusion
        Posterior probability of each feature within the population, from all models
        evaluated, kept or not.
    log_mass
        Log of the posterior mass (unnormalised) of all models evaluated.
    log_lost
        Log of the mass of the models evaluated but not kept.
    n_evaluated
        How many different models were evaluated.
    status_counts
        How many of the models evaluated ended with each status.
    last
        The mask at which a Markov chain stopped, the best mask of an enumeration.
    walk
        The Markov chain's own records; none for an enumeration.
    """

    masks: Masks
    log_evidence: FloatArray
    log_prior: FloatArray
    statuses: StatusArray
    inclusion: FloatArray
    log_mass: float
    log_lost: float
    n_evaluated: int
    status_counts: dict[int, int]
    last: Mask
    walk: "Walk | None" = None

    def with_settled(self, n_settled: int) -> "Exploration":
        """The same models as masks that begin with features which all of them have."""
        if not n_settled:
            return self
        return replace(
            self,
            masks=np.pad(self.masks, ((0, 0), (n_settled, 0)), constant_values=True),
            inclusion=np.pad(self.inclusion, (n_settled, 0), constant_values=1.0),
            last=np.pad(self.last, (n_settled, 0), constant_values=True),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Statistics of a Markov chain through a population, after its adaptation.

    Parameters
    ----------
    frequency
        Share of the steps spent in models with each feature.
    visits
        Steps spent in each of the models kept.
    log_posterior, size
        Of the state after each step.
    proposed, accepted
        How often each kernel was tried and accepted, adaptation included.
    """

    frequency: FloatArray
    visits: IntArray
    log_posterior: FloatArray
    size: "np.typing.NDArray[np.int32]"
    proposed: dict[str, int]
    accepted: dict[str, int]


def log_sum_exp(values: FloatArray) -> float:
    """Log of a sum of exponentials, without overflow; ``-inf`` for an empty sum."""
    peak = float(np.max(values, initial=-np.inf))
    if not np.isfinite(peak):
        return peak
    return peak + float(np.log(np.sum(np.exp(values - peak))))
