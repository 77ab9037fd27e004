"""Places from which the hyperparameters of a model are searched."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import log, pi
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.hyper_integration import find_mode
from dbrm.evidence.latent.base import Latent
from dbrm.evidence.nested_laplace import Conditional, Point

__all__ = ["Anchor", "Key", "combine", "parts_present"]

# Numbers of the effects in a model.
Key = tuple[int, ...]
# Log precisions of an effect that is there, and of one that is hardly there.
_PRESENT, _ABSENT = 1.0, 8.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """The mode of some effects in the model without columns.

    Parameters
    ----------
    volume
        Log of the integral over the hyperparameters less the height at the mode.
    scales
        Scaled eigenvectors of their covariance there.
    others
        Further modes, of effects with several parts: hyperparameters, and how much larger the
        log volume is there.
    """

    point: Point
    volume: float
    scales: Matrix
    others: tuple[tuple[FloatArray, float], ...] = field(default=())

    @classmethod
    def find(cls, model: Conditional, start: Point) -> "Anchor":
        """Climb from a start and see how wide the posterior is there."""
        if start.value == -np.inf or start.theta.size == 0:
            return cls(start, 0.0, np.eye(start.theta.size))

        def evaluate(theta: FloatArray, near: Point) -> Point:
            return model.at(theta, (near.delta, near.beta))

        top, scales = find_mode(evaluate, start)
        free = scales
        if model.noise.profiled:
            free = scales[1:, 1:]
        volume = 0.5 * len(free) * log(2 * pi) + float(np.linalg.slogdet(free)[1])
        return cls(top, volume if np.isfinite(volume) else 0.0, scales)

    @classmethod
    def find_among(cls, model: Conditional, starts: Sequence[Point]) -> "Anchor":
        """Climb from several starts; the mode that holds most is the anchor."""
        found = [cls.find(model, start) for start in starts]
        found.sort(key=lambda anchor: -(anchor.point.value + anchor.volume))
        best = found[0]
        others = tuple((other.point.theta, other.volume - best.volume) for other in found[1:])
        return cls(best.point, best.volume, best.scales, others)

    def variables(self, model: Conditional, n_always: int) -> tuple[FloatArray, FloatArray]:
        """Effects and coefficients of a model with further columns, those without effect."""
        _, beta = model.begin()
        first = 1 + n_always
        beta[:first] = self.point.beta[:first]
        beta[model.n_fixed :] = self.point.beta[first:]
        return self.point.delta.copy(), beta


def parts_present(effect: Latent) -> list[FloatArray]:
    """Starting values of an effect of several parts, such as slopes beside intercepts.

    Each part may be next to nothing: there may be a mode for every choice of parts.
    """
    parts = [j for j, name in enumerate(effect.hyperparameters) if name.endswith("precision")]
    looks = []
    for levels in product((_PRESENT, _ABSENT), repeat=len(parts)):
        looks.append(np.array(effect.start, dtype=np.float64))
        looks[-1][parts] = levels
    return looks


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
