r"""All models of a population whose evidence is expensive: expand, enumerate, refine.

A cheap approximation of all :math:`2^s` log evidences says where to look. Exact evaluations, in
its order, give errors :math:`e_m` (exact minus approximate), which are nearly additive in what a
model leaves out. A Bayesian regression :math:`e_m = a + \sum_j b_j m_j + \varepsilon_m`, weighted
by closeness to the best model, corrects the approximation and says how far it may still be off.
This goes on until no model that was not evaluated can hold mass. The approximation is then made
again at the best model found, and the neighbours of the leading models are a check on what is
missed.
"""

from typing import Protocol, final

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import forbid_orphans, prior_of_all
from dbrm._typing import FloatArray, IntArray, Mask, StatusArray
from dbrm.search.exploration import Exploration, PreparedPopulation, PriorTerms, log_sum_exp

__all__ = ["ExpandablePopulation", "refine_population"]

# Models are evaluated that may be this many nats below the best, or two standard deviations of the
# expected error more.
_WINDOW, _DEVIATIONS = 7.0, 2.0
# Models further below the best approximation, or beyond so many, are not looked at.
_FAR, _SHORTLIST = 60.0, 3_000
# Evaluations at a time, rounds of expansion, and most evaluations of one population.
_BATCH, _ROUNDS, _MOST = 16, 3, 1_000
# Neighbours are evaluated of the models that hold this share of the mass.
_LEADING = 0.99
# Nats over which a model loses its weight in the regression, and the least standard deviation of
# an error and of its dependence on one feature.
_FADE, _LEAST_ERROR, _LEAST_SLOPE = 6.0, 0.01, 0.05


class ExpandablePopulation(PreparedPopulation, Protocol):
    """A population that can approximate the evidence of all of its models."""

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        """Log evidence of all subsets up to a constant, most accurate near `centre`."""


def refine_population(
    population: ExpandablePopulation, terms: PriorTerms, *, window: float, max_kept: int
) -> Exploration:
    """Find all models of a population that hold mass.

    Parameters
    ----------
    window, max_kept
        Models further below the best, in nats, are not kept; nor are more than `max_kept`.
    """
    size = population.size
    log_prior = prior_of_all(terms.feature, terms.size, terms.latent)
    if terms.needed.size:
        forbid_orphans(log_prior, terms.parents, terms.needed)
    found = _Found(population, log_prior)
    # The model without features is there even if the expansion fails.
    found.evaluate(np.zeros(1, dtype=np.int64))
    centre = np.ones(size, dtype=np.bool_)
    for _ in range(_ROUNDS):
        approximate = population.approximate_all(centre, terms.max_size) + log_prior
        candidates = _Candidates(approximate, size)
        before = found.n
        found.follow(candidates)
        found.visit_neighbours(candidates)
        found.follow(candidates)
        best = unpack_index([found.best], size)[0]
        if found.n == before or np.array_equal(best, centre):
            break
        centre = best
    return found.exploration(candidates, window, max_kept)


@final
class _Candidates:
    """The models that one expansion finds worth a look, by their index."""

    def __init__(self, approximate: FloatArray, size: int) -> None:
        self.approximate = np.where(np.isnan(approximate), -np.inf, approximate)
        highest = np.max(self.approximate)
        models = np.flatnonzero(np.isfinite(approximate) & (self.approximate >= highest - _FAR))
        if models.size > _SHORTLIST:
            order = np.argpartition(-approximate[models], _SHORTLIST)[:_SHORTLIST]
            models = np.sort(models[order])
        self.models = models
        self.masks = unpack_index(models, size).astype(np.float64)


