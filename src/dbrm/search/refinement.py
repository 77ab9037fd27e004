r"""All models of a population whose evidence is expensive: expand, enumerate, refine.

A cheap approximation of all :math:`2^s` log evidences says where to look. Exact evaluations, in
its order, give errors :math:`e_m` (exact minus approximate), which are nearly additive in what a
model leaves out. A Bayesian regression :math:`e_m = a + \sum_j b_j m_j + \varepsilon_m`, weighted
by closeness to the best model, corrects the approximation and says how far it may still be off:
by the standard deviation :math:`\sigma_m`. A model that was not evaluated is expected to hold the
mass :math:`\exp(\hat l_m + \sigma_m^2/2)`, with :math:`\hat l_m` the corrected approximation (the
second term at most some :math:`\sigma_m`). Evaluations go on until all of these together hold a
small share of the mass that was found.

Errors are not additive where classes are nearly separated. So models are evaluated, too, that the
correction may have wrong: neighbours of the best model, and the best models with and without each
feature.

With few rows nearly all models that hold mass are evaluated. With very many the approximation is
accurate, its correction more so, and a handful of evaluations is enough. There is no number of
rows at which one becomes the other.

A chain passes through many populations on its way. One that is better than all before it by far
will be outdone itself, one that is far worse is so already: both are searched quickly.

Where an evaluation takes long, as beside latent effects, the search starts at a good model: the
first approximation is made there and then at the best model that it sees, before it is followed.
"""

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import forbid_orphans, prior_of_all
from dbrm._typing import FloatArray, IntArray, Mask, Matrix, StatusArray
from dbrm.search.enumeration import enumerate_population
from dbrm.search.exploration import Exploration, PreparedPopulation, PriorTerms, log_sum_exp

__all__ = ["ExpandablePopulation", "refine_population"]


@final
@dataclass(frozen=True, slots=True)
class _Effort:
    """How far a search goes.

    Parameters
    ----------
    share
        Expected share of the mass that may be left.
    deviations
        Most standard deviations by which an expected mass exceeds its approximation.
    reach
        Nats by which the approximation of a model may be below that of the best one for it to be
        evaluated as its neighbour.
    n_best
        How many of the best models with, and without, each feature are evaluated.
    """

    share: float
    deviations: float
    reach: float
    n_best: int


_THOROUGH = _Effort(share=5e-4, deviations=2.0, reach=30.0, n_best=2)
_QUICK = _Effort(share=0.02, deviations=1.0, reach=10.0, n_best=1)
# A population is passed through if its best model is this many nats above or below the best one
# of the populations before it.
_ABOVE, _BELOW = 3.0, 6.0
# Standard deviation, in nats, up to which the corrected approximation of a model is kept as its
# log evidence. A model whose log evidence is known to a tenth of it counts as one with a tenth of
# its mass.
_ACCURATE = 0.1
# Models further below the best approximation, or beyond so many, are not looked at.
_FAR, _SHORTLIST = 60.0, 3_000
# All models of populations of this size are evaluated.
_SMALL = 4
# Evaluations at a time (later as many as were made), and most evaluations of one population.
_BATCH, _MOST = 16, 2_000
# How often neighbours are evaluated again because one is the new best model.
_MOVES = 5
# From a given start: steps to the model that is expanded at, and the neighbours evaluated.
_CLIMBS, _PROBES = 9, 4
# Nats over which a model loses its weight in the regression, and the least standard deviation of
# an error and of its dependence on one feature.
_FADE, _LEAST_ERROR, _LEAST_SLOPE = 8.0, 0.001, 0.02


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
    best_before: float | None = None,
    max_fits: int = _MOST,
) -> Exploration:
    """Find all models of a population that hold mass.

    Parameters
    ----------
    window, max_kept
        Models further below the best, in nats, are not kept; nor are more than `max_kept`.
    start
        A good model, given where an evaluation takes longer than an approximation.
    best_before
        Log posterior of the best model of the populations before, if this one may be searched
        quickly.
    max_fits
        Most models that are evaluated.
    """
    size = population.size
    if size <= _SMALL:
        return enumerate_population(population, terms, window=window, max_kept=max_kept)
    log_prior = prior_of_all(terms.feature, terms.size, terms.latent)
    if terms.needed.size:
        forbid_orphans(log_prior, terms.parents, terms.needed)
    found = _Found(population, log_prior, max_fits)
    # The model without features is there even if the expansion fails.
    found.evaluate(np.zeros(1, dtype=np.int64))
    if start is not None:
        candidates = _climb(found, terms, start)
    else:
        candidates = found.expand(np.ones(size, dtype=np.bool_), terms.max_size)
        # How far the approximation is off is not known from fewer.
        found.evaluate(candidates.best_models(_BATCH))
        passing = best_before is not None and found.search_quickly(candidates, best_before)
        if not passing:
            found.search(candidates, _THOROUGH)
    return found.exploration(candidates, window, max_kept)


