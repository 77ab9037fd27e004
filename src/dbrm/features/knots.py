"""Numbers learnt from the training rows: knots at quantiles, centre and scale of arguments.

``step[q0.5](x)`` becomes ``step[q0.5=1.234](x)``, ``sin[z](x)`` becomes ``sin((x - 3.1)/2.4)``.
"""

from collections.abc import Sequence
from math import floor, inf, isfinite, log10

import numpy as np

from dbrm._typing import Column, Matrix, TableLike
from dbrm.data.standardize import moments as data_moments
from dbrm.features.base import Feature
from dbrm.features.evaluation import ColumnCache, Reader, collect
from dbrm.features.nodes import Modification
from dbrm.features.projection import Projection, Standardized
from dbrm.features.traversal import fold

__all__ = ["fit_knots", "moments", "standardize"]

# Significant digits of the scale of a standardised argument.
_DIGITS = 4


def fit_knots(feature: Feature, table: TableLike, cache: ColumnCache | None = None) -> Feature:
    """Give every number that is learnt from training rows its value.

    Parameters
    ----------
    feature
        Any feature; one whose numbers are all known, or that has none, is returned as
        it is.
    table
        The training table.
    cache
        As for `dbrm.features.evaluate`.

    Returns
    -------
        A feature of the same key that stores its knots, linearly interpolated quantiles of
        the finite values of the column that the transform receives, and the mean and
        standard deviation of what is standardised, rounded to a few digits of the latter.
        Features are shared within a process, also between data sets; that is why the
        numbers are put into a new one.
    """
    if feature.fitted:
        return feature
    reader, columns = Reader(table), {} if cache is None else cache

    def fit(node: Feature, children: Sequence[Feature]) -> Feature:
        node = node if node.fitted else node.rebuilt(children)
        if node.fitted or not isinstance(node, Modification | Projection | Standardized):
            return node
        for child in node.children:
            collect(child, reader, columns)
        if isinstance(node, Standardized):
            return Standardized(node.children[0], *_readable(columns[node.children[0].text]))
        return node.with_knot(_quantile(node.argument(columns), node.transform.quantile))

    with np.errstate(all="ignore"):
        return fold(feature, fit)


def _quantile(column: Column, probability: float | None) -> float:
    finite = column[np.isfinite(column)]
    # Without a finite value any knot will do: the column's status rules the feature out.
    return float(np.quantile(finite, probability or 0.0)) if finite.size else 0.0


def standardize(columns: Matrix) -> Matrix:
    """Return what transforms of the standardised argument receive, column by column."""
    centre, scale = np.array([_readable(column) for column in columns.T]).reshape(-1, 2).T
    return np.asarray((columns - centre) / scale)


def _readable(column: Column) -> tuple[float, float]:
    """Mean and standard deviation to so many digits that the formula can be copied by hand.

    The digits are those of the standard deviation, so that they move with the units.
    """
    centre, scale = moments(column)
    places = _DIGITS - 1 - floor(log10(scale))
    return round(centre, places), round(scale, places)


def moments(column: Column) -> tuple[float, float]:
    """Return mean and standard deviation; zero and one where they cannot be used."""
    centre, scale = data_moments(column)
    usable = isfinite(centre) and 1e-300 < scale < inf
    return (centre, scale) if usable else (0.0, 1.0)
