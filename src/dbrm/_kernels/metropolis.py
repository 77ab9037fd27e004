r"""Metropolis search over the masks of one population, with a memory of what it saw.

Two symmetric local kernels, chosen without regard to the state: flip one component
drawn uniformly, or exchange one feature of the model for one outside it. Both have
:math:`q(m'|m) = q(m|m')`, so a step is accepted with probability
:math:`\min\{1, p(m'|y)/p(m|y)\}` and the chain has the posterior over the population
as its stationary law. The loop is generic in the evaluation, which is compiled in.
"""

import numba as nb
import numpy as np

from dbrm._kernels.bits import pack
from dbrm._kernels.gaussian import evaluate_gaussian
from dbrm._kernels.store import find, insert

__all__ = ["metropolis_loop", "run_gaussian"]


@nb.njit(cache=True, nogil=True)
def _propose(rng, mask, swap_probability):
    """Change `mask` in place; return the one or two components that changed."""
    size = mask.size
    included = 0
    for j in range(size):
        included += mask[j]
    if rng.random() < swap_probability:
        if included == 0 or included == size:
            return -1, -1
        leaving = _nth(mask, True, int(rng.random() * included))
        entering = _nth(mask, False, int(rng.random() * (size - included)))
        mask[leaving] = False
        mask[entering] = True
        return leaving, entering
    flipped = int(rng.random() * size)
    mask[flipped] = not mask[flipped]
    return flipped, -1


@nb.njit(cache=True, nogil=True)
def _nth(mask, value, rank):
    """Position of the component number `rank` that equals `value`."""
    for j in range(mask.size):
        if mask[j] == value:
            if rank == 0:
                return j
            rank -= 1
    return -1


@nb.njit(cache=True, nogil=True)
def _log_prior(mask, feature_log_prior, size_log_prior):
    total = 0.0
    count = 0
    for j in range(mask.size):
        if mask[j]:
            total += feature_log_prior[j]
            count += 1
    return total + size_log_prior[count]


@nb.njit(cache=True, nogil=True)
def metropolis_loop(
    rng, evaluate, context, store, mask, feature_log_prior, size_log_prior, n_steps, swap
):
    """Run `n_steps`; `mask` ends as the last state, `store` holds every model evaluated.

    Models whose prior is zero (too large) are refused without being evaluated.
    Returns how many proposals were accepted.
    """
    words = np.zeros(store.words.shape[1], dtype=np.uint64)
    accepted = 0
    current = -np.inf
    for step in range(-1, n_steps):
        first = -1
        second = -1
        if step >= 0:
            first, second = _propose(rng, mask, swap)
            if first < 0:
                continue
        prior = _log_prior(mask, feature_log_prior, size_log_prior)
        proposed = -np.inf
        if prior > -np.inf:
            pack(mask, words)
            entry = find(store, words)
            if entry >= 0:
                proposed = store.values[entry] + prior
                store.counts[1] += 1
            else:
                value, status = evaluate(context, mask)
                insert(store, -1 - entry, words, value, status)
                proposed = value + prior
        if step < 0:
            current = proposed
        elif np.log(rng.random()) < proposed - current:
            current = proposed
            accepted += 1
        else:
            mask[first] = not mask[first]
            if second >= 0:
                mask[second] = not mask[second]
    return accepted


@nb.njit(cache=True, nogil=True)
def run_gaussian(
    rng, context, store, mask, feature_log_prior, size_log_prior, n_steps, swap
):
    """`metropolis_loop` with the Gaussian evaluation compiled in."""
    return metropolis_loop(
        rng,
        evaluate_gaussian,
        context,
        store,
        mask,
        feature_log_prior,
        size_log_prior,
        n_steps,
        swap,
    )
