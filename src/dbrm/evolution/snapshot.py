"""A chain as plain data, to be sent to another process or written to a file.

A snapshot holds numbers and text, arrays, and features; no data set, no code. Whoever has
the same problem can go on from it, and takes the same steps as if nothing had happened.
"""

from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from dbrm.features import Feature

__all__ = ["Snapshot", "get_generator_state", "set_generator_state"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The state of something, in parts with names.

    Parameters
    ----------
    content
        What JSON can hold: text, whole numbers, finite numbers, lists and mappings of them.
    arrays
        Everything else that is a number.
    features
        Lists of features.
    """

    content: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    features: dict[str, list[Feature]] = field(default_factory=dict)

    @classmethod
    def join(cls, **parts: "Snapshot") -> Self:
        """One snapshot of several, which `part` takes apart again."""
        return cls(
            *(
                {
                    f"{name}.{key}": value
                    for name, part in parts.items()
                    for key, value in getattr(part, kind).items()
                }
                for kind in ("content", "arrays", "features")
            )
        )

    def part(self, name: str) -> "Snapshot":
        """What `join` was given under this name."""
        start = f"{name}."
        return Snapshot(
            *(
                {
                    key.removeprefix(start): value
                    for key, value in getattr(self, kind).items()
                    if key.startswith(start)
                }
                for kind in ("content", "arrays", "features")
            )
        )


def get_generator_state(rng: np.random.Generator) -> Snapshot:
    """The state of a random number generator."""
    return Snapshot({"state": rng.bit_generator.state})


def set_generator_state(rng: np.random.Generator, snapshot: Snapshot) -> None:
    """Put a generator into the state of a snapshot."""
    rng.bit_generator.state = snapshot.content["state"]
