r"""The numbers inside a feature, fitted beside other terms and moved to simple ones.

A feature is a function of the weights and constants of its sums; its column and its derivatives by
them are computed in one pass from the leaves up. Beside other terms :math:`Z` the coefficients are
eliminated,

.. math:: \min_c \; \bigl\| (I - P_{[Z, F(c)]})\, y \bigr\|^2 ,

by Levenberg and Marquardt's method with Kaufman's derivative (1975) of the projection.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix, TableLike
from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.snapping import snapped_numbers
from dbrm.features import Feature, Modification, Product, Projection, evaluate, fold, project, walk

__all__ = ["InnerNumbers", "fit_inner_numbers"]


def fit_inner_numbers(
    feature: Feature, others: Matrix, response: Column, table: TableLike
) -> Feature:
    """The feature with the numbers that fit best beside other columns, short ones if they do.

    The feature itself if it has none, or if they cannot be fitted.
    """
    inside = InnerNumbers(feature, table)
    if not inside.start.size:
        return feature
    basis, _ = np.linalg.qr(np.column_stack([np.ones(response.size), others]))
    outside = response - basis @ (basis.T @ response)
    left = outside / max(float(np.linalg.norm(outside)), 1e-300)

    def direction(numbers: FloatArray) -> Column:
        """The column outside the other terms, of length one."""
        rest = _outside(basis, _outside(basis, inside.value(numbers)))
        length = float(np.linalg.norm(rest))
        return np.asarray(rest / length) if 0.0 < length < np.inf else np.full(rest.size, np.nan)

    def residual(numbers: FloatArray) -> Column:
        along = direction(numbers)
        rest = left - along * float(along @ left)
        return np.asarray(rest) if np.all(np.isfinite(rest)) else np.full(rest.size, 1e6)

    def slopes(numbers: FloatArray) -> Matrix:
        column, derivatives = inside.linearize(numbers)
        along = direction(numbers)
        length = max(float(np.linalg.norm(_outside(basis, column))), 1e-300)
        moved = _outside(basis, derivatives)
        moved = float(along @ left) / length * (moved - np.outer(along, along @ moved))
        return np.asarray(np.nan_to_num(-inside.free * moved))

    with np.errstate(all="ignore"):
        numbers = fit_numbers(residual, slopes, inside.start)
        numbers = snapped_numbers(
            numbers,
            inside.free == 0.0,
            lambda numbers: _outside(basis, inside.value(numbers)),
            lambda numbers: _outside(basis, inside.linearize(numbers)[1]),
            outside,
        )
    return inside.feature(numbers) if np.all(np.isfinite(numbers)) else feature


@final
class InnerNumbers:
    """A feature as a function of the weights and constants of its sums, children first.

    Of a sum to a power the scale belongs to the coefficient: one weight, the first one of size one
    or the largest, is not free.
    """

    def __init__(self, feature: Feature, table: TableLike) -> None:
        self._feature = feature
        self._nodes = list(walk(feature))
        columns = evaluate(self._nodes, table)[0]
        self._columns = {node.text: columns[:, k] for k, node in enumerate(self._nodes)}
        start: list[float] = []
        free: list[float] = []
        self._slots: dict[str, slice] = {}
        moving: set[str] = set()
        for node in self._nodes:
            if isinstance(node, Projection):
                numbers = [*node.weights, *([] if node.bias is None else [node.bias])]
                self._slots[node.text] = slice(len(start), len(start) + len(numbers))
                start += numbers
                free += _free(node, numbers)
            if isinstance(node, Projection) or any(c.text in moving for c in node.children):
                moving.add(node.text)
        self._moving = [node for node in self._nodes if node.text in moving]
        self.start = np.array(start, dtype=np.float64)
        self.free: FloatArray = np.array(free, dtype=np.float64)

    def value(self, numbers: FloatArray) -> Column:
        """The column."""
        columns = dict(self._columns)
        for node in self._moving:
            if isinstance(node, Projection):
                argument = self._argument(node, columns, numbers)
                columns[node.text] = node.transform.apply(argument, node.knot)
            else:
                columns[node.text] = node.compute(columns)
        return columns[self._feature.text]

    def linearize(self, numbers: FloatArray) -> tuple[Column, Matrix]:
        """The column, and its derivatives by the numbers."""
        columns = dict(self._columns)
        slopes: dict[str, Matrix] = {}
        none = np.zeros((columns[self._feature.text].size, numbers.size))
        for node in self._moving:
            inner = [slopes.get(child.text, none) for child in node.children]
            if isinstance(node, Projection):
                argument = self._argument(node, columns, numbers)
                slope = none.copy()
                slot = self._slots[node.text]
                for j, child in enumerate(node.children):
                    slope += numbers[slot.start + j] * inner[j]
                    slope[:, slot.start + j] += columns[child.text]
                if node.bias is not None:
                    slope[:, slot.stop - 1] += 1.0
                columns[node.text] = node.transform.apply(argument, node.knot)
                slopes[node.text] = node.transform.derivative(argument)[:, None] * slope
            elif isinstance(node, Product):
                slope = none.copy()
                for j in range(len(node.children)):
                    others = [c.text for i, c in enumerate(node.children) if i != j]
                    beside = np.multiply.reduce([columns[text] for text in others])
                    slope += beside[:, None] * inner[j]
                columns[node.text], slopes[node.text] = node.compute(columns), slope
            else:
                assert isinstance(node, Modification)
                argument = columns[node.children[0].text]
                slopes[node.text] = node.transform.derivative(argument)[:, None] * inner[0]
                columns[node.text] = node.compute(columns)
        return columns[self._feature.text], slopes[self._feature.text]

    def _argument(
        self, node: Projection, columns: dict[str, Column], numbers: FloatArray
    ) -> Column:
        own = numbers[self._slots[node.text]]
        total = np.zeros(columns[node.text].size)
        for weight, child in zip(own, node.children, strict=False):
            total += weight * columns[child.text]
        return total if node.bias is None else total + own[-1]

    def feature(self, numbers: FloatArray) -> Feature:
        """The feature with these numbers."""

        def rebuild(node: Feature, children: Sequence[Feature]) -> Feature:
            if node.text in self._slots:
                assert isinstance(node, Projection)
                own = numbers[self._slots[node.text]].tolist()
                bias = None if node.bias is None else own[-1] or None
                weights = own[: len(children)]
                return project(node.transform, children, weights, bias, weights_in_identity=True)
            return node.with_children(children) if children else node

        return fold(self._feature, rebuild)


def _outside(basis: Matrix, columns: Any) -> Any:
    """What a basis leaves of a column or columns."""
    return columns - basis @ (basis.T @ columns)


def _free(node: Projection, numbers: list[float]) -> list[float]:
    """One for each number that is fitted, zero for the others."""
    if not np.isfinite(exponent_of(node.transform)):
        return [1.0] * len(numbers)
    sizes = np.abs(node.weights)
    ones = np.flatnonzero(sizes == 1.0)
    fixed = int(ones[0]) if ones.size else int(np.argmax(sizes))
    return [float(j != fixed) for j in range(len(numbers))]
