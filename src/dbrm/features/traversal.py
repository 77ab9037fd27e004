"""Walk over expression trees without recursion, so that deep features cannot overflow the stack.

`fold` computes a result from the leaves up; `flatten` and `unflatten` convert a feature to a
list and back, for pickling.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.projection import Projection, Standardized, affine_topology

__all__ = ["flatten", "fold", "topology_of", "unflatten", "walk"]

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
def topology_of(feature: Feature) -> str:
    """Return the topology as text, the same for all weights, drawn or fitted."""

    def combine(node: Feature, inner: Sequence[str]) -> str:
        if not inner:
            return node.canonical
        inner = sorted(inner)
        if node.transform is None:
            return f"({'*'.join(inner)})"
        inside = affine_topology(inner, node.bias) if isinstance(node, Projection) else inner[0]
        if isinstance(node, Modification) and node.transform.free_knot:
            inside = f"{inside}, {node.knot!r}"
        return f"{node.transform.name}({inside})"

    return fold(feature, combine)


def flatten(feature: Feature) -> list[tuple[Any, ...]]:
    """List the nodes, children before parents; each refers to its children by position."""
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
                numbers = (node.weights, node.bias, node.weights_in_identity)
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
                    Projection(
                        transform, children, weights, bias, weights_in_identity=fixed, knot=knot
                    )
                )
    return nodes[-1]
