"""Learn numbers from the training rows: knots at quantiles, centre and scale of arguments.

``step[q0.5](x)`` becomes ``step[q0.5=1.234](x)``, ``sin[z](x)`` becomes ``sin((x - 3.1)/2.4)``.
"""

from collections.abc import Sequence
from math import floor, inf, isfinite, log10

import numpy as np

from dbrm._typing import Column, Matrix, TableLike
from dbrm.data.standardize import moments as data_moments
from dbrm.features.base import Feature
from dbrm.features.evaluation import ColumnCache, Reader, compute_column
from dbrm.features.nodes import Modification
from dbrm.features.projection import Projection, Standardized
from dbrm.features.traversal import fold

__all__ = ["fit_knots", "knot_after", "moments", "shortest_between", "standardize"]

# Significant digits of the scale of a standardised argument.
_DIGITS = 4


def fit_knots(feature: Feature, table: TableLike, cache: ColumnCache | None = None) -> Feature:
    """Compute all numbers of a feature that are learnt from training rows.

    Parameters
    ----------
    feature
        Any feature; it is returned unchanged if all its numbers are known.
    table
        The training table.
    cache
        As for `dbrm.features.evaluate`.

    Returns
    -------
        A new feature with the same key that stores the numbers: knots are linearly
        interpolated quantiles of the finite values of the transform's argument; centre and
        scale are mean and standard deviation of a standardised argument, rounded to a few
        digits of the latter. The given feature is not changed, because features are shared
        within a process, also between data sets.
    """
    if feature.fitted:
        return feature
    reader, columns = Reader(table), {} if cache is None else cache

    def fit(node: Feature, children: Sequence[Feature]) -> Feature:
        node = node if node.fitted else node.with_children(children)
        if node.fitted or not isinstance(node, Modification | Projection | Standardized):
            return node
        for child in node.children:
            compute_column(child, reader, columns)
        if isinstance(node, Standardized):
            return Standardized(node.children[0], *_readable(columns[node.children[0].text]))
        return node.with_knot(_quantile(node.argument(columns), node.transform.quantile))

    with np.errstate(all="ignore"):
        return fold(feature, fit)


def _quantile(column: Column, probability: float | None) -> float:
    finite = column[np.isfinite(column)]
    # Without a finite value the knot does not matter: the column's status excludes the feature.
    return float(np.quantile(finite, probability or 0.0)) if finite.size else 0.0


def knot_after(column: Column, value: float) -> float | None:
    """Return a knot of few digits between a training value and the next larger one, if any."""
    above = column[column > value]
    return shortest_between(value, float(np.min(above))) if above.size else None


def shortest_between(low: float, high: float) -> float:
    """Return the number of fewest decimals near the middle of an open interval."""
    middle = 0.5 * low + 0.5 * high
    first = -floor(log10(max(abs(low), abs(high))))
    for places in range(first, first + 17):
        rounded = round(middle, places)
        if low < rounded < high:
            return rounded
    return middle


def standardize(columns: Matrix) -> Matrix:
    """Standardise columns as the arguments of transforms such as ``sin[z]``."""
    largest = np.max(np.abs(columns), axis=0)
    relative = columns / largest
    pairs = zip(
        (relative.mean(axis=0) * largest).tolist(),
        (relative.std(axis=0) * largest).tolist(),
        strict=True,
    )
    centre, scale = np.array([_rounded(*_usable(*pair)) for pair in pairs]).reshape(-1, 2).T
    return np.asarray((columns - centre) / scale)


def _readable(column: Column) -> tuple[float, float]:
    """Return mean and standard deviation, rounded so that the formula can be copied by hand."""
    return _rounded(*moments(column))


def _rounded(centre: float, scale: float) -> tuple[float, float]:
    """Round both to digits of the standard deviation, so that rounding follows the units."""
    places = _DIGITS - 1 - floor(log10(scale))
    return round(centre, places), round(scale, places)


def moments(column: Column) -> tuple[float, float]:
    """Return mean and standard deviation; zero and one where they cannot be used."""
    return _usable(*data_moments(column))


def _usable(centre: float, scale: float) -> tuple[float, float]:
    usable = isfinite(centre) and 1e-300 < scale < inf
    return (centre, scale) if usable else (0.0, 1.0)
