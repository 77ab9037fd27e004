"""Finding a feature of the posterior under any spelling, by text first and then by column."""

from typing import final

from dbrm.evolution import Registry
from dbrm.features import Feature, Projection, evaluate, fit_knots, parse_feature, topology_of, walk
from dbrm.posterior.merge import Merged
from dbrm.posterior.source import Source
from dbrm.status import Status

__all__ = ["Spellings", "read_feature"]

# Most features whose columns are held at once.
_AT_ONCE = 50


def read_feature(feature: str | Feature, source: Source) -> Feature:
    """A feature from its text, with its knots."""
    if isinstance(feature, str):
        feature = parse_feature(feature, source.table.names, transforms=source.transforms)
    return fit_knots(feature, source.table)


@final
class Spellings:
    """The features of a merged posterior, found by structure or by their training columns."""

    def __init__(self, merged: Merged, source: Source) -> None:
        self._source = source
        self._features = merged.features
        self._by_key = {feature.key: j for j, feature in enumerate(merged.features)}
        for position, others in merged.aliases.items():
            for other in others:
                self._by_key.setdefault(other.key, position)
        self._registry = Registry(source.table)
        # On a sample of the rows two features may have the same column: the first one counts.
        self._by_number: dict[int, int] = {}
        for start in range(0, len(merged.features), _AT_ONCE):
            part = merged.features[start : start + _AT_ONCE]
            columns, statuses = evaluate(part, source.table)
            for j, feature in enumerate(part):
                if statuses[j] == Status.OK:
                    number = self._registry.number(feature, columns[:, j])
                    self._by_number.setdefault(number, start + j)

    def find(self, feature: Feature) -> int | None:
        """Position of a feature in the posterior, ``None`` if no model contains it."""
        position = self._by_key.get(feature.key)
        if position is not None:
            return position
        columns, statuses = evaluate([feature], self._source.table)
        if statuses[0] != Status.OK:
            return None
        return self._by_number.get(self._registry.number(feature, columns[:, 0]))

    def draws_of(self, feature: Feature) -> list[int]:
        """Positions of the features of this topology whose weights were drawn, not fitted."""
        if _has_own_weights(feature):
            return []
        shape = topology_of(feature)
        drawn = [j for j, known in enumerate(self._features) if _has_own_weights(known)]
        return [j for j in drawn if topology_of(self._features[j]) == shape]


def _has_own_weights(feature: Feature) -> bool:
    """Whether the weights of a projection inside belong to the identity."""
    nodes = walk(feature)
    return any(isinstance(node, Projection) and node.weights_in_identity for node in nodes)
