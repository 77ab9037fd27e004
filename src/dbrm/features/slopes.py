"""Derivatives of a feature by the numbers inside it.

Weights and biases of projections count; knots and exponents do not.
"""

import numpy as np

from dbrm._typing import Column, Matrix, TableLike
from dbrm.features.base import Feature
from dbrm.features.evaluation import evaluate_one
from dbrm.features.nodes import Covariate
from dbrm.features.projection import Projection
from dbrm.features.traversal import walk

__all__ = ["number_slopes"]

# Step of the central differences, as a share of the largest argument.
_STEP = 1e-6


def number_slopes(feature: Feature, table: TableLike) -> Matrix:
    r"""Derivatives by all weights and biases in a feature, one column each.

    For a projection :math:`g(\eta)`, :math:`\eta = \alpha_0 + \sum_r \alpha_r F_r`, anywhere
    inside, :math:`\partial F / \partial \alpha_r = F_r\, \partial F / \partial \eta`, the latter
    by central differences. Derivatives that are not finite in all rows are left out.
    """
    values: dict[str, Column] = {}
    with np.errstate(all="ignore"):
        for node in walk(feature):
            values[node.text] = _value(node, values, table)
        slopes: list[Column] = []
        for node in walk(feature):
            if isinstance(node, Projection):
                by_argument = _by_argument(feature, node, values)
                slopes += [by_argument * values[child.text] for child in node.children]
                slopes += [] if node.bias is None else [by_argument]
    n_rows = values[feature.text].size
    return np.array([s for s in slopes if np.all(np.isfinite(s))]).reshape(-1, n_rows).T


def _value(node: Feature, values: dict[str, Column], table: TableLike) -> Column:
    return evaluate_one(node, table) if isinstance(node, Covariate) else node.compute(values)


def _by_argument(feature: Feature, inner: Projection, values: dict[str, Column]) -> Column:
    """Derivative of a feature by the argument of a projection inside it, row by row."""
    argument = inner.argument(values)
    step = _STEP * max(float(np.max(np.abs(argument))), 1e-100)
    ends = []
    for moved in (argument + step, argument - step):
        changed = values | {inner.text: inner.transform.apply(moved, inner.knot)}
        for node in walk(feature):
            if inner.text in (below.text for below in walk(node)) and node is not inner:
                changed[node.text] = node.compute(changed)
        ends.append(changed[feature.text])
    derivative: Column = (ends[0] - ends[1]) / (2.0 * step)
    return derivative
