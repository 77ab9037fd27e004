"""The state of a chain as plain data, to be sent to another process or written to a file.

A snapshot holds numbers and text, arrays, and features; no data set, no code. A chain that is
restored from it, with the same problem, takes the same steps as one that was never interrupted.
Each part of a chain has a `Layout` beside its `get_state`: types, ranges and lengths, which are
checked when a snapshot comes from a file. What parts mean together is checked by `set_state`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from dbrm.data.schema import AbstractField, ArrayOf, Record, Text, Whole
from dbrm.features import Feature

__all__ = ["GENERATOR_LAYOUT", "Layout", "Snapshot", "get_generator_state", "set_generator_state"]


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


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """Fields of a snapshot, by name."""

    content: Mapping[str, AbstractField]
    arrays: Mapping[str, ArrayOf]
    features: Mapping[str, AbstractField] = field(default_factory=dict)

    def with_parts(self, other: "Layout") -> "Layout":
        """The fields of both layouts."""
        return Layout(
            {**self.content, **other.content},
            {**self.arrays, **other.arrays},
            {**self.features, **other.features},
        )


_128_BITS = Whole(high=2**128 - 1)
GENERATOR_LAYOUT = Layout(
    {
        "generator.state": Record(
            {
                "bit_generator": Text(("PCG64",)),
                "state": Record({"state": _128_BITS, "inc": _128_BITS}),
                "has_uint32": Whole(high=1),
                "uinteger": Whole(high=2**32 - 1),
            }
        )
    },
    {},
)
