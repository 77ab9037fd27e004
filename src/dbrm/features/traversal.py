"""Walks over features without recursion, so that depth is no danger.

`fold` computes something from the leaves up, `shape_of` for instance; `flatten` and
`unflatten` turn a feature into a list and back, for pickling.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.projection import Projection, Standardized, affine_topology

__all__ = ["flatten", "fold", "shape_of", "unflatten", "walk"]

Result = TypeVar("Result")


def walk(feature: Feature) -> Iterator[Feature]:
    """Yield every distinct node once, children before parents."""
    seen: set[str] = set()
    stack = [feature]
    while stack:
        node = stack[-1]
        pending = [child for child in node.children if child.text not in seen]
        if pending:
            stack.extend(reversed(pending))
            continue
        stack.pop()
        if node.text not in seen:
            seen.add(node.text)
            yield node


def fold(feature: Feature, combine: Callable[[Feature, Sequence[Result]], Result]) -> Result:
    """Compute ``combine(node, results of its children)`` for every node, leaves first."""
    results: dict[str, Result] = {}
    for node in walk(feature):
        results[node.text] = combine(node, [results[child.text] for child in node.children])
    return results[feature.text]


@lru_cache(maxsize=10_000)
def shape_of(feature: Feature) -> str:
    """The topology as text, the same for all weights inside, drawn or fitted."""

    def combine(node: Feature, inner: Sequence[str]) -> str:
        if not inner:
            return node.canonical
        inner = sorted(inner)
        if node.transform is None:
            return f"({'*'.join(inner)})"
        inside = affine_topology(inner, node.bias) if isinstance(node, Projection) else inner[0]
        return f"{node.transform.name}({inside})"

    return fold(feature, combine)


def flatten(feature: Feature) -> list[tuple[Any, ...]]:
    """List the nodes, children before parents, each naming its children by position."""
    position: dict[str, int] = {}
    steps: list[tuple[Any, ...]] = []
    for node in walk(feature):
        inputs = tuple([position[child.text] for child in node.children])
        position[node.text] = len(steps)
        match node:
            case Covariate():
                steps.append((node.name,))
            case Modification():
                steps.append((inputs, node.transform, node.knot))
            case Standardized():
                steps.append((inputs, (node.centre, node.scale)))
            case Projection():
                numbers = (node.weights, node.bias, node.fixed_identity)
                steps.append((inputs, node.transform, node.knot, *numbers))
            case _:
                steps.append((inputs, None))
    return steps


def unflatten(steps: Sequence[tuple[Any, ...]]) -> Feature:
    """Undo `flatten`."""
    nodes: list[Feature] = []
    for step in steps:
        children = [nodes[i] for i in step[0]] if len(step) > 1 else []
        match step:
            case (name,):
                nodes.append(Covariate(name))
            case (_, None):
                nodes.append(Product(children))
            case (_, (centre, scale)):
                nodes.append(Standardized(children[0], centre, scale))
            case (_, transform, knot):
                nodes.append(Modification(transform, children[0], knot))
            case (_, transform, knot, weights, bias, fixed):
                nodes.append(
                    Projection(transform, children, weights, bias, fixed_identity=fixed, knot=knot)
                )
    return nodes[-1]
