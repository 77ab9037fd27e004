"""Exact posterior over all models of a population: nothing is left to sample."""

from bisect import bisect_right

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import forbid_orphans, inclusion_of_all, prior_of_all
from dbrm._typing import FloatArray, StatusArray
from dbrm.search.exploration import (
    CountCallback,
    Exploration,
    PreparedPopulation,
    PriorTerms,
    log_sum_exp,
)

__all__ = ["enumerate_population"]

_CHUNK = 64


def enumerate_population(
    population: PreparedPopulation,
    terms: PriorTerms,
    *,
    window: float,
    max_kept: int,
    rng: np.random.Generator | None = None,
    report: CountCallback | None = None,
) -> Exploration:
    """Evaluate every mask of a population.

    Parameters
    ----------
    window
        Models whose posterior is more than this many nats below the best are
        accounted for in the inclusion probabilities but not kept.
    max_kept
        At most this many models are kept, the best ones.
    rng
        If given, ``last`` is an exact draw from the posterior, otherwise the best mask.
    report
        Called with the numbers of models done and to do, where that takes time.
    """
    log_prior = prior_of_all(terms.feature, terms.size, terms.latent)
    if terms.needed.size:
        forbid_orphans(log_prior, terms.parents, terms.needed)
    if terms.n_latent:
        log_evidence, statuses = _evaluate_possible(population, log_prior, report)
    else:
        log_evidence, statuses = population.log_evidence_of_all(terms.max_size, report)
    log_posterior = log_evidence + log_prior
    log_mass, inclusion = inclusion_of_all(log_posterior, population.size)
    kept = np.flatnonzero(log_posterior >= log_posterior.max() - window)
    if kept.size > max_kept:
        best = np.argpartition(-log_posterior[kept], max_kept)[:max_kept]
        kept = np.sort(kept[best])
    masks = unpack_index(kept, population.size)
    share = np.exp(log_sum_exp(log_posterior[kept]) - log_mass)
    counts = np.bincount(statuses[np.isfinite(log_prior)], minlength=1)
    return Exploration(
        masks=masks,
        log_evidence=log_evidence[kept],
        log_prior=log_prior[kept],
        statuses=statuses[kept],
        inclusion=inclusion,
        log_mass=float(log_mass),
        log_lost=float(log_mass + np.log1p(-share)) if share < 1 else -np.inf,
        n_evaluated=int(counts.sum()),
        status_counts={int(s): int(counts[s]) for s in np.flatnonzero(counts)},
        last=unpack_index([_last(log_posterior, rng)], population.size)[0],
    )


def _evaluate_possible(
    population: PreparedPopulation, log_prior: FloatArray, report: CountCallback | None
) -> tuple[FloatArray, StatusArray]:
    """Evaluate the masks of positive prior probability, which are slow, and no others."""
    values = np.full(log_prior.size, -np.inf)
    statuses = np.zeros(log_prior.size, dtype=np.uint8)
    possible = np.flatnonzero(np.isfinite(log_prior))
    for start in range(0, possible.size, _CHUNK):
        chunk = possible[start : start + _CHUNK]
        values[chunk], statuses[chunk] = population.log_evidence(
            unpack_index(chunk, population.size)
        )
        if report is not None:
            report(min(start + _CHUNK, possible.size), possible.size)
    return values, statuses


def _last(log_posterior: FloatArray, rng: np.random.Generator | None) -> int:
    if rng is None:
        return int(np.argmax(log_posterior))
    cumulative = np.cumsum(np.exp(log_posterior - log_posterior.max()))
    return min(bisect_right(cumulative, rng.random() * cumulative[-1]), log_posterior.size - 1)
