r"""All models of a population whose evidence is expensive: expand, enumerate, refine.

A cheap approximation of all :math:`2^s` log evidences says where to look. Exact evaluations, in
its order, give errors :math:`e_m` (exact minus approximate), which are nearly additive in what a
model leaves out. A Bayesian regression :math:`e_m = a + \sum_j b_j m_j + \varepsilon_m`, weighted
by closeness to the best model, corrects the approximation and says how far it may still be off.
This goes on until no model that was not evaluated can hold mass that is not known. The
approximation is then made again at the best model found, and the neighbours of the leading models
are a check on what is missed.

With few rows nearly all models that hold mass are evaluated. With very many the approximation is
accurate, its correction more so, and a handful of evaluations is enough. There is no number of
rows at which one becomes the other.

Where an evaluation takes long, as beside latent effects, the search starts at a good model: the
first approximation is made there and then at the best model that it sees, before it is followed.
"""

from typing import Protocol, final

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import forbid_orphans, prior_of_all
from dbrm._typing import FloatArray, IntArray, Mask, Matrix, StatusArray
from dbrm.search.enumeration import enumerate_population
from dbrm.search.exploration import Exploration, PreparedPopulation, PriorTerms, log_sum_exp

__all__ = ["ExpandablePopulation", "refine_population"]

# Models are evaluated that may be this many nats below the best, or so many standard deviations of
# the expected error more. The log of the share that is not known is added: a model whose log
# evidence is known to a tenth of `_ACCURATE` counts as one with a tenth of its mass.
_WINDOW, _DEVIATIONS = 8.0, 2.5
# Standard deviation, in nats, up to which the corrected approximation of a model is kept as its
# log evidence.
_ACCURATE = 0.1
# Models further below the best approximation, or beyond so many, are not looked at.
_FAR, _SHORTLIST = 60.0, 3_000
# All models of populations of this size are evaluated.
_SMALL = 4
# Evaluations at a time (later a fourth of those made), rounds of expansion, and most evaluations of
# one population.
_BATCH, _ROUNDS, _MOST = 8, 3, 2_000
# Neighbours are evaluated of the models that hold this share of the mass, unless the approximation
# would have to be off by so many standard deviations for one to be within so many nats.
_LEADING, _SURE, _CLOSE = 0.99, 8.0, 14.0
# From a given start: steps to the model that is expanded at, and the neighbours evaluated.
_CLIMBS, _PROBES = 6, 4
# Nats over which a model loses its weight in the regression, and the least standard deviation of
# an error and of its dependence on one feature.
_FADE, _LEAST_ERROR, _LEAST_SLOPE = 6.0, 0.001, 0.02


class ExpandablePopulation(PreparedPopulation, Protocol):
    """A population that can approximate the evidence of all of its models."""

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        """Log evidence of all subsets up to a constant, most accurate near `centre`."""


