r"""Weights in units in which one is a sensible size.

With location :math:`m_r` and scale :math:`s_r` of each input, the weighted sum is also
:math:`a_0 + \sum_r a_r (F_r - m_r)/s_r` with :math:`a_r = \alpha_r s_r` and
:math:`a_0 = \alpha_0 + \sum_r \alpha_r m_r`. Optimisation happens in :math:`a`, features
store :math:`\alpha`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm._typing import FloatArray
from dbrm.evolution.projection.program import Program
from dbrm.features import Projection, moments

__all__ = ["Scaling"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Locations and scales of all inputs, in the order of the weights.

    Parameters
    ----------
    location, scale
        Zero and one for a bias.
    blocks
        Of each projection the positions of its bias and of its slopes.
    """

    location: FloatArray
    scale: FloatArray
    blocks: tuple[tuple[int, slice], ...]

    @classmethod
    def of(cls, program: Program, projections: Sequence[Projection]) -> Self:
        """Learn from the columns of the last forward pass."""
        pairs: list[tuple[float, float]] = []
        blocks: list[tuple[int, slice]] = []
        for number in range(len(projections)):
            start = len(pairs)
            pairs += [(0.0, 1.0), *(moments(column) for column in program.inputs(number))]
            blocks.append((start, slice(start + 1, len(pairs))))
        location, scale = np.array(pairs).T
        return cls(location, scale, tuple(blocks))

    def inward(self, weights: FloatArray) -> FloatArray:
        """From the weights of a feature to scaled ones."""
        scaled = weights * self.scale
        for bias, slopes in self.blocks:
            scaled[bias] += np.sum(weights[slopes] * self.location[slopes])
        return scaled

    def outward(self, scaled: FloatArray) -> FloatArray:
        """Undo `inward`."""
        weights = scaled / self.scale
        for bias, slopes in self.blocks:
            weights[bias] -= np.sum(weights[slopes] * self.location[slopes])
        return weights

    def pull_back(self, gradient: FloatArray) -> FloatArray:
        """Gradient in the scaled weights from that in the weights."""
        scaled = gradient.copy()
        for bias, slopes in self.blocks:
            scaled[slopes] -= self.location[slopes] * gradient[bias]
        return scaled / self.scale

    def normalised(self, scaled: FloatArray) -> FloatArray:
        """The same directions with sums of about unit size, centred."""
        unit = scaled.copy()
        for bias, slopes in self.blocks:
            length = float(np.linalg.norm(unit[slopes]))
            unit[slopes] /= length if length > 0.0 else 1.0
            unit[bias] = 0.0
        return unit

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Random directions and sizes, for another start."""
        scaled = rng.standard_normal(self.scale.size)
        for _, slopes in self.blocks:
            count = slopes.stop - slopes.start
            scaled[slopes] *= np.exp(0.5 * rng.standard_normal()) / np.sqrt(count)
        return scaled
