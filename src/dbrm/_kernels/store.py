"""A hash table of evaluated models, of fixed capacity.

Models are packed words; an entry keeps log evidence, log prior and status. Entries stay in the
order in which they came, so the table doubles as the list of visited models. When it
is full, further models are evaluated but not kept, and counted with their mass: every
time they are met, so that this is an upper bound.
"""

from collections import namedtuple

import numba as nb
import numpy as np

from dbrm._kernels.bits import mix

__all__ = ["Store", "find", "insert", "new_store", "refill"]

# counts: [entries, look-ups answered, models that found no room]
# log_lost: log of the posterior mass of those, one number
Store = namedtuple("Store", "slots words values priors statuses counts log_lost")


def new_store(capacity, n_words):
    """Return an empty store for up to `capacity` models of `n_words` words each."""
    n_slots = 1 << int(np.ceil(np.log2(2 * capacity + 2)))
    return Store(
        np.full(n_slots, -1, dtype=np.int64),
        np.zeros((capacity, n_words), dtype=np.uint64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(capacity, dtype=np.uint8),
        np.zeros(3, dtype=np.int64),
        np.full(1, -np.inf),
    )


@nb.njit(cache=True, nogil=True, inline="always")
def find(store, words):
    """Entry of the model, or ``-1 - slot`` of the free slot where it belongs.

    Compiled into its callers: passing the store's arrays would cost more than the look-up.
    """
    last = np.uint64(store.slots.size - 1)
    slot = np.int64(mix(words) & last)
    while True:
        entry = store.slots[slot]
        if entry < 0:
            return -1 - slot
        same = True
        for w in range(words.size):
            if store.words[entry, w] != words[w]:
                same = False
                break
        if same:
            return entry
        slot = (slot + 1) & np.int64(last)


@nb.njit(cache=True, nogil=True)
def insert(store, slot, words, value, prior, status):
    """Keep a model at the free `slot` that `find` gave; return its entry, -1 without room."""
    entry = store.counts[0]
    if entry >= store.values.size:
        store.counts[2] += 1
        if value + prior > -np.inf:
            store.log_lost[0] = np.logaddexp(store.log_lost[0], value + prior)
        return np.int64(-1)
    store.slots[slot] = entry
    for w in range(words.size):
        store.words[entry, w] = words[w]
    store.values[entry] = value
    store.priors[entry] = prior
    store.statuses[entry] = status
    store.counts[0] += 1
    return entry


@nb.njit(cache=True, nogil=True)
def refill(store, words, values, priors, statuses):
    """Put models back into an empty store, in the order in which they came."""
    for row in range(values.size):
        slot = -1 - find(store, words[row])
        insert(store, slot, words[row], values[row], priors[row], statuses[row])
