"""Functions inside functions: which features have some that must not be nested."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from dbrm.features.base import Feature
from dbrm.features.traversal import fold

__all__ = ["NestingRule"]


@final
@dataclass(frozen=True, slots=True)
class NestingRule:
    """Functions of which none may stand inside another of them, at any depth.

    Parameters
    ----------
    names
        Their names, without parameters; ``None`` for all functions.
    """

    names: frozenset[str] | None

    @classmethod
    def of(cls, names: Iterable[str]) -> "NestingRule":
        """The rule for functions by name; their versions with parameters are meant, too."""
        return cls(frozenset(name.partition("[")[0] for name in names))

    def allows(self, feature: Feature) -> bool:
        """Whether no such function is inside another."""

        def deepest(node: Feature, inner: Sequence[int]) -> int:
            # How many of the functions stand inside one another here.
            below = max(inner, default=0)
            return below + (node.transform is not None and self._counts(node.transform.name))

        return fold(feature, deepest) <= 1

    def _counts(self, name: str) -> bool:
        return self.names is None or name.partition("[")[0] in self.names
