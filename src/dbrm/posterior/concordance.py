"""Harrell's concordance index of survival times and risks."""

import numpy as np

from dbrm._typing import Column, Mask
from dbrm.errors import InvalidDataError

__all__ = ["concordance_index"]


def concordance_index(time: Column, event: Mask, risk: Column) -> float:
    """Share of comparable pairs of rows in which the one at higher risk has its event first.

    A pair is comparable if the earlier time is an event; of equal times, if one is an event and
    the other one is censored. Equal risks count one half (Harrell, Lee and Mark 1996).
    """
    order = np.argsort(time, kind="stable")
    time, event, risk = time[order], event[order], risk[order]
    concordant, pairs = 0.0, 0
    for row in np.flatnonzero(event):
        begin, end = np.searchsorted(time, time[row], side="left"), time.size
        later = np.arange(begin, end)
        later = later[(time[later] > time[row]) | ~event[later]]
        concordant += float(np.sum(risk[later] < risk[row]))
        concordant += 0.5 * float(np.sum(risk[later] == risk[row]))
        pairs += later.size
    if pairs == 0:
        msg = "No two rows can be compared: concordance needs an event before another time."
        raise InvalidDataError(msg)
    return concordant / pairs
