"""The permutations that R before version 3.6 drew, so that published draws can be repeated.

R seeds the Mersenne Twister by a linear congruential generator and, in those versions,
turned a uniform number into an index by rounding down.
"""

import numpy as np

from dbrm._typing import IntArray

__all__ = ["r_sample"]

MULTIPLIER = 69069
MODULUS = 2**32
WARM_UP = 50
TWISTER_WORDS = 624
# 1 / (2^32 - 1), the constant with which R scales the twister's words.
TO_UNIT = 2.3283064365386963e-10


def r_sample(n: int, size: int, *, seed: int) -> IntArray:
    """Draw ``set.seed(seed); sample(n, size)`` of R < 3.6, counted from 0."""
    twister = _seed_twister(seed)
    pool = np.arange(n)
    drawn = np.empty(size, dtype=np.int64)
    for turn, remaining in enumerate(range(n, n - size, -1)):
        chosen = int(remaining * (int(twister.random_raw()) * TO_UNIT))
        drawn[turn] = pool[chosen]
        pool[chosen] = pool[remaining - 1]
    return drawn


def _seed_twister(seed: int) -> np.random.MT19937:
    word, words = seed % MODULUS, []
    for _ in range(WARM_UP + 1 + TWISTER_WORDS):
        word = (MULTIPLIER * word + 1) % MODULUS
        words.append(word)
    # The first word after the warm-up is the position, which R overwrites with "used up".
    key = np.array(words[WARM_UP + 1 :], dtype=np.uint32)
    twister = np.random.MT19937()
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": key, "pos": TWISTER_WORDS},
    }
    return twister
