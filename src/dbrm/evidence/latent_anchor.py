"""Places from which the hyperparameters of a model are searched."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask
from dbrm.evidence.hyper_integration import find_mode
from dbrm.evidence.nested_laplace import Conditional, Point

__all__ = ["Anchor", "Key", "combine"]

# Numbers of the effects in a model.
Key = tuple[int, ...]
# Log precision of an effect that is hardly there.
_ABSENT = 8.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """A place to start from: hyperparameters, mode, and the columns that it belongs to.

    Parameters
    ----------
    volume
        Log of the integral over the hyperparameters less the height at the anchor.
    """

    point: Point
    columns: Mask
    volume: float

    @classmethod
    def find(cls, model: Conditional, start: Point, columns: Mask) -> "Anchor":
        """Climb from a start and see how wide the posterior is there."""
        if start.value == -np.inf or start.theta.size == 0:
            return cls(start, columns, 0.0)

        def evaluate(theta: FloatArray, near: Point) -> Point:
            return model.at(theta, (near.delta, near.beta))

        top, scales = find_mode(evaluate, start)
        free = scales
        if model.noise.profiled:
            free = scales[1:, 1:]
        volume = 0.5 * len(free) * log(2 * pi) + float(np.linalg.slogdet(free)[1])
        return cls(top, columns, volume if np.isfinite(volume) else 0.0)

    def start(self, model: Conditional, columns: Mask, n_always: int) -> Point:
        """The model at the anchor, from the anchor's mode as far as it has the same columns."""
        delta, beta = model.begin()
        first = 1 + n_always
        beta[:first] = self.point.beta[:first]
        own, mine = np.flatnonzero(columns), np.flatnonzero(self.columns)
        shared = np.intersect1d(own, mine)
        beta[first + np.searchsorted(own, shared)] = self.point.beta[
            first + np.searchsorted(mine, shared)
        ]
        beta[first + own.size :] = self.point.beta[first + mine.size :]
        delta[:] = self.point.delta
        return model.at(self.point.theta, (delta, beta))


def combine(singles: Sequence[FloatArray], n_noise: int) -> list[FloatArray]:
    """Starting values for several effects from those of each alone.

    All as they are alone; and each one alone with the others next to nothing: effects
    compete, so that either may be a mode.
    """
    noise = np.mean([theta[:n_noise] for theta in singles], axis=0)
    alone = [theta[n_noise:] for theta in singles]
    looks = [np.concatenate([noise, *alone])]
    for k in range(len(alone)):
        parts = [part.copy() for part in alone]
        for j, part in enumerate(parts):
            part[0] = part[0] if j == k else _ABSENT
        looks.append(np.concatenate([singles[k][:n_noise], *parts]))
    return looks