def refine_population(
    population: ExpandablePopulation,
    terms: PriorTerms,
    *,
    window: float,
    max_kept: int,
    start: Mask | None = None,
) -> Exploration:
    """Find all models of a population that hold mass.

    Parameters
    ----------
    window, max_kept
        Models further below the best, in nats, are not kept; nor are more than `max_kept`.
    start
        A good model, given where an evaluation takes longer than an approximation.
    """
    size = population.size
    if size <= _SMALL:
        return enumerate_population(population, terms, window=window, max_kept=max_kept)
    log_prior = prior_of_all(terms.feature, terms.size, terms.latent)
    if terms.needed.size:
        forbid_orphans(log_prior, terms.parents, terms.needed)
    found = _Found(population, log_prior)
    # The model without features is there even if the expansion fails.
    found.evaluate(np.zeros(1, dtype=np.int64))
    n_climbs, n_features = 0 if start is None else _CLIMBS, size - terms.n_latent
    centre = np.ones(size, dtype=np.bool_) if start is None else start
    for number in range(n_climbs + _ROUNDS):
        approximate = population.approximate_all(centre, terms.max_size) + log_prior
        candidates = _Candidates(approximate, size)
        before = found.n
        if number < n_climbs:
            found.evaluate(candidates.best)
        if number >= n_climbs or found.leads_to(centre, n_features):
            found.follow(candidates)
            found.visit_neighbours(candidates, _MOST if start is None else _PROBES)
            found.follow(candidates)
            if found.n == before or found.agrees(candidates) or found.leads_to(centre, n_features):
                break
        centre = unpack_index([found.best], size)[0]
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
        self.best = models[np.argmax(self.approximate[models])][None] if models.size else models
        self._size = size
        self._masks: FloatArray = unpack_index(models, size).astype(np.float64)

    def masks_of(self, models: IntArray) -> FloatArray:
        """The masks of some models, as numbers."""
        if models is self.models:
            return self._masks
        return np.asarray(unpack_index(models, self._size), dtype=np.float64)


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

    def leads_to(self, centre: Mask, n_features: int) -> bool:
        """Whether the best model has the features of `centre`."""
        best = unpack_index([self.best], centre.size)[0]
        return np.array_equal(best[:n_features], centre[:n_features])

    def evaluate(self, models: IntArray) -> None:
        """Evaluate models exactly, once each."""
        models = models[~self._is_done[models]]
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
            corrected, deviation = self._errors(candidates).correct(candidates.models)
            highest = corrected + _DEVIATIONS * deviation
            highest += np.log(np.minimum(deviation / _ACCURATE, 1.0))
            peak = np.max(self._log_posterior)
            peak = peak if peak > -np.inf else np.max(corrected, initial=-np.inf)
            matters = ~self._is_done[candidates.models] & (highest >= peak - _WINDOW)
            if not matters.any():
                return
            most = min(max(_BATCH, self.n // 4), _MOST - self.n)
            order = np.argsort(-highest[matters], kind="stable")[:most]
            self.evaluate(candidates.models[matters][order])

    def visit_neighbours(self, candidates: _Candidates, most: int) -> None:
        """Evaluate models one flip away from those that hold nearly all of the mass."""
        log_posterior = self._log_posterior
        order = np.argsort(-log_posterior, kind="stable")
        share = np.cumsum(np.exp(log_posterior[order] - log_posterior[order[0]]))
        leading = self._models[order[: int(np.searchsorted(share, _LEADING * share[-1])) + 1]]
        flips = np.int64(1) << np.arange(self._population.size, dtype=np.int64)
        around = np.unique(leading[:, None] ^ flips)
        around = around[np.isfinite(self._log_prior[around]) & ~self._is_done[around]]
        corrected, deviation = self._errors(candidates).correct(around)
        highest = corrected + _SURE * deviation
        highest += np.log(np.minimum(_SURE * deviation / _ACCURATE, 1.0))
        near = ~(highest < log_posterior[order[0]] - _CLOSE) | ~np.isfinite(corrected)
        around = around[near][np.argsort(-corrected[near], kind="stable")]
        self.evaluate(around[: max(min(most, _MOST - self.n), 0)])

    def agrees(self, candidates: _Candidates) -> bool:
        """Whether the approximation itself is accurate for the leading models."""
        return self._errors(candidates).spread <= _ACCURATE

    def _errors(self, candidates: _Candidates) -> "_Errors":
        before = candidates.approximate[self._models]
        usable = np.isfinite(self._log_evidence) & np.isfinite(before)
        log_posterior = self._log_posterior[usable]
        return _Errors(
            candidates, self._masks[usable], log_posterior, log_posterior - before[usable]
        )

    def exploration(self, candidates: _Candidates, window: float, max_kept: int) -> Exploration:
        """What was found; other models count as lost unless their evidence is known."""
        others = candidates.models[~self._is_done[candidates.models]]
        corrected, deviation = self._errors(candidates).correct(others)
        known = deviation <= _ACCURATE
        missed = log_sum_exp(corrected[~known])
        models = np.concatenate([self._models, others[known]])
        masks = unpack_index(models, self._population.size)
        log_prior = self._log_prior[models]
        log_posterior = np.concatenate([self._log_posterior, corrected[known]])
        statuses = np.concatenate(
            [self._statuses, np.zeros(int(known.sum()), dtype=self._statuses.dtype)]
        )
        log_mass = log_sum_exp(log_posterior)
        order = np.argsort(-log_posterior, kind="stable")
        inside = log_posterior[order] >= log_posterior[order[0]] - window
        kept = order[inside][:max_kept]
        dropped = log_sum_exp(np.delete(log_posterior, kept))
        counts = np.bincount(self._statuses, minlength=1)
        evidence = np.concatenate([self._log_evidence, corrected[known] - log_prior[self.n :]])
        return Exploration(
            masks=masks[kept],
            log_evidence=evidence[kept],
            log_prior=log_prior[kept],
            statuses=statuses[kept],
            inclusion=np.exp(log_posterior - log_mass) @ masks,
            log_mass=log_mass,
            log_lost=float(np.logaddexp(dropped, missed)),
            n_evaluated=self.n,
            status_counts={int(s): int(counts[s]) for s in np.flatnonzero(counts)},
            last=masks[order[0]],
        )


@final
class _Errors:
    """The regression of the errors of one approximation on the masks."""

    def __init__(
        self, candidates: _Candidates, masks: FloatArray, log_posterior: FloatArray, e: FloatArray
    ) -> None:
        self._candidates = candidates
        size = masks.shape[1]
        # Without a single error nothing is known.
        self._level, self._variance = 0.0, 1.0
        self._centre, self._slopes = np.zeros(size), np.zeros(size)
        self._root: Matrix = np.zeros((size, size))
        self.spread = np.inf
        if e.size:
            self._regress(masks, log_posterior, e)

    def _regress(self, masks: FloatArray, log_posterior: FloatArray, error: FloatArray) -> None:
        weight = np.exp((log_posterior - log_posterior.max()) / _FADE)
        weight /= weight.sum()
        self._level = float(weight @ error)
        self.spread = float(np.sqrt(weight @ (error - self._level) ** 2))
        slope_variance = max(self.spread, _LEAST_SLOPE) ** 2
        self._centre = weight @ masks
        design = masks - self._centre
        # In units of the largest weight, so that one model near the top counts as one.
        counts = weight / weight.max()
        gram = (design * counts[:, None]).T @ design
        right = design.T @ (counts * (error - self._level))
        variance = slope_variance
        for _ in range(2):
            precision = gram / variance + np.eye(gram.shape[0]) / slope_variance
            self._slopes = np.linalg.solve(precision, right / variance)
            left = error - self._level - design @ self._slopes
            variance = max(float(weight @ left**2), _LEAST_ERROR**2)
        self._variance = variance
        self._root = np.linalg.cholesky(np.linalg.inv(precision))

    def correct(self, models: IntArray) -> tuple[FloatArray, FloatArray]:
        """The approximation plus its expected error, and the standard deviation of the error."""
        distance = self._candidates.masks_of(models) - self._centre
        deviation = np.sqrt(self._variance + np.square(distance @ self._root).sum(axis=1))
        corrected = self._candidates.approximate[models] + self._level + distance @ self._slopes
        return np.asarray(corrected), np.asarray(deviation)
