"""Places in a term: its nodes, and how something else in their place leads to the whole term."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.data import Table
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import (
    Feature,
    Modification,
    Product,
    Projection,
    evaluate,
    modify,
    multiply,
    project,
    walk,
)

__all__ = ["Place", "places"]

_Lift = Callable[[Matrix], Matrix]
_Rebuild = Callable[[Feature], Feature]
# Adds a weight times a feature, or a constant if there is no feature.
_Add = Callable[[Feature | None, float], Feature | None]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A node of a term.

    Parameters
    ----------
    node, column
        What is there, and its column.
    lift, rebuild
        From columns, and from a feature, in this place to those of the whole term.
    add
        The term with a weight times a feature, or a constant, added in this place; `None` at the
        root, where that would be another term.
    """

    node: Feature
    column: Column
    lift: _Lift
    rebuild: _Rebuild
    add: _Add | None

    @property
    def variants(self) -> list[Feature]:
        """The node without one of its parts."""
        node = self.node
        if isinstance(node, Modification):
            return [node.children[0]]
        if isinstance(node, Product):
            others = [node.children[:j] + node.children[j + 1 :] for j in range(len(node.children))]
            return [multiply(*rest) for rest in others]
        if not isinstance(node, Projection):
            return []
        found: list[Feature] = [] if node.bias is None else [_projection(node, node.children)]
        for j in range(len(node.children) if len(node.children) > 1 else 0):
            children = node.children[:j] + node.children[j + 1 :]
            weights = node.weights[:j] + node.weights[j + 1 :]
            found.append(
                project(node.transform, children, weights, node.bias, weights_in_identity=True)
            )
        return found


def _projection(node: Projection, children: tuple[Feature, ...]) -> Feature:
    """Without its constant; a plain function if nothing is left inside but one weight of one."""
    if node.weights == (1.0,):
        return modify(node.transform, children[0])
    return project(node.transform, children, node.weights, weights_in_identity=True)


def places(term: Feature, table: Table, powers: Powers) -> Iterator[Place]:
    """All places of a term without knots and standardised arguments, the whole first."""
    nodes = list(walk(term))
    columns = evaluate(nodes, table)[0]
    column_of = {node.text: columns[:, k] for k, node in enumerate(nodes)}
    waiting = [
        Place(term, column_of[term.text], lambda block: block, lambda feature: feature, None)
    ]
    while waiting:
        place = waiting.pop()
        yield place
        node = place.node
        for j, child in enumerate(node.children):
            ways: tuple[_Lift, _Rebuild, _Add | None]
            if isinstance(node, Modification):
                ways = _inside_function(place, node)
            elif isinstance(node, Product):
                beside = [column_of[c.text] for i, c in enumerate(node.children) if i != j]
                ways = _beside_factors(place, node, j, np.multiply.reduce(beside), powers)
            elif isinstance(node, Projection):
                rest = node.argument(column_of) - node.weights[j] * column_of[child.text]
                ways = _inside_sum(place, node, j, rest)
            else:
                continue
            waiting.append(Place(child, column_of[child.text], *ways))


def _sum(
    child: Feature, feature: Feature | None, weight: float
) -> tuple[list[Feature], list[float], float | None]:
    """Children, weights and constant of a child and a weight times a feature, or a constant."""
    return ([child], [1.0], weight) if feature is None else ([child, feature], [1.0, weight], None)


def _inside_function(place: Place, node: Modification) -> tuple[_Lift, _Rebuild, _Add]:
    g, child = node.transform, node.children[0]

    def add(feature: Feature | None, weight: float) -> Feature:
        return place.rebuild(project(g, *_sum(child, feature, weight), weights_in_identity=True))

    return (
        lambda block: place.lift(g.apply(block)),
        lambda feature: place.rebuild(modify(g, feature)),
        add,
    )


def _beside_factors(
    place: Place, node: Product, j: int, beside: Column, powers: Powers
) -> tuple[_Lift, _Rebuild, _Add]:
    child, others = node.children[j], node.children[:j] + node.children[j + 1 :]

    def add(feature: Feature | None, weight: float) -> Feature | None:
        total = powers.of_sum(*_sum(child, feature, weight), 1.0)
        return None if total is None else place.rebuild(multiply(total, *others))

    return (
        lambda block: place.lift(block * beside[:, None]),
        lambda feature: place.rebuild(multiply(feature, *others)),
        add,
    )


def _inside_sum(
    place: Place, node: Projection, j: int, rest: Column
) -> tuple[_Lift, _Rebuild, _Add | None]:
    g, weight = node.transform, node.weights[j]

    def rebuild(feature: Feature) -> Feature:
        children = [*node.children[:j], feature, *node.children[j + 1 :]]
        return place.rebuild(
            project(g, children, node.weights, node.bias, weights_in_identity=True)
        )

    def add(feature: Feature | None, share: float) -> Feature:
        children, weights, bias = list(node.children), list(node.weights), node.bias
        if feature is None:
            bias = (bias or 0.0) + weight * share
        else:
            children, weights = [*children, feature], [*weights, weight * share]
        return place.rebuild(project(g, children, weights, bias, weights_in_identity=True))

    # What is added to one summand is added to all.
    return (
        lambda block: place.lift(g.apply(rest[:, None] + weight * block)),
        rebuild,
        add if j == 0 else None,
    )
