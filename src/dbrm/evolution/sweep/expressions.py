r"""All expressions of few nodes, each value once.

Leaves are given expressions and a few numbers; nodes are the transforms of a run, sums,
differences, products and ratios. Expressions of :math:`s` nodes are made of those with less, on a
few rows; those that are equal there up to their sign are one expression, the shortest. Inside the
exponential, logarithm or a wave there is no other one of these, as in the laws of textbooks.
Numbers beyond the given ones are not seen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._kernels.meeting import add_new
from dbrm._typing import Mask, Matrix
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.levels import Index
from dbrm.features import Feature, Transform

__all__ = ["Apply", "Expression", "Expressions", "Leaf", "Number", "Pair"]

# Absolute values beyond these, and columns that vary by less, relative to their size, are left out.
_SMALLEST, _LARGEST, _VARIES = 1e-5, 1e5, 1e-7
# Digits to which values are equal, and expressions made at once.
_DIGITS, _AT_ONCE = 10, 20_000
_SIGNS = "+-*/"


@final
@dataclass(frozen=True, slots=True)
class Leaf:
    """A feature."""

    feature: Feature


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@final
@dataclass(frozen=True, slots=True)
class Apply:
    """A transform of an expression."""

    transform: Transform
    inner: "Expression"


@final
@dataclass(frozen=True, slots=True)
class Pair:
    """Two expressions with one of ``+-*/`` between them."""

    sign: str
    left: "Expression"
    right: "Expression"


Expression = Leaf | Number | Apply | Pair


class Expressions:
    """Values of the expressions, the shortest first.

    Parameters
    ----------
    leaves, columns
        What expressions are made of, and its values, a row for each of them.
    numbers
        Constants among the leaves.
    transforms
        Functions of one expression.
    most
        Expressions at most; functions of the longest ones that are no powers come on top.
    pause
        When it returns true, those made until then are all there are.
    """

    def __init__(
        self,
        leaves: Sequence["Expression"],
        columns: Matrix,
        numbers: Sequence[float],
        transforms: Sequence[Transform],
        most: int,
        pause: Pause = never,
    ) -> None:
        self._leaves: list[Expression] = [*(Number(value) for value in numbers), *leaves]
        self._transforms = transforms
        self._curved = [not np.isfinite(exponent_of(g)) for g in transforms]
        rng = np.random.default_rng(0)
        self._mark = rng.standard_normal(columns.shape[1])
        constants = np.repeat(np.array(numbers)[:, None], columns.shape[1], axis=1)
        self.n_numbers = len(numbers)
        self.values = np.vstack([constants, columns])
        n_first = len(self.values)
        self._made = np.column_stack([np.full(n_first, -5), *2 * [np.arange(n_first)]])
        self._has_curve: Mask = np.zeros(n_first, dtype=np.bool_)
        self.sizes: Index = np.ones(n_first, dtype=np.int64)
        # Blocks may go beyond the most; the set stays half empty.
        self._slots = np.zeros(1 << (8 * most + 8 * _AT_ONCE).bit_length(), dtype=np.int64)
        self._fresh(self.values)
        with np.errstate(all="ignore"):
            grows = True
            while grows and len(self.values) < most and not pause():
                grows = self._grow(self._next(int(self.sizes[-1]) + 1), most, pause)
            self._grow(self._functions(int(self.sizes[-1]), curved=True), 8 * most, pause)

    def _grow(self, ways: Iterator[Index], most: int, pause: Pause) -> bool:
        """Add expressions of one more node, made in these ways; whether there are new ones."""
        before, size = len(self.values), int(self.sizes[-1]) + 1
        blocks: list[tuple[Matrix, Index, Mask]] = []
        count = 0
        for made in ways:
            for start in range(0, len(made), _AT_ONCE):
                if pause() or before + count >= most:
                    break
                block = self._new(made[start : start + _AT_ONCE])
                blocks.append(block)
                count += len(block[0])
        if not count:
            return False
        values, made, curved = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        self.values = np.vstack([self.values, values])[:most]
        self._made = np.vstack([self._made, made])[:most]
        self._has_curve = np.concatenate([self._has_curve, curved])[:most]
        self.sizes = np.concatenate([self.sizes, np.full(len(values), size)])[:most]
        return True

    def _of_size(self, size: int) -> Index:
        """Positions of the expressions with so many nodes."""
        low, high = np.searchsorted(self.sizes, [size, size + 1])
        return np.arange(low, high)

    def _next(self, size: int) -> Iterator[Index]:
        """How expressions of this size are made: transform or -4 to -1 for ``+-*/``, and parts."""
        yield from self._functions(size - 1, curved=True)
        yield from self._functions(size - 1, curved=False)
        for first in range(1, (size - 1) // 2 + 1):
            left, right = self._of_size(first), self._of_size(size - 1 - first)
            one, other = (part.ravel() for part in np.meshgrid(left, right, indexing="ij"))
            kept = (one >= self.n_numbers) | (other >= self.n_numbers)
            kept &= (one <= other) | (first != size - 1 - first)
            one, other = one[kept], other[kept]
            for kind in range(4):
                yield np.column_stack([np.full(one.size, kind - 4), one, other])
            yield np.column_stack([np.full(one.size, -1), other, one])

    def _functions(self, size: int, *, curved: bool) -> Iterator[Index]:
        """Functions of the expressions of this size: powers, or those that are no powers."""
        inner = self._of_size(size)
        inner = inner[inner >= self.n_numbers]
        inner = inner[~self._has_curve[inner]] if curved else inner
        for number, is_curved in enumerate(self._curved):
            if is_curved == curved:
                yield np.column_stack([np.full(inner.size, number), inner, inner])

    def _new(self, made: Index) -> tuple[Matrix, Index, Mask]:
        """Those of the given expressions that are sound and not known yet."""
        kind, first, second = made.T
        values, curved = self._values_of(int(kind[0]), first, second)
        size = np.max(np.abs(values), axis=1)
        sound = (size < _LARGEST) & (size > _SMALLEST)
        sound &= np.ptp(values, axis=1) > _VARIES * size
        place = np.flatnonzero(sound)
        place = place[self._fresh(values[place])]
        return values[place], made[place], curved[place]

    def _values_of(self, kind: int, first: Index, second: Index) -> tuple[Matrix, Mask]:
        one, curved = self.values[first], self._has_curve[first]
        if kind >= 0:
            return self._transforms[kind](one), curved | self._curved[kind]
        other, curved = self.values[second], curved | self._has_curve[second]
        if kind == -4:
            return one + other, curved
        if kind == -3:
            return one - other, curved
        return (one * other if kind == -2 else one / other), curved

    def _fresh(self, values: Matrix) -> Mask:
        """Which values are not known yet, up to their sign; from now on they are."""
        fraction, exponent = np.frexp(np.maximum(np.abs(values @ self._mark), 1e-300))
        rounded = np.round(fraction * 10.0**_DIGITS).astype(np.int64)
        fresh: Mask = np.zeros(len(values), dtype=np.bool_)
        add_new(np.asarray(rounded * 4096 + exponent + 2048), self._slots, fresh)
        return fresh

    def expression(self, position: int) -> Expression:
        """The expression at a position, up to its sign."""
        kind, first, second = (int(value) for value in self._made[position])
        if kind == -5:
            return self._leaves[first]
        if kind >= 0:
            return Apply(self._transforms[kind], self.expression(first))
        return Pair(_SIGNS[kind + 4], self.expression(first), self.expression(second))
