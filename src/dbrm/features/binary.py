"""Powers of 0/1 columns: ``x*x`` is ``x`` where ``x`` is an indicator.

Which covariates are indicators is a fact about the data, so the rule is applied by
whoever knows the table, not by the constructors.
"""

from collections.abc import Collection, Sequence

from dbrm.features.base import Feature
from dbrm.features.building import multiply
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.traversal import fold, walk

__all__ = ["drop_binary_powers"]

_STEPS = ("step[", "step_down[")


def drop_binary_powers(feature: Feature, binary: Collection[str]) -> Feature:
    """Write every 0/1 factor of a product once.

    Parameters
    ----------
    binary
        Names of the covariates that hold nothing but zeros and ones. Steps are 0/1
        columns too, and so are ``not`` and products of 0/1 columns.
    """
    if not _has_power(feature):
        return feature
    known: dict[Feature, bool] = {}

    def is_binary(node: Feature) -> bool:
        if node not in known:
            match node:
                case Covariate():
                    known[node] = node.name in binary
                case Modification():
                    name = node.transform.name
                    known[node] = name.startswith(_STEPS) or (
                        name == "not" and is_binary(node.children[0])
                    )
                case Product():
                    known[node] = all(is_binary(factor) for factor in node.factors)
                case _:
                    known[node] = False
        return known[node]

    def rebuild(node: Feature, children: Sequence[Feature]) -> Feature:
        if not isinstance(node, Product):
            return node.rebuilt(children) if node.children else node
        kept: list[Feature] = []
        for factor in children:
            if not (factor in kept and is_binary(factor)):
                kept.append(factor)
        return multiply(*kept)

    return fold(feature, rebuild)


def _has_power(feature: Feature) -> bool:
    """Whether some product below has a repeated factor."""
    return any(
        isinstance(node, Product) and len(set(node.factors)) < len(node.factors)
        for node in walk(feature)
    )
