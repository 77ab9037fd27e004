r"""A feature as a program of its projection weights, run forwards and backwards.

For :math:`z = \alpha_0 + \sum_r \alpha_r F_r` and :math:`F = g(z)`, with
:math:`\bar F = d\ell/dF` by row,

.. math:: \frac{d\ell}{d\alpha_r} = \sum_i \bar F_i\, g'(z_i)\, F_{r,i}, \qquad
    \bar F_r \mathrel{+}= \bar F\, g'(z)\, \alpha_r ,

and a factor of a product receives :math:`\bar F` times the other factors. One pass
forwards and one backwards cost a few operations per row and node, whatever the number
of weights. Knows nothing of responses or likelihoods.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray
from dbrm.features import (
    Feature,
    Modification,
    Product,
    Projection,
    Standardized,
    Transform,
    fold,
    moments,
    project,
    walk,
)

__all__ = ["Program", "free_projections", "read_weights", "replace_weights"]


def free_projections(feature: Feature) -> tuple[Projection, ...]:
    """Projections whose weights can be fitted, children before parents.

    Those with weights in their identity cannot; nor those without a bias, which users may
    write but the search never makes.
    """
    return tuple(
        node
        for node in walk(feature)
        if isinstance(node, Projection) and not node.weights_in_identity and node.bias is not None
    )


def read_weights(projections: Sequence[Projection]) -> FloatArray:
    """All weights in one vector; of each projection the bias first."""
    parts = [number for node in projections for number in (node.bias, *node.weights)]
    return np.array(parts, dtype=np.float64)


def replace_weights(
    feature: Feature, projections: Sequence[Projection], weights: FloatArray
) -> Feature:
    """The same topology with other weights; other learned numbers, such as knots, are dropped."""
    slots = _slots(projections)

    def rebuild(node: Feature, children: Sequence[Feature]) -> Feature:
        if isinstance(node, Projection) and node.text in slots:
            bias, *numbers = weights[slots[node.text]].tolist()
            return project(node.transform, children, numbers, bias)
        if all(new is old for new, old in zip(children, node.children, strict=True)):
            return node
        if isinstance(node, Modification):
            return node.unfitted(children[0])
        if isinstance(node, Standardized):
            return Standardized(children[0])
        return node.with_children(children)

    return fold(feature, rebuild)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One node: where its inputs are, and which weights are free."""

    node: Feature
    inputs: tuple[int, ...]
    slot: slice | None


