"""Where the variables of several effects stand in one banded matrix.

Variables are sorted by the mean place of their rows along the column with the most nodes, so
that effects over the same column interleave: with :math:`r` of them the half-bandwidth is
:math:`r` times that of one. An effect that would widen the band beyond `WIDEST`, such as groups
crossed with time, goes to the dense border, beside the coefficients; intrinsic ones there
are written in a basis that keeps their constraint.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
import scipy.linalg

from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.errors import InvalidDataError
from dbrm.evidence.latent.nodes import BoundEffect

__all__ = ["Border", "Layout"]

WIDEST = 24
LARGEST_BORDER = 1_000
# Relative to the diagonal: far below what the evidence feels, far above rounding.
_RIDGE = 1e-9


@final
@dataclass(frozen=True, eq=False)
class Border:
    """An effect kept dense: its columns, and the basis in which it is free of constraints."""

    number: int
    bound: BoundEffect

    @cached_property
    def basis(self) -> Matrix:
        """Nodes by free variables."""
        size = self.bound.size
        free = np.eye(size)
        if not self.bound.effect.nullity:
            return free
        return np.asarray(scipy.linalg.null_space(null_directions(self.bound).T))

    @cached_property
    def columns(self) -> Matrix:
        """Rows by free variables."""
        bound = self.bound
        columns = np.einsum("nm,nmj->nj", bound.loadings, self.basis[bound.index])
        return np.ascontiguousarray(columns)

    def precision(self, psi: FloatArray) -> Matrix:
        """Precision of the free variables."""
        band = self.bound.effect.precision(psi, self.bound.positions)
        full = np.diag(band[:, 0])
        for d in range(1, band.shape[1]):
            full += np.diag(band[d:, d], -d) + np.diag(band[d:, d], d)
        return np.asarray(self.basis.T @ full @ self.basis)


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """Some effects, each with its number in the list of all effects."""

    effects: Sequence[BoundEffect]
    n_rows: int
    banded: list[int] = field(init=False)
    border: list[Border] = field(init=False)

    def __post_init__(self) -> None:
        main = max(range(len(self.effects)), key=self._rank) if self.effects else 0
        banded: list[int] = []
        border: list[Border] = []
        for number in sorted(range(len(self.effects)), key=lambda k: (k != main, k)):
            trial = sorted([*banded, number])
            if not banded or self._width(trial) <= max(WIDEST, self._width(banded)):
                banded = trial
            else:
                border.append(Border(number, self.effects[number]))
        object.__setattr__(self, "banded", banded)
        object.__setattr__(self, "border", border)
        n_border = sum(part.bound.size for part in border)
        if n_border > LARGEST_BORDER:
            names = ", ".join(effect.effect.name for effect in self.effects)
            msg = (
                f"The latent effects {names} run over different orderings with {n_border} "
                f"positions or groups beside the longest one; at most {LARGEST_BORDER} can be "
                "fitted together. Use coarser positions, or set max_latent=1."
            )
            raise InvalidDataError(msg)

    def _rank(self, number: int) -> tuple[bool, int]:
        bound = self.effects[number]
        return bound.effect.bandwidth > 0, bound.size

    def _width(self, numbers: list[int]) -> int:
        """Half-bandwidth of these effects together."""
        slots = self._slots(numbers)
        rows = np.hstack([slots[k][self.effects[k].index] for k in numbers])
        widest = int(np.ptp(rows, axis=1).max(initial=0))
        for k in numbers:
            for d in range(1, self.effects[k].effect.bandwidth + 1):
                gaps = np.abs(slots[k][d:] - slots[k][:-d])
                widest = max(widest, int(gaps.max(initial=0)))
        return widest

    def _slots(self, numbers: list[int]) -> dict[int, IntArray]:
        """Place of every node of every effect in the banded matrix."""
        lead = self.effects[max(numbers, key=self._rank)]
        places = []
        for k in numbers:
            bound = self.effects[k]
            beside = np.repeat(lead.index[:, 0], bound.index.shape[1])
            sums = np.bincount(bound.index.reshape(-1), beside, bound.size)
            places.append(sums / np.bincount(bound.index.reshape(-1), minlength=bound.size))
        kinds = np.concatenate([np.full(p.size, k) for k, p in zip(numbers, places, strict=True)])
        order = np.lexsort((kinds, np.concatenate(places)))
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        ends = np.cumsum([place.size for place in places])[:-1]
        return dict(zip(numbers, np.split(rank, ends), strict=True))

    @cached_property
    def slots(self) -> dict[int, IntArray]:
        """By effect: the place of each node in the banded matrix."""
        return self._slots(self.banded) if self.banded else {}

    @cached_property
    def size(self) -> int:
        """Number of variables in the banded matrix."""
        return sum(self.effects[k].size for k in self.banded)

    @cached_property
    def width(self) -> int:
        """Half-bandwidth."""
        return self._width(self.banded) if self.banded else 0

    @cached_property
    def rows(self) -> IntArray:
        """For each row its variables, a column or two for each banded effect."""
        if not self.banded:
            return np.zeros((self.n_rows, 0), dtype=np.int64)
        columns = [self.slots[k][self.effects[k].index] for k in self.banded]
        return np.ascontiguousarray(np.hstack(columns).astype(np.int64))

    @cached_property
    def loadings(self) -> Matrix:
        """What the variables in `rows` are multiplied by."""
        if not self.banded:
            return np.zeros((self.n_rows, 0))
        return np.ascontiguousarray(np.hstack([self.effects[k].loadings for k in self.banded]))

    @cached_property
    def constraints(self) -> Matrix:
        """What the banded variables must be orthogonal to, one column each."""
        columns = []
        for k in self.banded:
            for direction in null_directions(self.effects[k]).T:
                column = np.zeros(self.size)
                column[self.slots[k]] = direction
                columns.append(column)
        return np.column_stack(columns) if columns else np.zeros((self.size, 0))

    @cached_property
    def _targets(self) -> dict[int, list[IntArray]]:
        """By effect and diagonal: flat places of its precision in the common band."""
        found = {}
        for k in self.banded:
            slots, places = self.slots[k], []
            for d in range(self.effects[k].effect.bandwidth + 1):
                first, second = slots[d:], slots[: slots.size - d]
                high = np.maximum(first, second)
                places.append(high * (self.width + 1) + np.abs(first - second))
            found[k] = places
        return found

    @cached_property
    def _loose(self) -> set[int]:
        """Intrinsic effects beside another one: constants could wander from one to the other.

        The constraints forbid it, but the band alone must be positive.
        """
        intrinsic = [k for k in self.banded if self.effects[k].effect.nullity]
        return set(intrinsic[1:])

    def precision(self, psi: Sequence[FloatArray]) -> Matrix:
        """The common band of all banded effects; `psi` is that of each effect in the list."""
        band = np.zeros((self.size, self.width + 1))
        flat = band.reshape(-1)
        for k in self.banded:
            bound = self.effects[k]
            own = bound.effect.precision(psi[k], bound.positions)
            if k in self._loose:
                own[:, 0] += _RIDGE * float(own[:, 0].mean())
            for d, places in enumerate(self._targets[k]):
                flat[places] = own[d:, d]
        return band


def null_directions(bound: BoundEffect) -> Matrix:
    """An orthonormal basis of the null space of an effect's precision: constants, lines."""
    size, nullity = bound.size, bound.effect.nullity
    basis = [np.full(size, size**-0.5)]
    if nullity == 2:
        line = bound.positions - bound.positions.mean()
        basis.append(line / np.linalg.norm(line))
    return np.column_stack(basis[:nullity]) if nullity else np.zeros((size, 0))
