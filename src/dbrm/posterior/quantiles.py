r"""Quantiles of many predictive distributions at once, from their cdf alone.

A root of :math:`F_i(x) = q` per row, by the secant method on :math:`\Phi^{-1}\{F_i(x)\}`,
which is nearly straight for distributions that are nearly normal (for positive responses as
a function of :math:`\log x`); brackets around every root make it safe. Rows that are done
leave, so that the cdf is computed about six times. (SciPy's `elementwise.find_root` needs a
bracket first and computes it nine to eleven times.)
"""

from collections.abc import Callable
from typing import final

import numpy as np
import scipy.special

from dbrm._typing import Column, FloatArray, IntArray, Mask

__all__ = ["find_quantiles"]

# The cdf of some rows at one value each.
Cdf = Callable[[Column, IntArray], FloatArray]

_MOST_STEPS = 400
# A level is met if the cdf is this close to it, relative to the tail.
_CLOSE = 1e-11
# Ends of a bracket of counts that differ by more than this factor are of another magnitude.
_WIDE = 16.0


def find_quantiles(
    cdf: Cdf,
    level: float | Column,
    centre: Column,
    spread: Column,
    *,
    discrete: bool = False,
    positive: bool = False,
    highest: float | Column = np.inf,
) -> Column:
    """Smallest value of each row at which its cdf reaches the level.

    Parameters
    ----------
    centre, spread
        Roughly where each distribution is and how wide; not a number for rows without one.
    discrete
        Whether values are whole numbers, none negative.
    positive
        Whether values are positive.
    highest
        Largest value of each row, if there is one.
    """
    levels = np.broadcast_to(np.asarray(level, dtype=np.float64), centre.shape)
    out = np.full(centre.shape, np.nan)
    rows = np.flatnonzero(np.isfinite(centre) & np.isfinite(spread))
    if not rows.size:
        return out
    kind = _Whole if discrete else _Logarithm if positive else _Plain
    scale = kind(centre[rows], spread[rows])
    goal = scipy.special.ndtri(levels[rows])
    largest = np.broadcast_to(np.asarray(highest, dtype=np.float64), centre.shape)[rows]
    search = _Search(scale.start(goal), scale.width, largest, whole=discrete)
    for _ in range(_MOST_STEPS):
        busy = np.flatnonzero(search.busy)
        if not busy.size:
            break
        chance = cdf(scale.value(search.at[busy]), rows[busy])
        search.advance(busy, chance, levels[rows[busy]], goal[busy])
    out[rows] = scale.value(search.answer)
    return out


class _Plain:
    """The value itself."""

    def __init__(self, centre: Column, spread: Column) -> None:
        self.centre = centre
        self.width = np.maximum(spread, 1e-12 * np.abs(centre) + np.finfo(float).tiny)

    def start(self, goal: Column) -> Column:
        return self.centre + self.width * goal

    def value(self, at: Column) -> Column:
        return at


class _Whole(_Plain):
    """Whole numbers from zero on."""

    def __init__(self, centre: Column, spread: Column) -> None:
        super().__init__(centre, np.maximum(spread, 0.5))

    def start(self, goal: Column) -> Column:
        return np.maximum(np.floor(self.centre + self.width * goal), 0.0)


class _Logarithm(_Plain):
    """The logarithm of a positive value."""

    def __init__(self, centre: Column, spread: Column) -> None:
        tiny = np.finfo(float).tiny
        relative = np.clip(spread / np.maximum(centre, tiny), 1e-12, 3.0)
        super().__init__(np.log(np.maximum(centre, tiny)) - 0.5 * relative**2, relative)

    def value(self, at: Column) -> Column:
        return np.asarray(np.exp(np.minimum(at, 700.0)))


@final
class _Search:
    """One bracketed secant search per row."""

    def __init__(self, start: Column, width: Column, highest: Column, *, whole: bool) -> None:
        n = start.size
        self.width, self.whole = width, whole
        self.low = np.full(n, -1.0 if whole else -np.inf)
        self.high = highest.copy()
        self.at = np.minimum(start, highest - 1.0)
        self.busy: Mask = self.high - self.low > 1.0
        self.slope = 1.0 / width
        self.before_at, self.before = np.full(n, np.nan), np.full(n, np.nan)
        self.steps = 0

    @property
    def answer(self) -> Column:
        return self.high if self.whole else self.at

    def advance(self, rows: IntArray, chance: FloatArray, level: Column, goal: Column) -> None:
        """Take in the cdf at the present points, and move on."""
        self.steps += 1
        at = self.at[rows]
        below = chance < level
        self.low[rows] = np.where(below, at, self.low[rows])
        self.high[rows] = np.where(below, self.high[rows], at)
        low, high = self.low[rows], self.high[rows]
        if self.whole:
            # Whole numbers beyond 1e15 cannot be distinguished from their neighbours.
            done = high - low <= np.maximum(1.0, 1e-15 * low)
        else:
            close = np.abs(chance - level) <= _CLOSE * np.minimum(level, 1.0 - level)
            done = close | (high - low <= 1e-15 * (np.abs(at) + self.width[rows]))
        self.busy[rows[done]] = False
        with np.errstate(all="ignore"):
            miss = scipy.special.ndtri(np.clip(chance, 1e-300, 1.0 - 1e-16)) - goal
            target = at - miss / self._slopes(rows, at, miss)
        self.at[rows[~done]] = self._safe(rows, at, target, below)[~done]

    def _slopes(self, rows: IntArray, at: Column, miss: Column) -> Column:
        found = (miss - self.before[rows]) / (at - self.before_at[rows])
        usable = np.isfinite(found) & (found > 0.0)
        self.slope[rows] = np.where(usable, found, self.slope[rows])
        self.before_at[rows], self.before[rows] = at, miss
        return self.slope[rows]

    def _safe(self, rows: IntArray, at: Column, target: Column, below: Mask) -> Column:
        """The target, unless it leaves the bracket or the bracket should be halved."""
        low, high, far = self.low[rows], self.high[rows], self.width[rows] * 2.0**self.steps
        target = np.clip(np.where(np.isfinite(target), target, at), at - far, at + far)
        outward = np.where(below, at + far, at - far)
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low + high)
        inside = np.where(np.isfinite(middle), middle, outward)
        if self.whole:
            target, inside = np.round(target), np.floor(inside)
            # Beside the bracket's end is as good as inside it, and often the answer.
            target = np.clip(target, low + 1.0, high - 1.0)
        stuck = (target <= low) | (target >= high) | (self.steps % 6 == 0)
        if self.whole:
            # Counts of any order of magnitude: halve the logarithm first.
            wide = (self.steps > 6) & (high < np.inf) & (high > _WIDE * (low + 2.0))
            stuck |= wide
            inside = np.where(
                wide, np.floor(np.sqrt((low + 2.0) * np.where(wide, high, 1.0))), inside
            )
        return np.where(stuck, inside, target)
