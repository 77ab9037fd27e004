r"""How often the weights of each projection were drawn, and what one draw counts for.

Strategy 4 draws the weights :math:`\alpha` of a projection from their prior. Its topology is
the hypothesis; the draws :math:`\alpha_1, \dots, \alpha_K` are one Monte Carlo estimate of

.. math:: p(y|M) = \int p(y|\alpha, M)\,p(\alpha)\,d\alpha
    \approx \frac{1}{K} \sum_{k=1}^K p(y|\alpha_k, M) .

Every draw therefore weighs :math:`1/K` of the topology's prior, whether it is still in a
population or was filtered out long ago: draws that are kept because they fit are no sample.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import fsum, log, prod
from typing import final

import numpy as np

from dbrm.evolution.projection.base import topology
from dbrm.evolution.snapshot import Snapshot
from dbrm.features import Feature, Projection, topology_of, walk
from dbrm.search import split_key

__all__ = ["WeightDraws"]

# Features whose topology is remembered.
_MOST_KNOWN = 10_000


@final
class WeightDraws:
    """Counts of draws, by transform and children; children with other weights are others."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    @property
    def counts(self) -> dict[int, int]:
        """Number of draws by the key of the projection with free weights."""
        return dict(self._counts)

    def note(self, projection: Feature) -> None:
        """Count one more draw of this projection's weights."""
        self._counts[_key(projection)] += 1

    def add(self, counts: Mapping[int, int]) -> None:
        """Add the counts of another chain, whose draws are different."""
        self._counts.update(counts)

    def log_share(self, name: Feature, spellings: Iterable[Feature]) -> float:
        r"""Log of the share of a topology's draws that have one column.

        A feature with the projections :math:`P` inside stands for a share of
        :math:`\prod_P 1/K_P`. Draws may have the same column, as steps of 0/1 columns do;
        then their shares add up.

        Parameters
        ----------
        name, spellings
            The feature, whose topology it is, and all spellings of the column, its name among
            them.
        """
        if not self._counts or not any(self._counts[key] for key in _keys(name)):
            return 0.0
        shape = topology_of(name)
        drawn = Counter([_keys(other) for other in spellings if topology_of(other) == shape])
        return log(fsum(n * self._share(keys) for keys, n in drawn.items()))

    def _share(self, keys: tuple[int, ...]) -> float:
        """Product over projections of one over their number of draws; one if it was not drawn."""
        return 1.0 / prod(self._counts[key] or 1 for key in keys)

    def get_state(self) -> Snapshot:
        """The counts."""
        keys = [split_key(key) for key in self._counts]
        return Snapshot(
            arrays={
                "drawn": np.array(keys, dtype=np.uint64).reshape(-1, 2),
                "draw_counts": np.array(list(self._counts.values()), dtype=np.int64),
            }
        )

    def set_state(self, snapshot: Snapshot) -> None:
        """Restore the counts."""
        keys = snapshot.arrays["drawn"].tolist()
        counts = snapshot.arrays["draw_counts"].tolist()
        self._counts = Counter(
            {(high << 64) | low: count for (high, low), count in zip(keys, counts, strict=True)}
        )


def _has_own_weights(node: Feature) -> bool:
    return isinstance(node, Projection) and node.weights_in_identity


@lru_cache(maxsize=_MOST_KNOWN)
def _keys(feature: Feature) -> tuple[int, ...]:
    """Keys of the different projections inside whose weights belong to their identity."""
    return tuple(_key(node) for node in walk(feature) if _has_own_weights(node))


def _key(projection: Feature) -> int:
    assert projection.transform is not None
    return topology(projection.transform, projection.children).key
