r"""The mixture of linear predictors of many models, carried by one grid per row.

A row's linear predictor has the law :math:`\sum_M p_M N(m_M, s_M^2)`. What follows from it,
:math:`\int F(\eta)\,p(\eta)\,d\eta` for an :math:`F` that varies over widths no smaller than
:math:`w`, is a sum over points with a step :math:`h = w/4`: components wider than a step put
their density there (the trapezoidal rule, exact to :math:`10^{-8}`); narrower ones are three
Gauss-Hermite nodes, each shared among six points so that polynomials of degree five stay
exact. Thousands of components become tens of points.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, IntArray, Matrix

__all__ = ["PredictorGrid", "spread_on_grid"]

# Steps per width; components are followed so many standard deviations; most points.
_FINENESS, _REACH, _MOST_POINTS = 4.0, 6.0, 1000
# Points that share a narrow component.
_SHARED = 6
_NODES = np.array([-np.sqrt(3.0), 0.0, np.sqrt(3.0)])
_NODE_WEIGHTS = np.array([1.0, 4.0, 1.0]) / 6.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class PredictorGrid:
    """Points by rows, with the mass at each; a row's masses add to its models' weights."""

    points: Matrix
    masses: Matrix


def spread_on_grid(
    weights: Matrix, locations: Matrix, scales: Matrix, width: Column
) -> PredictorGrid:
    """Put models (rows of the matrices) on one grid for each row of the data (columns).

    Parameters
    ----------
    width
        Smallest width of what will be integrated, for each row of the data.
    """
    present = weights > 0
    low = np.min(locations - _REACH * scales, axis=0, initial=np.inf, where=present)
    high = np.max(locations + _REACH * scales, axis=0, initial=-np.inf, where=present)
    empty = ~(low <= high)
    low, high = np.where(empty, 0.0, low), np.where(empty, 0.0, high)
    step = width / _FINENESS
    needed = float(np.max((high - low) / step, initial=0.0))
    n_points = int(min(np.ceil(needed), _MOST_POINTS)) + 1 + _SHARED
    step = np.maximum(step, (high - low) / (n_points - _SHARED))
    start = 0.5 * (low + high) - 0.5 * (n_points - 1) * step
    points = start + np.arange(n_points)[:, None] * step
    masses = np.zeros_like(points)
    for weight, location, scale in zip(weights, locations, scales, strict=True):
        wide = (weight > 0) & (scale >= step)
        narrow = (weight > 0) & (scale < step)
        if wide.any():
            masses[:, wide] += weight[wide] * _density(points[:, wide], location[wide], scale[wide])
        if narrow.any():
            _share(masses, np.flatnonzero(narrow), weight, location, scale, start, step)
    return PredictorGrid(points, masses)


def _density(points: Matrix, location: Column, scale: Column) -> Matrix:
    values = np.exp(-0.5 * ((points - location) / scale) ** 2)
    return np.asarray(values / values.sum(axis=0))


def _share(
    masses: Matrix,
    rows: IntArray,
    weight: Column,
    location: Column,
    scale: Column,
    start: Column,
    step: Column,
) -> None:
    """Add narrow components, their nodes shared among the nearest points."""
    for node, node_weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        place = (location[rows] + node * scale[rows] - start[rows]) / step[rows]
        first = np.clip(np.floor(place) - (_SHARED // 2 - 1), 0, len(masses) - _SHARED)
        shares = _lagrange(place - first)
        for j, share in enumerate(shares):
            masses[first.astype(np.int64) + j, rows] += node_weight * weight[rows] * share


def _lagrange(place: Column) -> list[Column]:
    """Weights of the points 0, 1, ..., 5 in the polynomial through them, at each place."""
    shares = []
    for j in range(_SHARED):
        others = [i for i in range(_SHARED) if i != j]
        shares.append(np.prod([(place - i) / (j - i) for i in others], axis=0))
    return shares
