r"""Functions of a weighted sum of two features, :math:`g(\alpha_0 + \alpha_1 F_1 + \alpha_2 F_2)`.

Of each pair of features a grid of directions and scales is screened against a residual; of the best
the weights are fitted to it by Gauss and Newton's method, the factor in front being eliminated
(variable projection, Golub and Pereyra 1973). Unlike the paper's strategies (Sec. 3.2) the weights
are fitted to what the leading model leaves, not to the response. They belong to the identity of the
feature. Sees columns and residuals, never responses or priors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evolution.function_shapes import Kind, Shape, shapes_of
from dbrm.evolution.newcomers.rounding import shortest
from dbrm.evolution.newcomers.targets import Target, thinned_rows
from dbrm.features import Feature, Transform, moments, project

__all__ = ["propose_projections"]

_ANGLES = np.pi * np.array([1.0, 2.0, 3.0, 5.0, 6.0, 7.0]) / 8.0
_SCALES = (0.5, 1.0, 2.0)
# Fits for each feature that is wanted, and steps of each.
_TRIED, _STEPS = 2, 12
# Rows on which the grid is screened.
_SCREENED = 300
# Largest scale of standardised columns: steeper functions are steps.
_STEEPEST = 50.0
# Share of a column's squares outside the model below which it is inside.
_IN_SPAN = 1e-4


def propose_projections(
    bases: Sequence[Feature],
    columns: Matrix,
    target: Target,
    transforms: Sequence[Transform],
    count: int,
) -> list[Feature]:
    """The best projections of two bases, best first.

    Parameters
    ----------
    bases, columns
        What is summed, and the columns on the rows used for screening.
    target
        The residual that is to be explained, on these rows.
    transforms
        The functions; of standardised ones, ``sin[z]``, the plain one is used.
    count
        Most features.
    """
    shapes = shapes_of(tuple(transforms))
    scaled = {
        j: standard
        for j, column in enumerate(columns.T)
        if (standard := _standardized(column)) is not None
    }
    few = target.thinned(_SCREENED)
    found: list[_Projection] = []
    with np.errstate(all="ignore"):
        for i, j in combinations(scaled, 2):
            inputs = np.column_stack([scaled[i], scaled[j], np.ones(target.n_rows)])
            found += _screen(few, inputs, (i, j), shapes)
        found.sort(key=lambda projection: -projection.share)
        fitted = [_fit(target, projection) for projection in found[: _TRIED * count]]
        fitted.sort(key=lambda projection: -projection.share)
        features: dict[Feature, None] = {}
        for projection in fitted[:count]:
            if np.max(np.abs(projection.weights[:2])) > _STEEPEST:
                continue
            feature = _feature(target, projection, bases, columns)
            if feature is not None:
                features.setdefault(feature)
    return list(features)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Projection:
    """A function of a weighted sum of two standardised columns and a constant."""

    shape: Shape
    inputs: Matrix
    pair: tuple[int, int]
    weights: FloatArray
    share: float


def _outside(target: Target, columns: Matrix) -> Matrix:
    """What the model leaves of columns, on weighted rows."""
    weighted = columns * target.root[:, None]
    return np.asarray(weighted - target.span @ (target.span.T @ weighted))


def _shares(target: Target, columns: Matrix) -> FloatArray:
    """The share of the residual that each column explains; zero if it is inside the model."""
    weighted = columns * target.root[:, None]
    inside = target.span.T @ weighted
    squares = np.einsum("nm,nm->m", weighted, weighted)
    left = squares - np.einsum("km,km->m", inside, inside)
    sound = left > _IN_SPAN * squares
    norm = float(target.residual @ target.residual)
    share = (target.residual @ weighted) ** 2 / (np.where(sound, left, 1.0) * norm)
    return np.where(sound & np.isfinite(share), share, 0.0)


def _standardized(column: Column) -> Column | None:
    centre, spread = moments(column)
    standard = (column - centre) / spread
    return standard if np.isfinite(standard).all() and spread > 0.0 else None


def _screen(
    target: Target, inputs: Matrix, pair: tuple[int, int], shapes: Sequence[Shape]
) -> list[_Projection]:
    """The best point of the grid for each function."""
    rows = thinned_rows(len(inputs), target.n_rows)
    angles, scales = np.repeat(_ANGLES, len(_SCALES)), np.tile(_SCALES, _ANGLES.size)
    weights = np.vstack([scales * np.cos(angles), scales * np.sin(angles), np.zeros(angles.size)])
    best = []
    for shape in shapes:
        # The phase of a wave may be any; of other functions the middle is tried.
        shifts = (0.0, np.pi / 2) if shape.kind is Kind.WAVE else (0.0,)
        for shift in shifts:
            tried = weights + np.array([[0.0], [0.0], [shift]])
            shares = _shares(target, shape.transform.apply(inputs[rows] @ tried))
            k = int(np.argmax(shares))
            best.append(_Projection(shape, inputs, pair, tried[:, k], float(shares[k])))
    return best


def _fit(target: Target, start: _Projection) -> _Projection:
    """Improve the weights by damped steps of Gauss and Newton."""
    transform, inputs = start.shape.transform, start.inputs
    weights, damping = start.weights, 1e-2
    share = target.share(transform.apply(inputs @ weights))
    for _ in range(_STEPS):
        argument = inputs @ weights
        value = _outside(target, transform.apply(argument)[:, None])[:, 0]
        squares = float(value @ value)
        if not 0.0 < squares < np.inf:
            break
        factor = float(value @ target.residual) / squares
        slopes = factor * _outside(target, transform.derivative(argument)[:, None] * inputs)
        slopes = slopes - np.outer(value, value @ slopes) / squares
        left = target.residual - factor * value
        gram = slopes.T @ slopes
        gram[np.diag_indices(3)] *= 1.0 + damping
        gram[np.diag_indices(3)] += 1e-10 * np.trace(gram)
        if not np.isfinite(gram).all() or not np.trace(gram) > 0.0:
            break
        proposal = weights + np.linalg.solve(gram, slopes.T @ left)
        reached = target.share(transform.apply(inputs @ proposal))
        if reached > share:
            converged = reached - share < 1e-6 * (1.0 - share)
            weights, share, damping = proposal, reached, damping / 5.0
            if converged:
                break
        else:
            damping *= 10.0
    return _Projection(start.shape, inputs, start.pair, weights, share)


def _feature(
    target: Target, projection: _Projection, bases: Sequence[Feature], columns: Matrix
) -> Feature | None:
    """The feature with short numbers; without a constant if that loses little."""
    transform, n_rows = projection.shape.transform, target.n_rows
    plain = np.column_stack([columns[:, list(projection.pair)], np.ones(n_rows)])
    pairs = [moments(columns[:, j]) for j in projection.pair]
    slopes = [w / spread for w, (_, spread) in zip(projection.weights, pairs, strict=False)]
    shift = projection.weights[2] - sum(
        slope * centre for slope, (centre, _) in zip(slopes, pairs, strict=True)
    )
    weights = np.array([*slopes, shift])

    def share_with(number: float, place: int) -> float:
        changed = weights.copy()
        changed[place] = number
        return target.share(transform.apply(plain @ changed))

    # A constant that gains less than half of its price is dropped.
    whole, without = share_with(weights[2], 2), share_with(0.0, 2)
    if n_rows * (np.log1p(-without) - np.log1p(-whole)) < np.log(n_rows):
        weights[2] = 0.0
    for place in (2, 0, 1):
        number = float(weights[place])
        share = partial(share_with, place=place)
        weights[place] = shortest(number, share, n_rows, zero=place == 2)
    if not np.isfinite(weights).all() or not weights[:2].all():
        return None
    children = [bases[j] for j in projection.pair]
    bias = float(weights[2]) or None
    slopes = [float(weight) for weight in weights[:2]]
    return project(transform, children, slopes, bias, weights_in_identity=True)