def _climb(found: "_Found", terms: PriorTerms, centre: Mask) -> "_Candidates":
    """Expand at better and better models; follow the expansion at the best one."""
    n_features = centre.size - terms.n_latent
    for number in range(_CLIMBS):
        candidates = found.expand(centre, terms.max_size)
        before = found.n
        found.evaluate(candidates.best_models(1))
        if found.leads_to(centre, n_features) or number + 1 == _CLIMBS:
            found.search(candidates, _THOROUGH, _PROBES)
            if found.n == before or found.agrees(candidates) or found.leads_to(centre, n_features):
                break
        centre = unpack_index([found.best], centre.size)[0]
    return candidates


@final
class _Candidates:
    """The models that one expansion finds worth a look, by their index."""

    def __init__(self, approximate: FloatArray, size: int) -> None:
        self.approximate = np.where(np.isnan(approximate), -np.inf, approximate)
        # The model without features is evaluated anyway, and expanded worst.
        highest = np.max(self.approximate[1:])
        models = np.flatnonzero(np.isfinite(approximate) & (self.approximate >= highest - _FAR))
        if models.size > _SHORTLIST:
            order = np.argpartition(-approximate[models], _SHORTLIST)[:_SHORTLIST]
            models = np.sort(models[order])
        self.models = models
        self._size = size
        self._masks: FloatArray = unpack_index(models, size).astype(np.float64)

    def best_models(self, n: int) -> IntArray:
        """The best models by the approximation."""
        order = np.argsort(-self.approximate[self.models], kind="stable")
        return np.asarray(self.models[order[:n]])

    def masks_of(self, models: IntArray) -> FloatArray:
        """The masks of some models, as numbers."""
        if models is self.models:
            return self._masks
        return np.asarray(unpack_index(models, self._size), dtype=np.float64)


