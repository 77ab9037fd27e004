r"""Expressions of few nodes that a target is nearly a multiple of, or a sum of two of them.

All expressions are screened on some of the rows: what each leaves of the target beside a constant,
and what each pair of the shortest ones leaves. Numbers inside them are a few simple ones. It is
weighed again on all rows, so that noise only lengthens the list.
"""

from collections.abc import Sequence

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.data import Table
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.expressions import Expressions, Leaf
from dbrm.evolution.sweep.levels import Index
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.spelt_sums import Speller
from dbrm.features import Feature, Transform, evaluate

__all__ = ["ExpressionTerms"]

# Rows that are screened, expressions alone and in pairs, and numbers in them.
_ROWS, _ALONE, _PAIRED, _NUMBERS = 80, 40_000, 3_000, (1.0, 2.0, 3.0, 0.5)
# Expressions and pairs that are returned.
_TAKE_ALONE, _TAKE_PAIRS = 30, 15
# Smallest share of a column's squares that a difference of squares can tell.
_ROUNDING = 1e-10


class ExpressionTerms:
    """Expressions over some features, on some rows of a table."""

    def __init__(
        self,
        bases: Sequence[Feature],
        table: Table,
        transforms: Sequence[Transform],
        pause: Pause = never,
    ) -> None:
        self._rows: Index = np.linspace(0, table.n_rows - 1, min(table.n_rows, _ROWS)).astype(
            np.int64
        )
        self._transforms = transforms
        plain = [g for g in transforms if g.base is None and not (g.affine or g.takes_knot)]
        columns = evaluate(list(bases), table.take(self._rows))[0].T
        leaves = [Leaf(base) for base in bases]
        self._made = Expressions(leaves, columns, _NUMBERS, plain, _ALONE, pause)

    def best(self, target: Column, weight: Column, unit: float) -> list[Feature]:
        """Features of the expressions of largest expected gain, alone or with another one.

        Parameters
        ----------
        weight
            Square root of each row's weight.
        unit
            What a node costs, in nats.
        """
        none, values = self._made.n_numbers, self._made.values
        target, weight = target[self._rows], weight[self._rows]
        left = _left_by_one(target, weight, values[none:])
        prices = np.asarray(unit * self._made.sizes[none:], dtype=np.float64)
        gain = -0.5 * target.size * np.log(left) - prices
        order = np.argsort(np.where(np.isfinite(gain), -gain, np.inf), kind="stable")
        places = (none + order[:_TAKE_ALONE]).tolist()
        some = values[none : none + _PAIRED].T
        scale = np.max(np.abs(some), axis=0)
        pairs = best_sums(
            target, weight, some / scale, prices[:_PAIRED], 2, _TAKE_PAIRS, smallest=2
        )
        places += [none + place for _, pair in pairs for place in pair]
        return self._spelt(list(dict.fromkeys(places)))

    def _spelt(self, places: Sequence[int]) -> list[Feature]:
        """Expressions as features up to their scale and shift; a plain sum by its inverse."""
        speller, powers = Speller(self._transforms, expands=False), Powers(self._transforms)
        found: list[Feature] = []
        for place in places:
            total = speller.sum(self._made.expression(place))
            if total is None or not total.features:
                continue
            if len(total.features) == 1:
                found.append(total.features[0])
                continue
            inverse = powers.of_sum(total.features, total.weights, total.bias or None, -1.0)
            found += [*total.features, *([] if inverse is None else [inverse])]
        return list(dict.fromkeys(found))


def _left_by_one(target: Column, weight: Column, values: Matrix) -> FloatArray:
    """Share of the target's squares that each row of values beside a constant leaves."""
    squares = weight * weight
    squares = squares / squares.sum()
    wanted = target - squares @ target
    middle = values @ squares
    size = (values * values) @ squares
    spread = size - middle**2
    common = values @ (squares * wanted)
    usable = spread > _ROUNDING * size
    explained = np.where(usable, common**2 / np.where(usable, spread, 1.0), 0.0)
    total = float(squares @ (wanted * wanted))
    return np.asarray(np.maximum(1.0 - explained / max(total, 1e-300), _ROUNDING))
