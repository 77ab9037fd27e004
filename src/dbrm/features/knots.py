"""Knots at training quantiles: ``step[q0.5](x)`` becomes ``step[q0.5=1.234](x)``."""

from collections.abc import Sequence

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm.features.base import Feature
from dbrm.features.evaluation import ColumnCache, collect
from dbrm.features.nodes import Modification, Projection
from dbrm.features.tables import Reader
from dbrm.features.traversal import fold

__all__ = ["fit_knots"]


def fit_knots(feature: Feature, table: TableLike, cache: ColumnCache | None = None) -> Feature:
    """Give every knot at a training quantile its value.

    Parameters
    ----------
    feature
        Any feature; one whose knots are all known, or that has none, is returned as
        it is.
    table
        The training table.
    cache
        As for `dbrm.features.evaluate`.

    Returns
    -------
        A feature of the same key that stores its knots: linearly interpolated
        quantiles of the finite values of the column that the transform receives.
        Features are shared within a process, also between data sets; that is why
        the knots are put into a new one.
    """
    if feature.fitted:
        return feature
    reader, columns = Reader(table), {} if cache is None else cache

    def fit(node: Feature, children: Sequence[Feature]) -> Feature:
        node = node if node.fitted else node.rebuilt(children)
        if node.fitted or not isinstance(node, Modification | Projection):
            return node
        for child in node.children:
            collect(child, reader, columns)
        return node.with_knot(_quantile(node.argument(columns), node.transform.quantile))

    with np.errstate(all="ignore"):
        return fold(feature, fit)


def _quantile(column: Column, probability: float | None) -> float:
    finite = column[np.isfinite(column)]
    # Without a finite value any knot will do: the column's status rules the feature out.
    return float(np.quantile(finite, probability or 0.0)) if finite.size else 0.0