class Program:
    """The columns of a feature and their derivatives, as functions of the free weights.

    Parameters
    ----------
    feature
        Its topology counts; weights that are not free keep their values.
    projections
        The nodes with free weights, as `free_projections` orders them.
    column
        Gives the training column of a sub-expression without free weights.
    """

    def __init__(
        self,
        feature: Feature,
        projections: Sequence[Projection],
        column: Callable[[Feature], Column],
    ) -> None:
        slots = _slots(projections)
        self.n_weights = max((slot.stop for slot in slots.values()), default=0)
        self._constants: list[Column] = []
        self._steps: list[_Step] = []
        # Inputs are numbered: constant columns -1, -2, ..., steps 0, 1, ...
        place: dict[str, int] = {}
        for node in walk(feature):
            moving = any(place.get(child.text, -1) >= 0 for child in node.children)
            if node.text not in slots and not moving:
                continue
            for child in node.children:
                if child.text not in place:
                    self._constants.append(column(child))
                    place[child.text] = -len(self._constants)
            inputs = tuple([place[child.text] for child in node.children])
            place[node.text] = len(self._steps)
            self._steps.append(_Step(node, inputs, slots.get(node.text)))
        self._values: list[Column] = []
        self._arguments: list[tuple[Column, float | None]] = []

    @property
    def smooth(self) -> bool:
        """Whether derivatives are informative: no steps, no knots that move with the weights."""
        transforms = [step.node.transform for step in self._steps]
        return not any(g is not None and (g.quantile is not None or _flat(g)) for g in transforms)

    def inputs(self, position: int) -> list[Column]:
        """Columns that enter the projection with the given position, after `forward`."""
        step = [step for step in self._steps if step.slot is not None][position]
        return [self._column(i) for i in step.inputs]

    def forward(self, weights: FloatArray) -> Column:
        """The feature's column; intermediate ones are kept for `backward`."""
        self._weights = weights
        self._values, self._arguments = [], []
        with np.errstate(all="ignore"):
            for step in self._steps:
                self._values.append(self._compute(step))
        return self._values[-1]

    def backward(self, bar: Column) -> FloatArray:
        """Derivative in the weights, from that in the feature's column."""
        gradient = np.zeros(self.n_weights)
        bars: list[Column | None] = [None] * len(self._steps)
        bars[-1] = bar
        with np.errstate(all="ignore"):
            for number in range(len(self._steps) - 1, -1, -1):
                upper = bars[number]
                if upper is not None:
                    self._push(number, upper, bars, gradient)
        return gradient

    def _column(self, place: int) -> Column:
        return self._values[place] if place >= 0 else self._constants[-1 - place]

    def _compute(self, step: _Step) -> Column:
        columns = [self._column(place) for place in step.inputs]
        node = step.node
        if isinstance(node, Product):
            self._arguments.append((columns[0], None))
            return np.asarray(np.multiply.reduce(columns), dtype=np.float64)
        if isinstance(node, Standardized):
            centre, scale = moments(columns[0])
            self._arguments.append(((columns[0] - centre) / scale, scale))
            return self._arguments[-1][0]
        if isinstance(node, Projection):
            bias, weights = self._numbers(node, step.slot)
            argument = weights[0] * columns[0]
            for weight, column in zip(weights[1:], columns[1:], strict=True):
                argument += weight * column
            if bias is not None:
                argument += bias
        else:
            argument = columns[0]
        assert node.transform is not None
        if isinstance(node, Modification) and node.transform.free_knot:
            knot = node.knot
        else:
            knot = _knot(node.transform, argument)
        self._arguments.append((argument, knot))
        return node.transform.apply(argument, knot)

    def _numbers(
        self, node: Projection, slot: slice | None
    ) -> tuple[float | None, Sequence[float]]:
        if slot is None:
            return node.bias, node.weights
        bias, *weights = self._weights[slot].tolist()
        return bias, weights

    def _push(
        self, number: int, upper: Column, bars: list[Column | None], gradient: FloatArray
    ) -> None:
        """Propagate the derivative of one node to its weights and inputs."""
        step = self._steps[number]
        node = step.node
        columns = [self._column(place) for place in step.inputs]
        if isinstance(node, Product):
            for j, place in enumerate(step.inputs):
                if place >= 0:
                    others = columns[:j] + columns[j + 1 :]
                    _add(bars, place, upper * np.multiply.reduce(others))
            return
        if isinstance(node, Standardized):
            value, scale = self._arguments[number]
            # Centre and scale move with the argument.
            lower = upper - np.mean(upper) - value * np.mean(upper * value)
            _add(bars, step.inputs[0], lower / scale)
            return
        assert node.transform is not None
        lower = upper * _slope(node.transform, *self._arguments[number])
        # The corner of a subgradient, or a row where nothing moves.
        lower[~np.isfinite(lower)] = 0.0
        if not isinstance(node, Projection):
            _add(bars, step.inputs[0], lower)
            return
        if step.slot is not None:
            # Not by BLAS, whose sums depend on the number of threads.
            gradient[step.slot] = [np.sum(lower), *(np.sum(lower * c) for c in columns)]
        _, weights = self._numbers(node, step.slot)
        for weight, place in zip(weights, step.inputs, strict=True):
            if place >= 0:
                _add(bars, place, weight * lower)


def _slots(projections: Sequence[Projection]) -> dict[str, slice]:
    slots: dict[str, slice] = {}
    start = 0
    for node in projections:
        stop = start + 1 + len(node.weights)
        slots[node.text] = slice(start, stop)
        start = stop
    return slots


def _add(bars: list[Column | None], place: int, bar: Column) -> None:
    known = bars[place]
    bars[place] = bar if known is None else known + bar


def _knot(transform: Transform, argument: Column) -> float | None:
    if transform.quantile is None:
        return None
    finite = argument[np.isfinite(argument)]
    return float(np.quantile(finite, transform.quantile)) if finite.size else 0.0


def _slope(transform: Transform, argument: Column, knot: float | None) -> Column:
    knots = () if knot is None else (knot,)
    return np.asarray(transform.derivative(argument, *knots), dtype=np.float64)


def _flat(transform: Transform) -> bool:
    """Whether the derivative vanishes almost everywhere, as that of a step does."""
    probes = np.linspace(-3.0, 3.0, 64) + 0.0123
    probes = np.concatenate([probes, transform.domain.probes()])
    with np.errstate(all="ignore"):
        return not np.any(_slope(transform, probes, 0.0 if transform.free_knot else None))