@final
class _Found:
    """The models evaluated so far."""

    def __init__(
        self, population: ExpandablePopulation, log_prior: FloatArray, max_fits: int
    ) -> None:
        self._population = population
        self._max_fits = max_fits
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

    def expand(self, centre: Mask, max_size: int) -> "_Candidates":
        """The models worth a look by the expansion at a model."""
        approximate = self._population.approximate_all(centre, max_size) + self._log_prior
        return _Candidates(approximate, centre.size)

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

    def search(self, candidates: _Candidates, effort: _Effort, most: int | None = None) -> None:
        """Evaluate what is expected to hold mass, then at most so many others, and again."""
        self._follow(candidates, effort)
        self._probe(candidates, effort, self._max_fits if most is None else most)
        self._follow(candidates, effort)

    def search_quickly(self, candidates: _Candidates, best_before: float) -> bool:
        """Search with little effort; whether that is enough beside the best model before."""
        self._follow(candidates, _QUICK)
        if not self._is_far_from(best_before):
            return False
        self._probe(candidates, _QUICK, self._max_fits)
        self._follow(candidates, _QUICK)
        return self._is_far_from(best_before)

    def _is_far_from(self, best_before: float) -> bool:
        gain = float(np.max(self._log_posterior)) - best_before
        return not -_BELOW <= gain <= _ABOVE

    def _follow(self, candidates: _Candidates, effort: _Effort) -> None:
        """Evaluate models in the order of their expected mass, until little of it is left."""
        models = candidates.models
        while self.n < self._max_fits:
            expected = self._errors(candidates).expected(models, effort.deviations)
            expected[self._is_done[models]] = -np.inf
            known = max(log_sum_exp(self._log_posterior), np.max(expected, initial=-np.inf) - 1.0)
            # All others together hold less than that share.
            near = np.flatnonzero(expected > known + np.log(effort.share / max(models.size, 1)))
            order = near[np.argsort(-expected[near], kind="stable")]
            left = np.cumsum(np.exp(expected[order] - known)[::-1])[::-1]
            n_wanted = int(np.count_nonzero(left > effort.share))
            if n_wanted == 0:
                return
            most = min(max(_BATCH, self.n), self._max_fits - self.n, n_wanted)
            self.evaluate(models[order[:most]])

    def _probe(self, candidates: _Candidates, effort: _Effort, most: int) -> None:
        """Evaluate models that the corrected approximation may have wrong."""
        for _ in range(_MOVES):
            best, errors = self.best, self._errors(candidates)
            models = np.concatenate(
                [self._neighbours(best), self._best_by_feature(candidates, errors, effort.n_best)]
            )
            models = np.unique(models)
            models = models[np.isfinite(self._log_prior[models]) & ~self._is_done[models]]
            approximate = candidates.approximate
            corrected, deviation = errors.correct(models)
            far = approximate[models] < approximate[best] - effort.reach
            unsure = np.flatnonzero(~far & (deviation > _ACCURATE))
            order = unsure[np.argsort(-corrected[unsure], kind="stable")]
            self.evaluate(models[order[: max(min(most, self._max_fits - self.n), 0)]])
            if self.best == best or most < self._max_fits:
                return

    def _neighbours(self, model: int) -> IntArray:
        """Models one feature or one exchange of features away, and those of two features."""
        flips = np.int64(1) << np.arange(self._population.size, dtype=np.int64)
        inside = (model & flips) > 0
        swaps = model ^ flips[inside][:, None] ^ flips[~inside]
        pairs = flips[:, None] | flips
        return np.concatenate([model ^ flips, swaps.ravel(), pairs.ravel()])

    def _best_by_feature(self, candidates: _Candidates, errors: "_Errors", n_best: int) -> IntArray:
        """Best models with and without each feature, before and after the correction."""
        if not candidates.models.size:
            return candidates.models
        corrected = errors.correct(candidates.models)[0]
        rows: list[IntArray] = []
        for values in (candidates.approximate[candidates.models], corrected):
            order = np.argsort(-values, kind="stable")
            masks = candidates.masks_of(candidates.models)[order] > 0.0
            for inside in (masks, ~masks):
                count = np.cumsum(inside, axis=0, dtype=np.int32)
                # Where a feature is in fewer models, the best one of all once more.
                rows += [order[np.argmax(count == nth + 1, axis=0)] for nth in range(n_best)]
        return candidates.models[np.concatenate(rows)]

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
        errors = self._errors(candidates)
        corrected, deviation = errors.correct(others)
        known = deviation <= _ACCURATE
        missed = log_sum_exp(errors.expected(others[~known], _QUICK.deviations))
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
        information, axes = np.linalg.eigh(gram)
        variance = slope_variance
        for _ in range(2):
            precision = np.maximum(information, 0.0) / variance + 1.0 / slope_variance
            self._slopes = axes @ (axes.T @ right / variance / precision)
            left = error - self._level - design @ self._slopes
            variance = max(float(weight @ left**2), _LEAST_ERROR**2)
        self._variance = variance
        self._root = axes / np.sqrt(precision)

    def correct(self, models: IntArray) -> tuple[FloatArray, FloatArray]:
        """The approximation plus its expected error, and the standard deviation of the error."""
        distance = self._candidates.masks_of(models) - self._centre
        deviation = np.sqrt(self._variance + np.square(distance @ self._root).sum(axis=1))
        corrected = self._candidates.approximate[models] + self._level + distance @ self._slopes
        return np.asarray(corrected), np.asarray(deviation)

    def expected(self, models: IntArray, deviations: float) -> FloatArray:
        """Log of the mass that models are expected to hold beyond what is known of it."""
        corrected, deviation = self.correct(models)
        unknown = np.log(np.minimum(deviation / _ACCURATE, 1.0))
        return corrected + np.minimum(0.5 * deviation**2, deviations * deviation) + unknown
