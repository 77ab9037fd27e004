r"""The latent effects of a problem, as the search sees them: terms of the prior, and keys.

.. math:: p(M) \propto \prod_j a^{\gamma_j c(F_j)} \prod_k b^{\lambda_k v(\delta_k)},

with at most :math:`R` effects in a model (paper, Sec. 2.4).
"""

from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, Mask
from dbrm.evidence import BoundEffect
from dbrm.search import split_key

__all__ = ["LatentTerms"]


@final
@dataclass(frozen=True, eq=False)
class LatentTerms:
    """Latent effects offered for selection.

    Parameters
    ----------
    effects
        The effects with their nodes, in the order of the last components of masks.
    log_prior
        Log prior factor of each.
    most
        Most effects in one model, :math:`R`.
    """

    effects: tuple[BoundEffect, ...] = ()
    log_prior: FloatArray = field(default_factory=lambda: np.zeros(0))
    most: int = 0

    def __len__(self) -> int:
        """Return the number of effects."""
        return len(self.effects)

    @property
    def names(self) -> list[str]:
        """Names of the effects."""
        return [bound.effect.name for bound in self.effects]

    @cached_property
    def keys(self) -> npt.NDArray[np.uint64]:
        """A 128-bit key for each effect, in two halves."""
        digests = [
            int.from_bytes(blake2b(f"latent {name}".encode(), digest_size=16).digest(), "big")
            for name in self.names
        ]
        return np.array([split_key(key) for key in digests], dtype=np.uint64).reshape(-1, 2)

    @cached_property
    def count_log_prior(self) -> FloatArray:
        """A term for each number of effects in a model: minus infinity beyond the limit."""
        return np.where(np.arange(len(self) + 1) <= self.most, 0.0, -np.inf)

    def none(self) -> Mask:
        """The model without effects."""
        return np.zeros(len(self), dtype=np.bool_)