@final
class _Found:
    """The models evaluated so far."""

    def __init__(self, population: ExpandablePopulation, log_prior: FloatArray) -> None:
        self._population = population
        self._log_prior = log_prior
        self._is_done = np.zeros(log_prior.size, dtype=np.bool_)
        self._models: IntArray = np.zeros(0, dtype=np.int64)
        self._masks = np.zeros((0, population.size))
        self._log_evidence: FloatArray = np.zeros(0)
        self._statuses: StatusArray = np.zeros(0, dtype=np.uint8)

    @property
    def n(self) -> int:
        return int(self._models.size)

    @property
    def _log_posterior(self) -> FloatArray:
        return np.asarray(self._log_evidence + self._log_prior[self._models])

    @property
    def best(self) -> int:
        return int(self._models[np.argmax(self._log_posterior)])

    def evaluate(self, models: IntArray) -> None:
        """Evaluate models exactly."""
        masks = unpack_index(models, self._population.size)
        values, statuses = self._population.log_evidence(masks)
        self._is_done[models] = True
        self._models = np.concatenate([self._models, models])
        self._masks = np.concatenate([self._masks, masks])
        self._log_evidence = np.concatenate([self._log_evidence, values])
        self._statuses = np.concatenate([self._statuses, statuses])

    def follow(self, candidates: _Candidates) -> None:
        """Evaluate models in the order of the best they may be, until none can matter."""
        while self.n < _MOST:
            corrected, deviation = self._correct(candidates)
            highest = corrected + _DEVIATIONS * deviation
            peak = np.max(self._log_posterior)
            peak = peak if peak > -np.inf else np.max(corrected, initial=-np.inf)
            matters = ~self._is_done[candidates.models] & (highest >= peak - _WINDOW)
            if not matters.any():
                return
            order = np.argsort(-highest[matters], kind="stable")[:_BATCH]
            self.evaluate(candidates.models[matters][order])

    def visit_neighbours(self, candidates: _Candidates) -> None:
        """Evaluate all models one flip away from those that hold nearly all of the mass."""
        log_posterior = self._log_posterior
        order = np.argsort(-log_posterior, kind="stable")
        share = np.cumsum(np.exp(log_posterior[order] - log_posterior[order[0]]))
        leading = self._models[order[: int(np.searchsorted(share, _LEADING * share[-1])) + 1]]
        flips = np.int64(1) << np.arange(self._population.size, dtype=np.int64)
        around = np.unique(leading[:, None] ^ flips)
        approximate = candidates.approximate[around]
        possible = np.isfinite(self._log_prior[around]) & ~self._is_done[around]
        around = around[possible][np.argsort(-approximate[possible], kind="stable")]
        self.evaluate(around[: max(_MOST - self.n, 0)])

    def _correct(self, candidates: _Candidates) -> tuple[FloatArray, FloatArray]:
        """The approximation plus its expected error, and the standard deviation of the error."""
        approximate = candidates.approximate[candidates.models]
        before = candidates.approximate[self._models]
        usable = np.isfinite(self._log_evidence) & np.isfinite(before)
        if not usable.any():
            return approximate, np.zeros(approximate.size)
        log_posterior = self._log_posterior[usable]
        error = log_posterior - before[usable]
        weight = np.exp((log_posterior - log_posterior.max()) / _FADE)
        weight /= weight.sum()
        level = float(weight @ error)
        slope_variance = max(float(weight @ (error - level) ** 2), _LEAST_SLOPE**2)
        centre = weight @ self._masks[usable]
        design = self._masks[usable] - centre
        # In units of the largest weight, so that one model near the top counts as one.
        counts = weight / weight.max()
        gram = (design * counts[:, None]).T @ design
        right = design.T @ (counts * (error - level))
        variance = slope_variance
        for _ in range(2):
            precision = gram / variance + np.eye(gram.shape[0]) / slope_variance
            slopes = np.linalg.solve(precision, right / variance)
            left = error - level - design @ slopes
            variance = max(float(weight @ left**2), _LEAST_ERROR**2)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        distance = candidates.masks - centre
        deviation = np.sqrt(variance + np.square(distance @ root).sum(axis=1))
        return approximate + level + distance @ slopes, deviation

    def exploration(self, candidates: _Candidates, window: float, max_kept: int) -> Exploration:
        """What was found; models that were not evaluated count as lost by what they may hold."""
        corrected, _ = self._correct(candidates)
        missed = log_sum_exp(corrected[~self._is_done[candidates.models]])
        log_posterior = self._log_posterior
        log_mass = log_sum_exp(log_posterior)
        order = np.argsort(-log_posterior, kind="stable")
        inside = log_posterior[order] >= log_posterior[order[0]] - window
        kept = order[inside][:max_kept]
        dropped = log_sum_exp(np.delete(log_posterior, kept))
        counts = np.bincount(self._statuses, minlength=1)
        return Exploration(
            masks=self._masks[kept].astype(np.bool_),
            log_evidence=self._log_evidence[kept],
            log_prior=self._log_prior[self._models[kept]],
            statuses=self._statuses[kept],
            inclusion=np.exp(log_posterior - log_mass) @ self._masks,
            log_mass=log_mass,
            log_lost=float(np.logaddexp(dropped, missed)),
            n_evaluated=self.n,
            status_counts={int(s): int(counts[s]) for s in np.flatnonzero(counts)},
            last=self._masks[order[0]].astype(np.bool_),
        )
