"""Harrell's concordance index of survival times and risks, with an interval."""

import numpy as np

from dbrm._typing import Column, Mask
from dbrm.errors import InvalidDataError

__all__ = ["concordance_index", "concordance_interval"]


def concordance_index(time: Column, event: Mask, risk: Column) -> float:
    """Share of comparable pairs of rows in which the one at higher risk has its event first.

    A pair is comparable if the earlier time is an event; of equal times, if one is an event and
    the other one is censored. Equal risks count one half (Harrell, Lee and Mark 1996).
    """
    concordant, pairs = _pairs(time, event, risk)
    return float(concordant.sum() / pairs.sum())


def concordance_interval(time: Column, event: Mask, risk: Column) -> tuple[float, float, float]:
    r"""The index with the ends of a 95 % interval.

    With :math:`p_i` comparable pairs of row :math:`i`, :math:`a_i` of them concordant, and
    :math:`C = \sum a_i / \sum p_i`, the variance of the ratio is about
    :math:`4 \sum (a_i - C p_i)^2 / (\sum p_i)^2`.
    """
    concordant, pairs = _pairs(time, event, risk)
    index = float(concordant.sum() / pairs.sum())
    spread = 2.0 * float(np.sqrt(np.sum((concordant - index * pairs) ** 2)) / pairs.sum())
    return index, max(index - 1.96 * spread, 0.0), min(index + 1.96 * spread, 1.0)


def _pairs(time: Column, event: Mask, risk: Column) -> tuple[Column, Column]:
    """Concordant and comparable pairs that each row takes part in."""
    order = np.argsort(time, kind="stable")
    time, event, risk = time[order], event[order], risk[order]
    concordant, pairs = np.zeros(time.size), np.zeros(time.size)
    for row in np.flatnonzero(event):
        begin, end = np.searchsorted(time, time[row], side="left"), time.size
        later = np.arange(begin, end)
        later = later[(time[later] > time[row]) | ~event[later]]
        right = (risk[later] < risk[row]) + 0.5 * (risk[later] == risk[row])
        concordant[later] += right
        concordant[row] += right.sum()
        pairs[later] += 1.0
        pairs[row] += later.size
    if not pairs.any():
        msg = "No two rows can be compared: concordance needs an event before another time."
        raise InvalidDataError(msg)
    return concordant, pairs
