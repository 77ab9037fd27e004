"""Metropolis search for populations too large to enumerate.

Estimates are renormalised over the models seen (the paper's eq. for
:math:`\\hat p(M|y)`, Sec. 3): every evaluated model counts with its exact posterior
mass, accepted or not.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._kernels.metropolis import metropolis_loop, run_gaussian
from dbrm._kernels.gaussian import evaluate_gaussian
from dbrm._kernels.store import Store, new_store
from dbrm._typing import FloatArray, Mask, Masks
from dbrm.errors import InvalidSettingError
from dbrm.search.exploration import Exploration, Population, PriorTerms, log_sum_exp

__all__ = ["Metropolis"]

# Evaluations that have a loop compiled around them; others run the same source uncompiled.
_COMPILED = {evaluate_gaussian: run_gaussian}


@final
@dataclass(frozen=True, slots=True)
class Metropolis:
    """Settings of the Metropolis search.

    Parameters
    ----------
    n_steps
        Steps per population.
    swap_probability
        Probability of the exchange kernel; the rest goes to the single flip.
    window, max_kept
        As in `enumerate_population`.
    """

    n_steps: int = 20_000
    swap_probability: float = 0.3
    window: float = 25.0
    max_kept: int = 20_000

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            msg = f"Metropolis needs n_steps of at least 1; got n_steps={self.n_steps!r}."
            raise InvalidSettingError(msg)
        if not 0.0 <= self.swap_probability < 1.0:
            msg = (
                "Metropolis needs swap_probability in [0, 1), otherwise the model size never "
                f"changes; got swap_probability={self.swap_probability!r}."
            )
            raise InvalidSettingError(msg)

    def explore(
        self, rng: np.random.Generator, population: Population, terms: PriorTerms, start: Mask
    ) -> Exploration:
        """Walk through the masks of a population from `start`."""
        n_words = max(1, -(-population.size // 64))
        store = new_store(self.n_steps + 1, n_words)
        kernel = population.kernel()
        mask = start.copy()
        arguments = (
            kernel.context,
            store,
            mask,
            terms.feature,
            terms.size,
            self.n_steps,
            self.swap_probability,
        )
        loop = _COMPILED.get(kernel.evaluate)
        if loop is not None:
            loop(rng, *arguments)
        else:
            metropolis_loop.py_func(rng, kernel.evaluate, *arguments)
        return self._collect(store, terms, population.size, mask)

    def _collect(self, store: Store, terms: PriorTerms, size: int, last: Mask) -> Exploration:
        count = int(store.counts[0])
        masks = _unpack(store.words[:count], size)
        log_evidence = store.values[:count]
        log_prior = terms.of(masks)
        log_posterior = log_evidence + log_prior
        log_mass = log_sum_exp(log_posterior)
        share = np.exp(log_posterior - log_mass)
        kept = np.flatnonzero(log_posterior >= log_posterior.max() - self.window)
        if kept.size > self.max_kept:
            kept = kept[np.argsort(-log_posterior[kept], kind="stable")[: self.max_kept]]
        lost = max(0.0, 1.0 - float(share[kept].sum()))
        counts = np.bincount(store.statuses[:count], minlength=1)
        return Exploration(
            masks=masks[kept],
            log_evidence=log_evidence[kept],
            log_prior=log_prior[kept],
            statuses=store.statuses[:count][kept],
            inclusion=np.minimum(share @ masks, 1.0),
            log_mass=log_mass,
            log_lost=log_mass + float(np.log(lost)) if lost > 0 else -np.inf,
            n_evaluated=count,
            status_counts={int(s): int(counts[s]) for s in np.flatnonzero(counts)},
            last=last,
        )


def _unpack(words: FloatArray, size: int) -> Masks:
    """Turn packed words into boolean masks."""
    bits = np.unpackbits(
        np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1), axis=1, bitorder="little"
    )
    return bits[:, :size].astype(np.bool_)
