r"""The mixture of linear predictors of many models, carried by one grid per row.

A row's linear predictor has the density :math:`\sum_M p_M f_M`, normal ones or others
(`dbrm.posterior.predictor_distribution`). What follows from it,
:math:`\int F(\eta)\,p(\eta)\,d\eta` for an :math:`F` that varies over widths no smaller than
:math:`w`, is a sum over points with a step :math:`h = w/4`: components wider than a step put
their density there (the trapezoidal rule, exact to :math:`10^{-8}`); narrower ones are three
nodes with the same first moments, each shared among six points so that polynomials of degree
five stay exact. Thousands of components become tens of points.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.posterior.predictor_distribution import AbstractPredictor

__all__ = ["PredictorGrid", "spread_on_grid"]

# Steps per width; most points.
_FINENESS, _MOST_POINTS = 4.0, 1000
# Points that share a narrow component.
_SHARED = 6
_POINTS = np.arange(_SHARED)[:, None, None]
_DENOMINATORS = np.array(
    [np.prod([j - i for i in range(_SHARED) if i != j]) for j in range(_SHARED)]
)[:, None, None]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PredictorGrid:
    """Points by rows, with the mass at each; a row's masses add to its models' weights."""

    points: Matrix
    masses: Matrix


def spread_on_grid(
    weights: Matrix, predictor: AbstractPredictor, models: IntArray, width: Column
) -> PredictorGrid:
    """Put some models (rows of the matrices) on one grid for each row of the data (columns).

    Parameters
    ----------
    models
        Which of the models.
    width
        Smallest width of what will be integrated, for each row of the data.
    """
    present = weights[models] > 0
    ends = predictor.reach
    low = np.min(ends[0][models], axis=0, initial=np.inf, where=present)
    high = np.max(ends[1][models], axis=0, initial=-np.inf, where=present)
    empty = ~(low <= high)
    low, high = np.where(empty, 0.0, low), np.where(empty, 0.0, high)
    step = width / _FINENESS
    needed = float(np.max((high - low) / step, initial=0.0))
    n_points = int(min(np.ceil(needed), _MOST_POINTS)) + 1 + _SHARED
    step = np.maximum(step, (high - low) / (n_points - _SHARED))
    start = 0.5 * (low + high) - 0.5 * (n_points - 1) * step
    points = start + np.arange(n_points)[:, None] * step
    masses = np.zeros_like(points)
    for model in models.tolist():
        weight, scale = weights[model], predictor.scales[model]
        wide = np.flatnonzero((weight > 0) & (scale >= step))
        narrow = np.flatnonzero((weight > 0) & (scale < step))
        if wide.size:
            values = predictor.density(model, wide, points[:, wide])
            masses[:, wide] += weight[wide] * (values / values.sum(axis=0))
        if narrow.size:
            nodes, node_weights = predictor.three_nodes(model, narrow)
            places = (nodes - start[narrow]) / step[narrow]
            _share(masses, narrow, places, node_weights * weight[narrow])
    return PredictorGrid(points, masses)


def _share(masses: Matrix, rows: IntArray, places: Matrix, node_weights: Matrix) -> None:
    """Add narrow components, their nodes shared among the nearest points."""
    first = np.clip(np.floor(places) - (_SHARED // 2 - 1), 0, len(masses) - _SHARED)
    added = node_weights * _lagrange(places - first)
    points = first.astype(np.int64) + _POINTS
    index = points * masses.shape[1] + rows
    masses += np.bincount(index.ravel(), added.ravel(), masses.size).reshape(masses.shape)


def _lagrange(place: Matrix) -> FloatArray:
    """Weights of the points 0, 1, ..., 5 (first axis) in the polynomial through them."""
    gaps = place - _POINTS
    shares = np.empty_like(gaps)
    before = after = np.ones_like(place)
    # Products of the gaps to all points before, then of those after.
    for j in range(_SHARED):
        shares[j] = before
        before = before * gaps[j]
    for j in reversed(range(_SHARED)):
        shares[j] *= after
        after = after * gaps[j]
    return np.asarray(shares / _DENOMINATORS)
